// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import FoundationEssentials
import CountersignProxy

/// `countersign env`.
struct EnvCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "env",
        abstract: "Print shell commands that point programs at a running proxy.",
        discussion: """
            Sets http_proxy, https_proxy, HTTPS_PROXY, all_proxy and ALL_PROXY, and the CA variables of OpenSSL, curl, git, \
            Python, Node, Deno, Go, Ruby, Rust, Cargo, AWS, gcloud, gRPC and Nix to a bundle of the system's anchors, \
            Certs/anchors and the interception CA. JAVA_TOOL_OPTIONS says both to Java, behind what it says already.

            Unsets NO_PROXY and no_proxy, which would lead past the proxy, and HTTP_PROXY, which some programs prefer to \
            http_proxy and CGI programs take from a request.

            EXAMPLES:
              eval "$(countersign env)"
              countersign env --shell fish | source
            """)

    @OptionGroup var homeOption: HomeOption

    @Option(help: ArgumentHelp("The shell that is to read it: sh or fish.", valueName: "shell"))
    var shell: ClientEnvironment.Shell = .sh

    @Option(help: ArgumentHelp("Where the running proxy listens.", valueName: "host:port"))
    var listen = "127.0.0.1:3128"

    @Option(help: ArgumentHelp("The running proxy's token file; the token becomes part of the URL.", valueName: "file"))
    var clientTokenFile: String?

    @OptionGroup var secrets: SecretOption

    func validate() throws {
        guard case .tcp(_, let port) = try ListenAddress(parsing: listen).door, port != 0 else {
            throw ValidationError("--listen \(listen) cannot be put into a proxy variable: they take HOST:PORT")
        }
    }

    func run() throws {
        let home = try homeOption.located()
        let address = try ListenAddress(parsing: listen)
        let token = try clientTokenFile.map { try ClientTokenFile(path: $0).read() }
        let trust = ClientTrust(home: home, door: VaultDoor(home: home, secrets: secrets.input))
        let environment = try trust.environment(
            for: address.door, token: token, inherited: ProcessInfo.processInfo.environment)
        Console.result(environment.script(for: shell))
    }
}

extension ClientEnvironment.Shell: ExpressibleByArgument {}
