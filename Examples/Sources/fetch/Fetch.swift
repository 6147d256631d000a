// SPDX-License-Identifier: Apache-2.0

import Countersign
import Foundation

/// `fetch HOME URL` prints the resource at an http or https URL and answers challenges from a home. It drives a
/// `ChallengeExchange` itself.
@main
struct Fetch {
    static func main() async {
        do {
            guard CommandLine.arguments.count == 3 else {
                throw Failure("usage: fetch HOME http[s]://HOST[:PORT]/PATH")
            }
            let controller = try ChallengeController(home: URL(filePath: CommandLine.arguments[1]))
            print(try await fetch(CommandLine.arguments[2], controller), terminator: "")
            await controller.storeOutcomes()
        } catch {
            FileHandle.standardError.write(Data("fetch: \(error)\n".utf8))
            exit(1)
        }
    }

    private static func fetch(_ url: String, _ controller: ChallengeController) async throws -> String {
        let link = try Link(url: url, controller: controller)
        // `startTLS` throws if the server is not trusted.
        var exchange = try ChallengeExchange(url: url, serverIsTrusted: true, controller: controller)
        var response = Response()
        var action = exchange.started()
        while true {
            switch action {
            case .send(let authorization):
                (action, response) = try await send(authorization, over: link, &exchange)
            case .sendOpening(let authorization):
                (action, response) = try await send(authorization, over: link, &exchange)
            case .ask(let challenge):
                let (disposition, credential) = await controller.handle(challenge)
                action = exchange.dispositionReceived(disposition, credential)
            case .deliver(.notChallenged), .deliver(.accepted):
                return response.body
            case .deliver(.handedBack(let error)):
                throw Failure("\(response.status), not answered: \(error)")
            case .deliver(.rejected):
                throw Failure("\(response.status): the site rejected the credential")
            case .fail(let reason):
                throw Failure(reason)
            case .wait:
                throw Failure("the server sent only an interim response")
            }
        }
    }

    /// Sends one request. Returns the next action and the response.
    private static func send(
        _ authorization: Authorization?, over link: Link, _ exchange: inout ChallengeExchange
    ) async throws -> (ChallengeExchange.Action, Response) {
        if !link.isOpen {
            guard !exchange.requiresSameConnection else {
                return (exchange.connectionLost(requestMayRepeat: true), Response())
            }
            if let certificate = try await link.open() { try exchange.connected(serverCertificate: certificate.der) }
        }
        guard let response = try await link.get(authorization) else {
            return (exchange.connectionLost(requestMayRepeat: true), Response())
        }
        return (
            exchange.responseReceived(
                status: response.status, challenges: response.challenges, nonces: response.nonces), response
        )
    }
}

struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
