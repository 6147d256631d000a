// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCryptography
import CountersignHome
import FoundationEssentials

extension TokenCommand {
    struct Kubectl: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "kubectl",
            abstract: "Give kubectl the access token: an exec plugin of its configuration.",
            discussion: """
                Prints an ExecCredential of client.authentication.k8s.io, in the version that KUBERNETES_EXEC_INFO \
                names: v1 or v1beta1. If kubectl names the cluster, because the configuration has \
                `provideClusterInfo: true`, the token is given to a server that the list of sites gives it to, and to \
                no other.

                EXAMPLES:
                  countersign token kubectl work
                  kubectl config set-credentials work --exec-command=countersign \\
                    --exec-api-version=client.authentication.k8s.io/v1 \\
                    --exec-interactive-mode=Never \\
                    --exec-arg=token --exec-arg=kubectl --exec-arg=work
                """)

        @OptionGroup var homeOption: HomeOption

        @Argument(help: ArgumentHelp("The sign-in's name.", valueName: "name"))
        var name: String

        @Option(
            help: ArgumentHelp(
                "Print the token only if the list of sites gives it to this https site.", valueName: "url"))
        var site: String?

        func validate() throws { try SiteArgument.check(site) }

        func run() throws {
            let request = try ExecInfo(ProcessInfo.processInfo.environment["KUBERNETES_EXEC_INFO"])
            let source = TokenSource(home: try homeOption.located(), secrets: SecretInput(isStandardInput: false))
            if let server = request.server, site != nil { _ = try source.token(of: name, site: server) }
            let token = try source.token(of: name, site: site ?? request.server)
            Console.result(
                unchanged: try Console.jsonLine(
                    Credential(
                        apiVersion: request.version,
                        status: Status(
                            expirationTimestamp: token.expires.map(WallClock.rfc3339), token: token.accessToken))))
        }

        private struct Credential: Encodable {
            let apiVersion: String
            let kind = ExecInfo.kind
            let status: Status
        }

        private struct Status: Encodable {
            let expirationTimestamp: String?
            let token: String
        }
    }
}

/// The request of kubectl, in `KUBERNETES_EXEC_INFO`.
struct ExecInfo {
    static let kind = "ExecCredential"
    private static let versions = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"]

    let version: String
    /// The URL of the cluster's server; nil if kubectl does not name it.
    let server: String?

    /// Without the variable, as in a shell, the newest version.
    init(_ text: String?) throws {
        guard let text, !text.isEmpty else {
            (version, server) = (Self.versions[0], nil)
            return
        }
        guard let document = try? JSONDecoder().decode(Document.self, from: Data(text.utf8)),
            document.kind == Self.kind
        else {
            throw CountersignError(
                .configuration, "KUBERNETES_EXEC_INFO is not an ExecCredential in JSON",
                hint: "kubectl sets it; unset it to run this command yourself")
        }
        guard Self.versions.contains(document.apiVersion) else {
            throw CountersignError(
                .configuration, "kubectl wants \(document.apiVersion.debugDescription)",
                hint: "set apiVersion in its configuration to \(Self.versions.joined(separator: " or "))")
        }
        (version, server) = (document.apiVersion, document.spec?.cluster?.server)
    }

    private struct Document: Decodable {
        struct Spec: Decodable {
            struct Cluster: Decodable {
                let server: String?
            }

            let cluster: Cluster?
        }

        let apiVersion: String
        let kind: String
        let spec: Spec?
    }
}
