// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignChallenges
import CountersignCryptography
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
            abstract: "Store a user name and its password, a bearer token, keys of AWS, or a Kerberos principal.",
            discussion: """
                A site's line chooses a credential with credential=NAME; the default is `enrollment`. A name stands \
                for a password, a token or a principal. A token answers Bearer challenges, and a password all others. \
                A credential that a site has rejected is not sent there again until it changes or you run \
                `countersign credential retry`.

                With --principal, the password, or a key from --keytab, obtains Kerberos tickets. It is sent to no \
                site, and answers only Negotiate. Without such a credential, Negotiate is answered with the ticket \
                that you obtained with kinit.

                With --aws-stdin, the keys sign requests to AWS (inject=aws). They are JSON with Version 1, \
                AccessKeyId, SecretAccessKey, and for keys that expire SessionToken and Expiration. Keys without a \
                session token may also be stored as --user AKIA... and a password.

                With --password-stdin, --token-stdin or --aws-stdin, standard input contains the vault's passphrase, \
                if it has one, then the password, token or keys, on lines of their own. The passphrase may be left out \
                while the running `countersign serve` has the vault open.

                With --from, the vault contains the words of a program in place of the secret, which is the first line \
                that the program writes, or with --aws all of it. It is run when the vault is opened, after the time \
                of --keep, five minutes before the keys expire, and once more when a site has rejected the secret.

                EXAMPLES:
                  countersign credential set --user 'ACME\\jdoe'
                  pass show work | countersign credential set --user jdoe --password-stdin
                  pass show api | countersign credential set api --token-stdin
                  countersign credential set --user jdoe --from 'exec:/usr/bin/pass show work' --keep 8h
                  countersign credential set api --token --from 'exec:/usr/bin/gh auth token'
                  aws configure export-credentials | countersign credential set aws --aws-stdin
                  countersign credential set aws --aws --from 'exec:/usr/bin/aws configure export-credentials'
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

        @Flag(help: "With --from: the program writes a bearer token.")
        var token = false

        @Flag(
            help: "Store keys of AWS, and read from standard input what `aws configure export-credentials` writes.")
        var awsStdin = false

        @Flag(help: "With --from: the program writes keys of AWS, as a credential_process does.")
        var aws = false

        @Option(
            help: ArgumentHelp(
                "Get the password or token from the first line that a program writes, whenever it is needed. No shell: "
                    + "an absolute path and its arguments, divided by spaces.", valueName: "exec:program"))
        var from: String?

        @Option(
            help: ArgumentHelp(
                "With --from: run the program again after this time: 30s, 15m, 8h or 2d. (default: when a site has "
                    + "rejected the secret)", valueName: "time"))
        var keep: KeptTime?

        @Option(help: ArgumentHelp("The Kerberos principal: jdoe@CORP.EXAMPLE.", valueName: "principal"))
        var principal: String?

        @Option(help: ArgumentHelp("Store the principal's keys from this file, not a password.", valueName: "file"))
        var keytab: String?

        func validate() throws {
            guard SiteRule.isStoredName(name), VaultLimits.isName(name) else {
                throw ValidationError(
                    "\(name.debugDescription) is not a name; use 1 to 64 characters from A-Z a-z 0-9 . _ -")
            }
            guard principal == nil || user == nil && !tokenStdin && !awsStdin && from == nil else {
                throw ValidationError("a principal has neither --user, --token-stdin, --aws-stdin nor --from")
            }
            guard !awsStdin || user == nil && !tokenStdin else {
                throw ValidationError("with --aws-stdin, give neither --user nor --token-stdin")
            }
            try validateProgram()
            guard keytab == nil || principal != nil else { throw ValidationError("--keytab needs --principal") }
            guard from != nil || principal != nil || awsStdin || (user == nil) == tokenStdin else {
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

        private func validateProgram() throws {
            guard let from else {
                guard keep == nil, !token, !aws else {
                    throw ValidationError(
                        aws ? "--aws needs --from; --aws-stdin reads keys" : "--keep and --token need --from")
                }
                return
            }
            guard ProgramSecret.isSource(from) else {
                throw ValidationError(
                    "--from must be exec: and the absolute path of a program, such as exec:/usr/bin/pass show work; a "
                        + "secret itself must not be an argument")
            }
            guard !tokenStdin, !awsStdin, [user != nil, token, aws].count(where: { $0 }) == 1 else {
                throw ValidationError("with --from, give one of --user USER, --token and --aws")
            }
            if let fault = ProgramCredential.fault(words: ProgramSecret.words(from), keepSeconds: keep?.seconds) {
                throw ValidationError("--from or --keep: \(fault)")
            }
        }

        /// Stores the words of the program, once it has written a secret.
        private func store(program source: String) throws {
            let home = try homeOption.locatedOrNew()
            // Which programs the server runs is decided by a process that can open the vault.
            let session = try VaultAccess(home: home, secrets: secrets.input).ownSession(creates: true)
            let words = ProgramSecret.words(source)
            if aws {
                let keys = try ProgramSecret(words, what: "the keys").readAWSKeys(now: Int64(time(nil)))
                try session.operations().setProgram(
                    name: name, .awsKeys, words: words, keepSeconds: keep?.seconds)
                session.refreshServer()
                return Console.result(
                    "credential \"\(name)\" stored: keys of AWS, now \(keys.accessKeyID), from \(words.first ?? "")\n")
            }
            let secret = try ProgramSecret(words, what: token ? "the token" : "the password").read()
            guard !token || TokenCredential.isStorable(secret) else {
                throw CountersignError(
                    .environment, "\(words.first ?? "") wrote something that is not a bearer token (RFC 6750 §2.1)",
                    hint: "a token consists of A-Z a-z 0-9 - . _ ~ + / and may end with =; leave out the word Bearer")
            }
            try session.operations().setProgram(
                name: name, user.map { .password(user: $0) } ?? .token, words: words, keepSeconds: keep?.seconds)
            session.refreshServer()
            let whose = user.map { "for \($0)" } ?? "a token"
            Console.result("credential \"\(name)\" stored: \(whose), from \(words.first ?? "")\n")
        }

        /// Stores the keys on standard input.
        private func storeAWSKeys() throws {
            let home = try homeOption.locatedOrNew()
            try SecretInput.joinDocument()
            let input = SecretInput(isStandardInput: true, flag: "--aws-stdin")
            let session = try VaultAccess(home: home, secrets: input).session(creates: true, readsSecret: true)
            let stored = try session.perform(SetAWSKeys(name: name), secret: try input.read("the keys"))
            let end = stored.expires.map { ", until \(WallClock.rfc3339($0))" } ?? ""
            Console.result("credential \"\(name)\" stored: keys of AWS, \(stored.accessKeyID)\(end)\n")
        }

        func run() throws {
            if let from { return try store(program: from) }
            if awsStdin { return try storeAWSKeys() }
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
                found.map {
                    Shown(
                        name: $0.name, kind: $0.kind.rawValue, user: $0.user, blocked: $0.blocked,
                        program: $0.program)
                }, of: home)
        }

        private func show(_ shown: [Shown], of home: Home) throws {
            if output.json {
                try Console.result(json: shown)
            } else {
                // Most homes have no program.
                let hasPrograms = shown.contains { $0.program != nil }
                output.show(
                    ["NAME", "KIND", "USER", "BLOCKED"] + (hasPrograms ? ["FROM"] : []),
                    shown.map { row in
                        [row.name, row.kind, row.user ?? "-", row.blocked?.sentence ?? "no"]
                            + (hasPrograms ? [row.program?.joined(separator: " ") ?? "-"] : [])
                    })
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
            /// The program that writes the secret, and its arguments; nil for one in the vault.
            let program: [String]?
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

/// A time such as `15m`, in seconds.
struct KeptTime: ExpressibleByArgument {
    let seconds: Int64

    init?(argument: String) {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        guard let unit = argument.last.flatMap({ units[$0] }), argument.utf8.count <= 10,
            argument.dropLast().utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let count = Int64(argument.dropLast())
        else { return nil }
        seconds = count * unit
    }
}
