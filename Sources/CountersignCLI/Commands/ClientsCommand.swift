// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignHome

/// `countersign clients`.
struct ClientsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clients",
        abstract: "List the programs that are connected to the running proxy, and as what.",
        discussion: """
            For each program, the words that a line's for= can name it by: user, file, unit or container, the name of \
            its client token, and the socket that it uses. A program whose process has ended, or whose files this \
            user cannot read, has fewer.

            EXAMPLES:
              countersign clients
              countersign clients --json | jq -r '.[].program'
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var output: ListOptions

    func run() throws {
        let home = try homeOption.located()
        guard let clients = try ControlSocket.ask(.clients, of: home).clients else {
            throw CountersignError.unexpectedAnswer
        }
        if output.json { return try Console.result(json: clients) }
        guard !clients.isEmpty else { return Console.log("info", "no program is connected") }
        output.show(
            ["PID", "CONNECTIONS", "FOR", "SITES"],
            clients.map { client in
                [
                    client.pid.map(String.init) ?? "-", String(client.connections),
                    client.words.isEmpty ? "-" : Console.printable(client.words.joined(separator: ",")),
                    client.sites.isEmpty ? "-" : client.sites.joined(separator: " "),
                ]
            })
    }
}
