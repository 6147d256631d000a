// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignAddresses
import FoundationEssentials

/// `countersign route`.
struct RouteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "route",
        abstract: "Show where a request to a URL goes next: directly, or through which parent proxy.",
        discussion: """
            Prints the next hops in the order in which they are tried, one per line, such as `direct` or \
            `http://proxy.corp.example:8080`; --json has the reasons. Without --parent and --no-proxy, the running \
            `countersign serve` is asked. Otherwise a script may be downloaded and may look up hosts; nothing else \
            goes over the network. Exit status: 0; 1 if there is no next hop.

            EXAMPLES:
              countersign route https://git.corp.example/
              countersign route --parent pac:/etc/proxy.pac --json https://git.corp.example/
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var parents: ParentOptions
    @OptionGroup var output: JSONOption

    @Argument(help: ArgumentHelp("A URL; https:// may be left out.", valueName: "url"))
    var url: String

    func run() throws {
        let url = try AbsoluteURL(parsing: url, defaultScheme: .https)
        let route = try parents.route(to: url.description, try homeOption.located())
        if output.json {
            Console.result(try Console.json(route))
        } else {
            for hop in route { Console.result("\(hop.hop)\n") }
        }
    }
}
