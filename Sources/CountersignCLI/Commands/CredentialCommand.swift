// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignChallenges
import CountersignHome
import CountersignNegotiate
import CountersignReporting
import CountersignSitePolicy
import CountersignVault
import Glibc

/// `countersign credential`.
struct CredentialCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "credential",
        abstract: "Enrol, list or remove passwords and tokens.",
        subcommands: [Set.self, List.self, Retry.self, Remove.self])

    struct Set: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "set",
            abstract: "Store a user name and its password, a bearer token, or a Kerberos principal.",
            discussion: """
                A site's line chooses a credential with credential=NAME; the default is `enrollment`. A name stands \
                for a password, a token or a principal. A token answers Bearer challenges, and a password all others. \
                A credential that a site has rejected is not sent there again until it changes or you run \
                `countersign credential retry`.

                With --principal, the password, or a key from --keytab, obtains Kerberos tickets. It is sent to no \
                site, and answers only Negotiate. Without such a credential, Negotiate is answered with the ticket \
                that you obtained with kinit.

                With --password-stdin or --token-stdin, standard input contains the vault's passphrase, if it has one, \
                then the password or token; one per line. The passphrase may be left out while the running \
                `countersign serve` has the vault open.

                EXAMPLES:
                  countersign credential set --user 'ACME\\jdoe'
                  pass show work | countersign credential set --user jdoe --password-stdin
                  pass show api | countersign credential set api --token-stdin
                  countersign credential set work --principal jdoe@CORP.EXAMPLE
                  countersign credential set batch --principal batch@CORP.EXAMPLE --keytab batch.keytab
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption

        @Argument(help: ArgumentHelp("The credential's name.", valueName: "name"))
        var name = "enrollment"

        @Option(help: ArgumentHelp("The user name: jdoe, ACME\\jdoe or jdoe@acme.example.", valueName: "user"))
        var user: String?

        @Flag(help: "Store a bearer token (RFC 6750), which is sent over https only, and read it from standard input.")
        var tokenStdin = false

        @Option(help: ArgumentHelp("The Kerberos principal: jdoe@CORP.EXAMPLE.", valueName: "principal"))
        var principal: String?

        @Option(help: ArgumentHelp("Store the principal's keys from this file, not a password.", valueName: "file"))
        var keytab: String?

        func validate() throws {
            guard SiteRule.isStoredName(name), VaultLimits.isName(name) else {
                throw ValidationError(
                    "\(name.debugDescription) is not a name; use 1 to 64 characters from A-Z a-z 0-9 . _ -")
            }
            guard principal == nil || user == nil && !tokenStdin else {
                throw ValidationError("a principal has neither --user nor --token-stdin")
            }
            guard keytab == nil || principal != nil else { throw ValidationError("--keytab needs --principal") }
            guard principal != nil || (user == nil) == tokenStdin else {
                throw ValidationError(
                    tokenStdin ? "a token has no --user" : "missing --user USER, or --token-stdin for a token")
            }
            guard user.map(VaultLimits.isUser) != false else {
                throw ValidationError(
                    "the user name is empty, longer than \(VaultLimits.userBytes) bytes, or has a control character"
                )
            }
            guard principal.map({ VaultLimits.isPrincipal($0) }) ?? true else {
                throw ValidationError(
                    "\((principal ?? "").debugDescription) is not a principal; write a name and a realm, such as "
                        + "jdoe@CORP.EXAMPLE")
            }
        }

        func run() throws {
            let home = try homeOption.locatedOrNew()
            let input = tokenStdin ? SecretInput(isStandardInput: true, flag: "--token-stdin") : secrets.input
            let session = try VaultAccess(home: home, secrets: input).session(
                creates: true, readsSecret: keytab == nil)
            let blocked: BlockedCredential?
            if let principal {
                let secret =
                    try keytab.map { try KeytabKeys.read($0, of: principal) }
                    ?? input.read("the password of \(principal)", twice: true)
                blocked = try session.perform(
                    SetPrincipal(name: name, principal: principal, hasKeys: keytab != nil), secret: secret)
                Console.result("credential \"\(name)\" stored for \(principal)\n")
            } else if let user {
                let password = try input.read("the password of \(user)", twice: true)
                blocked = try session.perform(SetCredential(name: name, user: user), secret: password)
                Console.result("credential \"\(name)\" stored for \(user)\n")
            } else {
                blocked = try session.perform(SetToken(name: name), secret: try input.read("the token"))
                Console.result("credential \"\(name)\" stored: a token\n")
            }
            if let blocked {
                Console.warning(
                    "\(user == nil ? "this credential is" : "this user name and password are") blocked: "
                        + blocked.sentence,
                    hint: Remedy.permitRetry(name: name).sentence)
            }
            if let user, user.contains(":") {
                Console.warning(
                    "Basic authentication cannot send the colon in the user name \(user.debugDescription) (RFC 7617 §2)"
                )
            }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the credentials: name, kind, user name, and where they are blocked.",
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
            let found = try VaultAccess(home: home, secrets: secrets.input).session().perform(ListCredentials())
            try show(
                found.map { Shown(name: $0.name, kind: $0.kind.rawValue, user: $0.user, blocked: $0.blocked) },
                of: home)
        }

        private func show(_ shown: [Shown], of home: Home) throws {
            if output.json {
                try Console.result(json: shown)
            } else {
                output.show(
                    ["NAME", "KIND", "USER", "BLOCKED"],
                    shown.map { [$0.name, $0.kind, $0.user ?? "-", $0.blocked?.sentence ?? "no"] })
            }
            guard shown.isEmpty, !output.json else { return }
            ListOptions.empty(
                "no credential is enrolled", in: home, hint: "`countersign credential set --user USER` enrols one")
        }

        private struct Shown: Encodable {
            let name: String
            let kind: String
            let user: String?
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

                Also for a site that offers only weaker schemes than it has accepted before, if that is right.

                EXAMPLES:
                  countersign credential retry
                  countersign credential retry printer
                """)

        @OptionGroup var homeOption: HomeOption
        @Argument(help: ArgumentHelp("The credential's name. (default: all that are blocked)", valueName: "name"))
        var name: String?

        func run() throws {
            let now: @Sendable () -> Int64 = { Int64(time(nil)) }
            let names = try BreakerFile(home: try homeOption.located(), now: now).permitRetry(of: name)
            for name in names { Console.result("credential \"\(name)\" may be tried once more\n") }
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
            let home = try homeOption.located()
            let removed = try VaultAccess(home: home, secrets: secrets.input).session()
                .perform(RemoveCredential(name: name))
            guard removed.count > 0 else {
                throw CountersignError.unknown(
                    "credential", name, known: removed.known, addedBy: "credential set --user USER")
            }
            Console.result("credential \"\(name)\" removed\n")
        }
    }
}
