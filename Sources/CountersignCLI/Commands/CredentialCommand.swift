// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignSitePolicy
import CountersignVault

/// `countersign credential`.
struct CredentialCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "credential",
        abstract: "Enrol, list or remove user names and their passwords.",
        subcommands: [Set.self, List.self, Remove.self])

    struct Set: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "set",
            abstract: "Store a user name and its password, or a new password.",
            discussion: """
                A site's line chooses a credential with credential=NAME; the default is `enrollment`. A password that \
                a site has rejected is not sent there again until you run this command again.

                With --password-stdin, standard input contains the vault's passphrase, if it has one, then the \
                password; one per line.

                EXAMPLES:
                  countersign credential set --user 'ACME\\jdoe'
                  pass show work | countersign credential set --user jdoe --password-stdin
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption

        @Argument(help: ArgumentHelp("The credential's name.", valueName: "name"))
        var name = "enrollment"

        @Option(help: ArgumentHelp("The user name: jdoe, ACME\\jdoe or jdoe@acme.example.", valueName: "user"))
        var user: String

        func validate() throws {
            guard SiteRule.isStoredName(name), VaultLimits.isName(name) else {
                throw ValidationError(
                    "\(name.debugDescription) is not a name; use 1 to 64 characters from A-Z a-z 0-9 . _ -")
            }
            guard VaultLimits.isUser(user) else {
                throw ValidationError(
                    "the user name is empty, longer than \(VaultLimits.userBytes) bytes, or has a control character"
                )
            }
        }

        func run() throws {
            let vault = try VaultAccess(home: try homeOption.located(), secrets: secrets.input).openOrCreate()
            let password = try secrets.input.read("the password of \(user)", twice: true)
            try vault.update { try $0.setCredential(name: name, user: user, password: password) }
            Console.result("credential \"\(name)\" stored for \(user)\n")
            if user.contains(":") {
                Console.warning(
                    "Basic authentication cannot send the colon in the user name \(user.debugDescription) (RFC 7617 §2)"
                )
            }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the credentials: name, user name.",
            discussion: """
                EXAMPLES:
                  countersign credential list
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var output: JSONOption
        @OptionGroup var secrets: SecretOption

        func run() throws {
            let vault = try VaultAccess(home: try homeOption.located(), secrets: secrets.input).openIfThere()
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
            let vault = try VaultAccess(home: try homeOption.located(), secrets: secrets.input).openIfThere()
            guard let vault, try vault.update({ $0.removeCredential(named: name) }) else {
                throw CountersignError.unknown(
                    "credential", name, known: vault.map { Array($0.contents.credentials.keys) } ?? [],
                    addedBy: "credential set")
            }
            Console.result("credential \"\(name)\" removed\n")
        }
    }
}
