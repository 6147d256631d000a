// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignProxy
import FoundationEssentials

/// `countersign env`.
struct EnvCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "env",
        abstract: "Print shell commands that set the proxy and CA variables for a running proxy.",
        discussion: """
            Sets http_proxy, https_proxy, HTTPS_PROXY, all_proxy and ALL_PROXY. Sets the CA variables of OpenSSL, \
            curl, git, Python, Node, Deno, Go, Ruby, Rust, Cargo, AWS, gcloud, gRPC and Nix to a bundle of the \
            system's trust anchors, Certs/anchors and the interception CA. Appends the same settings for Java to \
            JAVA_TOOL_OPTIONS.

            Unsets NO_PROXY and no_proxy, which would bypass the proxy, and HTTP_PROXY, which some programs prefer to \
            http_proxy and which CGI programs can receive from a request's header.

            EXAMPLES:
              eval "$(countersign env)"
              countersign env --shell fish | source
            """)

    @OptionGroup var homeOption: HomeOption

    @Option(help: ArgumentHelp("Write commands for this shell.", valueName: "shell"))
    var shell: ClientEnvironment.Shell = .sh

    @Option(help: ArgumentHelp("The running proxy's address.", valueName: "host:port"))
    var listen = "127.0.0.1:3128"

    @Option(
        help: ArgumentHelp("The running proxy's token file. The proxy URL will contain the token.", valueName: "file"))
    var clientTokenFile: String?

    @OptionGroup var secrets: SecretOption

    func validate() throws {
        guard case .tcp(_, let port) = try ListenAddress(parsing: listen).address, port != 0 else {
            throw ValidationError("--listen \(listen) cannot be used in a proxy variable, which needs HOST:PORT")
        }
    }

    func run() throws {
        let home = try homeOption.located()
        let address = try ListenAddress(parsing: listen)
        let token = try clientTokenFile.map { try ClientTokenFile(path: $0).read() }
        let trust = ClientTrust(home: home, access: VaultAccess(home: home, secrets: secrets.input))
        let environment = try trust.environment(
            for: address.address, token: token, inherited: ProcessInfo.processInfo.environment)
        Console.result(environment.script(for: shell))
    }
}

extension ClientEnvironment.Shell: ExpressibleByArgument {}
