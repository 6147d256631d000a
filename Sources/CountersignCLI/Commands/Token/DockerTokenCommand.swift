// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignAddresses
import CountersignCryptography
import CountersignHome
import CountersignSitePolicy

extension TokenCommand {
    struct Docker: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "docker",
            abstract: "Give docker the access token for a listed registry: a credential helper.",
            discussion: """
                `get` reads the registry's address from standard input, and answers if the list of sites gives the \
                registry the access token of a sign-in, and you have permitted to give it out. `list` lists these \
                registries. `store` and `erase` fail, because `countersign enroll PROFILE` signs you in. As docker expects it, \
                errors are written to standard output.

                The user name `<token>` makes docker exchange the token at the registry's authorization service. A \
                registry that takes it as a password wants --user.

                docker runs a program `docker-credential-countersign` in the PATH if its configuration has \
                "credHelpers": {"registry.corp.example": "countersign"}. A link of that name to this program is the \
                same command. COUNTERSIGN_USER sets --user then.

                EXAMPLES:
                  ln -s /usr/bin/countersign ~/bin/docker-credential-countersign
                  echo registry.corp.example | countersign token docker get
                """)

        @OptionGroup var homeOption: HomeOption

        @Option(help: ArgumentHelp("Give out the token of this sign-in only. (default: any)", valueName: "name"))
        var name: String?

        @Option(help: ArgumentHelp("The user name beside the token.", valueName: "user"))
        var user = "<token>"

        @Argument(help: ArgumentHelp("What docker wants: get, store, erase or list.", valueName: "operation"))
        var operation: String

        /// docker compares these texts.
        private static let notFound = "credentials not found in native keychain"
        private static let noServer = "no credentials server URL"

        func validate() throws {
            guard GitCredential.isValue(user) else {
                throw ValidationError("the user name is empty or has a control character")
            }
        }

        func run() throws {
            do {
                switch operation {
                case "get": try get()
                case "list": try list()
                case "store":
                    _ = try ProtocolInput.read()
                    throw CountersignError(
                        .refused, "Countersign stores no credentials of docker",
                        hint: "`countersign enroll PROFILE` signs you in")
                case "erase":
                    _ = try ProtocolInput.read()
                    throw CountersignError(
                        .refused, "Countersign has no credentials of docker",
                        hint: "`countersign unenroll` signs you out")
                default:
                    throw CountersignError(
                        .configuration, "\(operation.debugDescription) is none of get, store, erase and list",
                        hint: "docker runs this command, with one of these words")
                }
            } catch let code as ExitCode {
                throw code
            } catch {
                // docker shows standard output only.
                for diagnostic in Diagnostic.all(in: error) {
                    let hint = diagnostic.hint.map { "; \($0)" } ?? ""
                    Console.result(PrintedCommand.complete("\(diagnostic.message)\(hint)") + "\n")
                }
                throw ExitCode.failure
            }
        }

        private var source: TokenSource {
            get throws { TokenSource(home: try homeOption.located(), secrets: SecretInput(isStandardInput: false)) }
        }

        private func get() throws {
            let server = try ProtocolInput.read().trimming(" \t\n\r")
            guard !server.isEmpty else { try fail(with: Self.noServer) }
            guard let token = try source.token(for: String(server), name: name) else { try fail(with: Self.notFound) }
            Console.result(
                unchanged: try Console.jsonLine(
                    Found(serverURL: String(server), username: user, secret: token.accessToken)))
        }

        private func fail(with text: String) throws -> Never {
            Console.result(unchanged: "\(text)\n")
            throw ExitCode.failure
        }

        /// The exact sites of the sign-ins that are given out; no token is.
        private func list() throws {
            let source = try source
            let session = try VaultAccess(home: source.home, secrets: source.secrets).session()
            let names = Set(try session.perform(ListTokenPermissions()).filter { $0.permitted != nil }.map(\.name))
            var found: [String: String] = [:]
            let rules = try source.home.sites().rules
            // `get` refuses these sites.
            let limited = Set(rules.filter { $0.limits != nil }.map(\.pattern))
            for rule in rules where rule.answer.contains(.bearer) && rule.isForAllClients {
                guard case .exact = rule.pattern.host, rule.pattern.scheme == .https, names.contains(rule.credential),
                    name.map({ $0 == rule.credential }) ?? true, !limited.contains(rule.pattern)
                else { continue }
                found[rule.pattern.description] = user
            }
            Console.result(unchanged: try Console.jsonLine(found))
        }

        private struct Found: Encodable {
            enum CodingKeys: String, CodingKey {
                case serverURL = "ServerURL"
                case username = "Username"
                case secret = "Secret"
            }

            let serverURL: String
            let username: String
            let secret: String
        }
    }
}
