// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignNIO
import CountersignServiceLifecycle
import Foundation
import Hummingbird
import Logging
import ServiceLifecycle

/// `relay HOME SITE` serves the pages of a site that challenges, without a challenge: a request for `/PATH` is answered
/// with the site's response for `/PATH`. The log has the port that it listens on. SIGTERM and SIGINT stop it.
@main
struct Relay {
    static func main() async throws {
        guard CommandLine.arguments.count == 3 else { throw Usage() }
        try await relay(home: URL(filePath: CommandLine.arguments[1]), site: CommandLine.arguments[2])
    }

    static func relay(home: URL, site: String) async throws {
        let controller = try ChallengeController(home: home)
        let proxy = ChallengeProxy(controller)
        let client = SiteClient(through: proxy)

        let router = Router()
        router.get("**") { request, _ in
            let (status, body) = try await client.get(site + request.uri.path)
            return Response(status: .init(code: status), body: .init(byteBuffer: body))
        }
        let app = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: 0)))

        let group = ServiceGroup(
            services: [proxy.service, client, app], gracefulShutdownSignals: [.sigterm, .sigint],
            logger: Logger(label: "relay"))
        try await group.run()
    }

    struct Usage: Error, CustomStringConvertible {
        let description = "usage: relay HOME http[s]://HOST[:PORT]"
    }
}
