// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCryptography
import CountersignHome

extension TokenCommand {
    struct Allow: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "allow",
            abstract: "Permit that the access token of a sign-in is given out.",
            discussion: """
                Every program of yours can then obtain the token, send it to any site, and act in your name there \
                until the token expires. The permission ends with `countersign token deny NAME`, with \
                `countersign unenroll`, and when another person signs in under the name.

                EXAMPLES:
                  countersign token allow work
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption
        @Argument(help: ArgumentHelp("The sign-in's name.", valueName: "name"))
        var name: String
        @Flag(help: "Permit it without asking.")
        var yes = false

        func run() throws {
            let session = try VaultAccess(home: try homeOption.located(), secrets: secrets.input).session()
            let all = try session.perform(ListTokenPermissions())
            guard let signIn = all.first(where: { $0.name == name }) else {
                throw CountersignError.unknown(
                    "sign-in", name, known: all.map(\.name), addedBy: "enroll PROFILE")
            }
            if signIn.permitted == nil {
                let account = signIn.account.isEmpty ? "" : " of \(Console.printable(signIn.account))"
                let question = "Give every program of yours the access token \"\(name)\"\(account) at \(signIn.issuer)?"
                guard try Confirmation(isGiven: yes).asks(question) else {
                    throw CountersignError(.refused, "nothing was done")
                }
            }
            guard case .done(let isNew) = try session.perform(PermitToken(name: name, isPermitted: true)) else {
                throw CountersignError.unknown("sign-in", name, known: [String](), addedBy: "enroll PROFILE")
            }
            Console.result("the access token of \"\(name)\" is given out\(isNew ? "" : " already")\n")
        }
    }

    struct Deny: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "deny",
            abstract: "Give out the access token of a sign-in no longer.",
            discussion: """
                Programs that have the token can use it until it expires. `countersign unenroll` revokes it.

                EXAMPLES:
                  countersign token deny work
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption
        @Argument(help: ArgumentHelp("The sign-in's name.", valueName: "name"))
        var name: String

        func run() throws {
            let session = try VaultAccess(home: try homeOption.located(), secrets: secrets.input).session()
            switch try session.perform(PermitToken(name: name, isPermitted: false)) {
            case .unknown(let known):
                throw CountersignError.unknown("sign-in", name, known: known, addedBy: "enroll PROFILE")
            case .done: Console.result("the access token of \"\(name)\" is not given out\n")
            }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the sign-ins, and whether their access tokens are given out.",
            discussion: """
                EXAMPLES:
                  countersign token list
                  countersign token list --json | jq -r '.[] | select(.permitted).name'
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var output: ListOptions
        @OptionGroup var secrets: SecretOption

        func run() throws {
            let home = try homeOption.located()
            let all = try VaultAccess(home: home, secrets: secrets.input).session().perform(ListTokenPermissions())
            if output.json { return try Console.result(json: all.map(Row.init)) }
            if all.isEmpty {
                ListOptions.empty("nobody is signed in", in: home, hint: "`countersign enroll PROFILE` signs you in")
            }
            output.show(
                ["NAME", "ACCOUNT", "GIVEN OUT"],
                all.map { signIn in
                    [
                        signIn.name, signIn.account.isEmpty ? "-" : Console.printable(signIn.account),
                        signIn.permitted.map { "since \(WallClock.rfc3339($0))" } ?? "no",
                    ]
                })
        }

        private struct Row: Encodable {
            let name: String
            let account: String?
            let issuer: String
            let permitted: String?

            init(_ listed: ListedTokenPermission) {
                name = listed.name
                account = listed.account.isEmpty ? nil : listed.account
                issuer = listed.issuer
                permitted = listed.permitted.map(WallClock.rfc3339)
            }
        }
    }
}
