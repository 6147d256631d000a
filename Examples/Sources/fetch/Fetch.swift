// SPDX-License-Identifier: Apache-2.0

import Countersign

/// `fetch HOME URL`: prints what is at an http URL, its challenges answered from a home. Drives a `ChallengeExchange` by hand.
@main
struct Fetch {
    static func main() async throws {
        guard CommandLine.arguments.count == 3 else { throw Failure("usage: fetch HOME http://HOST[:PORT]/PATH") }
        let controller = try ChallengeController(home: CommandLine.arguments[1])
        let link = try Link(url: CommandLine.arguments[2])
        var exchange = try ChallengeExchange(url: link.url, controller: controller)
        var response = Response()
        var action = exchange.started()
        while true {
            switch action {
            case .send(let authorization):
                (action, response) = await send(authorization, over: link, &exchange)
            case .sendOpening(let authorization):
                (action, response) = await send(authorization, over: link, &exchange)
            case .ask(let challenge):
                let (disposition, credential) = await controller.handle(challenge)
                action = exchange.dispositionReceived(disposition, credential)
            case .deliver(.notChallenged), .deliver(.accepted):
                return print(response.body, terminator: "")
            case .deliver(.handedBack(let error)):
                throw Failure("\(response.status), not answered: \(error)")
            case .deliver(.rejected):
                throw Failure("\(response.status): the site did not take the credential")
            case .fail(let reason):
                throw Failure(reason)
            case .wait:
                throw Failure("the server answered with an interim response alone")
            }
        }
    }

    /// One round: the response, and what is to be done next.
    private static func send(
        _ authorization: Authorization?, over link: Link, _ exchange: inout ChallengeExchange
    ) async -> (ChallengeExchange.Action, Response) {
        do {
            let response = try await link.get(
                authorization: authorization?.fieldValue, onSameConnection: exchange.requiresSameConnection)
            let next = exchange.responseReceived(status: response.status, challenges: response.challenges)
            return (next, response)
        } catch {
            return (exchange.connectionLost(requestMayRepeat: true), Response())
        }
    }
}

struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
