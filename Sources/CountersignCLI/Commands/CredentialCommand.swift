// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignChallenges
import CountersignSitePolicy
import CountersignVault
import Glibc

/// `countersign credential`.
struct CredentialCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "credential",
        abstract: "Enrol, list or remove user names and their passwords.",
        subcommands: [Set.self, List.self, Retry.self, Remove.self])

    struct Set: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "set",
            abstract: "Store a user name and its password, or a new password.",
            discussion: """
                A site's line chooses a credential with credential=NAME; the default is `enrollment`. A password that \
                a site has rejected is not sent there again until it changes or you run `countersign credential retry`.

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
            let home = try homeOption.locatedOrNew()
            let vault = try VaultAccess(home: home, secrets: secrets.input).openOrCreate()
            let password = try secrets.input.read("the password of \(user)", twice: true)
            try vault.update { try $0.setCredential(name: name, user: user, password: password) }
            Console.result("credential \"\(name)\" stored for \(user)\n")
            let tag = CredentialTag(user: user, password: password, key: vault.tagKey)
            let file = BreakerFile(home: home, now: now)
            try file.nameChanged(name, to: .tag(tag))
            if let blocked = BlockedCredential.all(in: try file.read(), only: [tag], at: now()).first {
                Console.warning(
                    "this user name and password are blocked: \(blocked.sentence)",
                    hint: "`countersign credential retry \(name)` permits one more attempt")
            }
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
            abstract: "List the credentials: name, user name, and where they are blocked.",
            discussion: """
                A credential that a site has rejected is blocked there, and after a second rejection everywhere, until \
                it changes.

                EXAMPLES:
                  countersign credential list
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var output: ListOptions
        @OptionGroup var secrets: SecretOption

        func run() throws {
            let home = try homeOption.located()
            guard let vault = try VaultAccess(home: home, secrets: secrets.input).openIfThere() else {
                return try show([], of: home)
            }
            let records = try BreakerFile(home: home, now: now).read()
            let key = vault.tagKey
            let shown = vault.contents.credentials.values.sorted { $0.name < $1.name }.map { credential in
                let tag = CredentialTag(user: credential.user, password: credential.password, key: key)
                return Shown(
                    name: credential.name, user: credential.user,
                    blocked: BlockedCredential.all(in: records, only: [tag], at: now()).first)
            }
            try show(shown, of: home)
        }

        private func show(_ shown: [Shown], of home: Home) throws {
            if output.json {
                try Console.result(json: shown)
            } else {
                output.show(
                    ["NAME", "USER", "BLOCKED"], shown.map { [$0.name, $0.user, $0.blocked?.sentence ?? "no"] })
            }
            guard shown.isEmpty, !output.json else { return }
            ListOptions.empty(
                "no credential is enrolled", in: home, hint: "`countersign credential set --user USER` enrols one")
        }

        private struct Shown: Encodable {
            let name: String
            let user: String
            let blocked: BlockedCredential?
        }
    }

    struct Retry: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "retry",
            abstract: "Permit one more attempt with a credential that sites have rejected.",
            discussion: """
                For a password that is right after all, for example because the account was locked. If the attempt \
                fails, the credential is blocked everywhere. Running servers and programs take notice at once.

                EXAMPLES:
                  countersign credential retry
                  countersign credential retry printer
                """)

        @OptionGroup var homeOption: HomeOption
        @Argument(help: ArgumentHelp("The credential's name. (default: all that are blocked)", valueName: "name"))
        var name: String?

        func run() throws {
            let file = BreakerFile(home: try homeOption.located(), now: now)
            var names: [String] = []
            if try !file.read().isEmpty { try file.update { names = $0.permitRetry(of: name, at: now()) } }
            guard !names.isEmpty else {
                throw CountersignError(
                    .unknownName,
                    name.map { "credential \($0.debugDescription) is not blocked" } ?? "no credential is blocked",
                    hint: "`countersign credential list` shows which are")
            }
            for name in names { Console.result("credential \"\(name)\" may be tried once more\n") }
        }
    }

    /// Seconds since 1970.
    @Sendable private static func now() -> Int64 { Int64(time(nil)) }

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
            let home = try homeOption.located()
            let vault = try VaultAccess(home: home, secrets: secrets.input).openIfThere()
            guard let vault, try vault.update({ $0.removeCredential(named: name) }) else {
                throw CountersignError.unknown(
                    "credential", name, known: vault.map { Array($0.contents.credentials.keys) } ?? [],
                    addedBy: "credential set")
            }
            try BreakerFile(home: home, now: now).nameChanged(name, to: nil)
            Console.result("credential \"\(name)\" removed\n")
        }
    }
}
