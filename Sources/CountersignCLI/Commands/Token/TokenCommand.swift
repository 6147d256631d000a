// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignAddresses
import CountersignCryptography
import CountersignHome
import Glibc

/// `countersign token`.
struct TokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Give programs the access token of a sign-in as a value.",
        discussion: """
            `countersign token NAME` prints the access token of the sign-in NAME. No token is given out before you \
            have permitted it with `countersign token allow NAME`. The other commands give it to programs that ask for \
            credentials in their own way. A sign-in whose name is that of a command is given out with \
            `countersign token print NAME`.
            """,
        subcommands: [
            Print.self, Allow.self, Deny.self, List.self, Git.self, Docker.self, Kubectl.self, XOAuth2.self,
            OAuthBearer.self,
        ],
        defaultSubcommand: Print.self)

    struct Print: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "print",
            abstract: "Print the access token; `print` may be left out.",
            discussion: """
                The token is renewed first if it expires soon, by the running `countersign serve` if that has the \
                vault open. Exit status 1 if you have not permitted it, or if there is no token that is valid.

                The token goes to standard output and nowhere else. Do not pass it on in arguments, which other users \
                of the machine can see.

                EXAMPLES:
                  countersign token work
                  countersign token work --site https://api.corp.example
                  countersign token work --json | jq -r .expires_at
                  PGPASSWORD=$(countersign token work) psql -h db.corp.example
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption
        @OptionGroup var output: JSONOption

        @Argument(help: ArgumentHelp("The sign-in's name.", valueName: "name"))
        var name: String

        @Option(
            help: ArgumentHelp(
                "Print the token only if the list of sites gives it to this https site.", valueName: "url"))
        var site: String?

        func validate() throws { try SiteArgument.check(site) }

        func run() throws {
            let source = TokenSource(home: try homeOption.located(), secrets: secrets.input)
            let token = try source.token(of: name, site: site)
            if output.json {
                Console.result(unchanged: try Console.json(Row(token)))
            } else {
                Console.result(unchanged: "\(token.accessToken)\n")
            }
        }

        private struct Row: Encodable {
            enum CodingKeys: String, CodingKey {
                case accessToken = "access_token"
                case tokenType = "token_type"
                case expiresAt = "expires_at"
                case scope
            }

            let accessToken: String
            let tokenType = "Bearer"
            let expiresAt: String?
            let scope: String

            init(_ token: GivenToken) {
                accessToken = token.accessToken
                expiresAt = token.expires.map(WallClock.rfc3339)
                scope = token.scope
            }
        }
    }
}

/// The value of `--site`.
enum SiteArgument {
    /// Throws for a text that is not the URL of an https site.
    static func check(_ site: String?) throws {
        guard let site else { return }
        let url: AbsoluteURL
        do throws(HostNameError) {
            url = try AbsoluteURL(parsing: site, defaultScheme: .https)
        } catch {
            throw ValidationError("--site: \(error.detail)")
        }
        guard url.origin.scheme == .https else {
            throw ValidationError("--site \(site.debugDescription): access tokens are sent over https only")
        }
    }
}

/// The access tokens of a command's home: from the running server if it has the vault open, else from this process.
struct TokenSource {
    let home: Home
    let secrets: SecretInput

    private var session: VaultSession {
        get throws { try VaultAccess(home: home, secrets: secrets).session() }
    }

    /// Throws if the token is not given out, or is not for the site.
    func token(of name: String, site: String? = nil) throws -> GivenToken {
        switch try answer(GiveToken(name: name, site: site)) {
        case .given(let token): return token
        case .unknown(let known):
            throw CountersignError.unknown("sign-in", name, known: known, addedBy: "enroll PROFILE")
        case .notForSite(let reason, let hint): throw CountersignError(.refused, reason, hint: hint)
        }
    }

    /// The token that the list of sites gives to a site; nil if it gives none, or that of another sign-in than `name`.
    func token(for site: String, name: String?) throws -> GivenToken? {
        switch try answer(GiveToken(site: site, name: name)) {
        case .given(let token): return token
        case .notForSite: return nil
        case .unknown(let known):
            guard let name else { return nil }
            throw CountersignError.unknown("sign-in", name, known: known, addedBy: "enroll PROFILE")
        }
    }

    private func answer(_ operation: GiveToken) throws -> TokenAnswer {
        let session = try session
        // The provider may have replaced the refresh token when the signal comes.
        SignalWatch.block()
        let interrupts = Interrupts()
        interrupts.hold()
        return try session.perform(operation, OperationDialogue(isAbandoned: { interrupts.haveArrived }))
    }
}
