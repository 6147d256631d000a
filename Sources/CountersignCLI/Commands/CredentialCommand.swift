// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignSitePolicy
import CountersignVault

/// `countersign credential`.
struct CredentialCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "credential",
        abstract: "Enrol, show or remove user names with their passwords.",
        subcommands: [Set.self, List.self, Remove.self])

    struct Set: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "set",
            abstract: "Enrol a user name with its password, or a new password for it.",
            discussion: """
                A site's line names the credential by credential=NAME; `enrollment` is used where it names none. A rejected \
                password is not tried again at its site until this command is run again.

                With --password-stdin the password is the first line of standard input, or the second where the vault is \
                opened by a passphrase, which comes first then.

                EXAMPLES:
                  countersign credential set --user 'ACME\\jdoe'
                  pass show work | countersign credential set --user jdoe --password-stdin
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption

        @Argument(help: ArgumentHelp("The credential's name.", valueName: "name"))
        var name = "enrollment"

        @Option(help: ArgumentHelp("jdoe, ACME\\jdoe or jdoe@acme.example.", valueName: "user"))
        var user: String

        func validate() throws {
            guard SiteRule.isStoredName(name), VaultLimits.isName(name) else {
                throw ValidationError("\(name.debugDescription) is not a name: 1 to 64 of A-Z a-z 0-9 . _ -")
            }
            guard VaultLimits.isUser(user) else {
                throw ValidationError(
                    "the user name is empty, longer than \(VaultLimits.userBytes) bytes, or has a control character")
            }
        }

        func run() throws {
            let vault = try VaultDoor(home: try homeOption.located(), secrets: secrets.input).openOrCreate()
            let password = try secrets.input.read("the password of \(user)", twice: true)
            try vault.update { try $0.setCredential(name: name, user: user, password: password) }
            Console.result("credential \"\(name)\" is set for \(user)\n")
            if user.contains(":") {
                Console.warning(
                    "basic cannot carry the user name \(user.debugDescription): it has a colon (RFC 7617 §2)")
            }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "Show the credentials' names and users.",
            discussion: """
                EXAMPLES:
                  countersign credential list
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var output: JSONOption
        @OptionGroup var secrets: SecretOption

        func run() throws {
            let vault = try VaultDoor(home: try homeOption.located(), secrets: secrets.input).openIfThere()
            let credentials = (vault?.contents.credentials ?? [:]).values.sorted { $0.name < $1.name }
            if output.json { return try Console.result(json: credentials.map { ["name": $0.name, "user": $0.user] }) }
            Console.result(TextTable(rows: credentials.map { [$0.name, $0.user] }).text)
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove",
            abstract: "Remove a credential.",
            discussion: """
                EXAMPLES:
                  countersign credential remove enrollment
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption
        @Argument(help: ArgumentHelp("The credential's name.", valueName: "name"))
        var name: String

        func run() throws {
            let vault = try VaultDoor(home: try homeOption.located(), secrets: secrets.input).openIfThere()
            guard let vault, try vault.update({ $0.removeCredential(named: name) }) else {
                throw CountersignError(
                    .unknownName, "there is no credential \(name.debugDescription)",
                    hint: KnownNames.hint(
                        vault.map { Array($0.contents.credentials.keys) } ?? [], enrolledBy: "credential set"))
            }
            Console.result("credential \"\(name)\" is removed\n")
        }
    }
}

/// What a person may have meant by a name that is not there.
enum KnownNames {
    static func hint(_ names: [String], enrolledBy command: String) -> String {
        names.isEmpty
            ? "there are none; `countersign \(command)` adds one"
            : "known are \(names.sorted().joined(separator: ", "))"
    }
}
