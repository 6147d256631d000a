// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignHome
import CountersignJSON
import Glibc

/// `countersign watch`.
struct WatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Show what the running proxy does, as it happens.",
        discussion: """
            Prints a line for each request when it has ended, with the scheme and the credential that answered it or \
            the check that failed, and for each rejection, untrusted server, renewal and change of the home. Nothing \
            before the command is shown; `countersign log` shows the access log.

            EXAMPLES:
              countersign watch
              countersign watch --site '*.corp.example' --refused
              countersign watch --json | jq 'select(.event == "rejected")'
            """)

    @OptionGroup var homeOption: HomeOption

    @OptionGroup var chosen: LogFilterOptions

    @Flag(help: "Print the events in JSON, one per line.")
    var json = false

    func run() throws {
        let home = try homeOption.located()
        let filter = try chosen.filter()
        try ControlSocket.readEvents(
            of: home, isWanted: { LogPrinter.hasReader && !Console.hasLostOutput },
            replaced: { Console.log("info", "another process has taken the server's place") }
        ) { line in
            guard let event = WatchedEvent(line), event.matches(filter) else { return }
            if json {
                Console.result("\(String(decoding: line, as: UTF8.self))\n")
            } else {
                Console.result(unchanged: Console.printable(event.text) + "\n")
            }
        }
    }
}
