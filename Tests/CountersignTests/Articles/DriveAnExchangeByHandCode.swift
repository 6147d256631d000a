// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignNIO
import NIOPosix
import Synchronization
import Testing

/// The code of the article "Drive an exchange by hand". `Examples/Sources/fetch` is a whole client.
struct DriveAnExchangeByHandCode {
    private let server = Server()

    /// A server that wants a password, without a network.
    private final class Server: Sendable {
        let fields = Mutex<[String?]>([])

        func answer(_ field: String?) -> Head {
            fields.withLock { $0.append(field) }
            return field == nil
                ? Head(status: 401, challenges: ["Basic realm=\"r\""]) : Head(status: 200, challenges: [])
        }
    }

    private struct Head {
        let status: Int
        let challenges: [String]
    }

    private struct Failure: Error {
        let reason: String
        init(_ reason: String) { self.reason = reason }
    }

    private func send(_ request: String, _ field: String?) async throws -> Head { server.answer(field) }

    private func sendWithoutBody(_ request: String, _ field: String?) async throws -> Head { server.answer(field) }

    private func nextResponse() async throws -> ChallengeExchange.Action { throw Failure("no response") }

    // MARK: The article

    private func fetch(
        _ url: String, _ controller: ChallengeController
    ) async throws -> (String, ChallengeExchange.Outcome) {
        let (request, response) = ("GET \(url)", "a page")
        var exchange = try ChallengeExchange(url: url, serverIsTrusted: true, controller: controller)
        var action = exchange.started()
        while true {
            switch action {
            case .send(let authorization):
                let head = try await send(request, authorization?.fieldValue)
                action = exchange.responseReceived(status: head.status, challenges: head.challenges)
            case .sendOpening(let authorization):
                let head = try await sendWithoutBody(request, authorization.fieldValue)
                action = exchange.responseReceived(status: head.status, challenges: head.challenges)
            case .ask(let challenge):
                let (disposition, credential) = await controller.handle(challenge)
                action = exchange.dispositionReceived(disposition, credential)
            case .wait:
                action = try await nextResponse()
            case .deliver(let outcome):
                return (response, outcome)
            case .fail(let reason):
                throw Failure(reason)
            }
        }
    }

    private func open(
        _ bootstrap: ClientBootstrap, _ host: String, _ port: Int, _ controller: ChallengeController,
        for exchange: inout ChallengeExchange
    ) async throws -> ServerTrustVerdict {
        let channel = try await bootstrap.connect(host: host, port: port).get()
        let verdict = try await controller.startTLS(on: channel, host: host, port: port)
        if let certificate = verdict.leaf { try exchange.connected(serverCertificate: certificate.der) }
        return verdict
    }

    private func begin(
        _ url: String, _ controller: ChallengeController, _ verdict: ServerTrustVerdict
    ) throws -> ChallengeExchange {
        var exchange = try ChallengeExchange(url: url, serverIsTrusted: verdict.isTrusted, controller: controller)
        _ = exchange.started()
        return exchange
    }

    // MARK: Tests

    @Test func theLoopAnswersAChallenge() async throws {
        let controller = try LibraryHome("https://git.corp.example answer=basic\n").controller()
        let (response, outcome) = try await fetch("https://git.corp.example/", controller)
        #expect(response == "a page" && outcome == .accepted)
        let fields = server.fields.withLock { $0 }
        #expect(fields.count == 2 && fields[0] == nil && fields[1]?.hasPrefix("Basic ") == true)
    }
}
