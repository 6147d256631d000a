// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignParents
import CountersignSitePolicy
import FoundationEssentials

/// `countersign route`.
struct RouteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "route",
        abstract: "Show where a request to a URL goes next: directly, or through which parent proxy.",
        discussion: """
            Prints the next hops in the order in which they are tried, one per line, such as `direct` or \
            `http://proxy.corp.example:8080`. Connects to nothing; a script may look up hosts. The decision is that of \
            `countersign serve` with the same options and variables.

            EXAMPLES:
              countersign route https://git.corp.example/
              countersign route --parent pac:/etc/proxy.pac --json https://git.corp.example/
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var parents: ParentOptions
    @OptionGroup var output: JSONOption

    @Argument(help: ArgumentHelp("A URL; https:// may be left out.", valueName: "url"))
    var url: String

    private struct Hop: Encodable {
        let hop: String
        let reason: String
    }

    func run() async throws {
        let url = try AbsoluteURL(parsing: url, defaultScheme: .https)
        let hops: [Route.Candidate]
        if let finder = try parents.finder(try homeOption.located()) {
            for fault in await finder.load() { Console.warning(fault) }
            hops = try await finder.findRoute(to: url.origin, path: url.path)
        } else {
            hops = [Route.Candidate(.direct, .noParent)]
        }
        if output.json {
            Console.result(
                try Console.json(hops.map { Hop(hop: "\($0.hop)", reason: "\($0.reason)") }))
        } else {
            for hop in hops { Console.result("\(hop.hop)\n") }
        }
    }
}
