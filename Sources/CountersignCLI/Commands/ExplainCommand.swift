// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import Glibc
import Logging
import CountersignSitePolicy

/// `countersign explain`.
struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Show the three checks for one URL, and what would be done.",
        discussion: """
            Is the site on the list, may the kind of challenge be answered there, is there a credential or identity to answer \
            with. Nothing is sent over the network and nothing is made in the home. Exit status: 0, whatever the answer is; \
            `countersign sites check` answers with its status.

            EXAMPLES:
              countersign explain https://git.corp.example/
              countersign explain --json https://git.corp.example/ | jq .schemes
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var output: JSONOption
    @OptionGroup var secrets: SecretOption

    @Argument(help: ArgumentHelp("An http or https URL.", valueName: "url"))
    var url: String

    func run() throws {
        let home = try homeOption.located()
        let origin = try AbsoluteURL(parsing: url).origin
        let door = VaultDoor(home: home, secrets: secrets.input)
        let now = Int64(time(nil))
        let keeper = try PolicyKeeper(
            home: home, interception: .never, environment: [:], logger: ConsoleLogHandler.logger(.warning),
            now: { now },
            passphrase: door.passphrase)
        if let shut = keeper.vaultErrorAtStart {
            Console.warning("\(shut.detail); what it holds is not looked at", hint: shut.hint)
        }
        let explanation = Explanation(of: origin, policy: keeper.policy.current, now: now)
        if output.json {
            try Console.result(json: explanation)
        } else {
            Console.result(explanation.description)
        }
    }
}
