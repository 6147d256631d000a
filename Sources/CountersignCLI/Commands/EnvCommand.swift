// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignClientSetup
import CountersignHome
import CountersignProxy
import FoundationEssentials

/// `countersign env`.
struct EnvCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "env",
        abstract: "Print shell commands that set the proxy and CA variables for a running proxy.",
        discussion: """
            Sets http_proxy, https_proxy, all_proxy, ws_proxy, wss_proxy and the proxy variables of git, pip and \
            Cargo. Sets the CA variables of OpenSSL, curl, git, Python, Node, Deno, Go, Ruby, Rust, Cargo, AWS, \
            gcloud, gRPC and Nix to a bundle of the system's trust anchors, Certs/anchors and the interception CA. \
            Appends the same settings for Java to JAVA_TOOL_OPTIONS. For wget, apt and, if you have a .curlrc, curl, \
            writes configuration files that begin with your own. Node reads a proxy from the environment only since \
            version 24 (22.21).

            Unsets NO_PROXY and no_proxy, which would bypass the proxy, and HTTP_PROXY, which some programs prefer to \
            http_proxy and which CGI programs can receive from a request's header. If you have set a proxy yourself, \
            a warning says that it is replaced. --off restores all variables.

            EXAMPLES:
              eval "$(countersign env)"
              eval "$(countersign env --off)"
              countersign env --shell fish | source
            """)

    @OptionGroup var homeOption: HomeOption

    @Option(help: ArgumentHelp("Write commands for this shell.", valueName: "shell"))
    var shell: ClientEnvironment.Shell = .sh

    @Flag(help: "Restore the variables that an earlier call has replaced in this shell.")
    var off = false

    @Option(
        help: ArgumentHelp(
            "The running proxy's address. (default: the address of this home's `countersign serve`)",
            valueName: "host:port"))
    var listen: String?

    @Option(
        help: ArgumentHelp("The running proxy's token file. The proxy URL will contain the token.", valueName: "file"))
    var clientTokenFile: String?

    @Option(
        help: ArgumentHelp(
            "The name of the token, if the file has several. (default: the first)", valueName: "name"))
    var clientToken: String?

    @OptionGroup var secrets: SecretOption

    func validate() throws {
        guard let listen else { return }
        guard case .tcp(_, let port) = try ListenAddress(parsing: listen).address, port != 0 else {
            throw ValidationError("--listen \(listen) cannot be used in a proxy variable, which needs HOST:PORT")
        }
    }

    func run() throws {
        let inherited = ProcessInfo.processInfo.environment
        if off {
            guard let script = ClientEnvironment.scriptOff(for: shell, inherited: inherited) else {
                return Console.warning("`countersign env` has not set this shell's variables; nothing is changed")
            }
            return Console.result(unchanged: script)
        }
        let home = try homeOption.locatedOrNew()
        // The list is at fault before the missing server is.
        _ = try home.sites()
        let (address, tokenFile) = try runningProxy(of: home)
        let token = try (clientTokenFile ?? tokenFile).map { try ClientTokenFile(path: $0).read(name: clientToken) }
        let trust = ClientTrust(home: home, access: VaultAccess(home: home, secrets: secrets.input))
        let environment = try trust.environment(
            for: address.address, token: token,
            files: trust.files(named: "env-\(address.text.replacing(":", with: "-"))"), inherited: inherited)
        if let warning = environment.replaced.warning {
            Console.warning(warning, hint: "restore them with: countersign env --off")
        }
        SiteReports.write([GitOverrides(environment: inherited).warning].compactMap(\.self))
        Console.result(unchanged: environment.script(for: shell))
    }

    /// The address of `--listen`, else the first TCP address of the home's running server and its token file.
    private func runningProxy(of home: Home) throws -> (ListenAddress, tokenFile: String?) {
        if let listen { return (try ListenAddress(parsing: listen), nil) }
        let server: ControlReply
        do {
            server = try ControlSocket.ask(.status, of: home)
        } catch let error as CountersignError where error.code == .notRunning {
            let usual = "127.0.0.1:3128"
            Console.warning("\(error.detail); the variables are for \(usual)", hint: error.hint)
            return (try ListenAddress(parsing: usual), nil)
        }
        let addresses = server.addresses ?? ["127.0.0.1:3128"]
        guard let address = addresses.first(where: { !$0.hasPrefix("unix:") }) else {
            throw CountersignError(
                .environment, "the server of \(home.path) listens only on \(addresses.joined(separator: ", "))",
                hint: "a proxy variable needs HOST:PORT: start it with --listen 127.0.0.1:0, too")
        }
        return (try ListenAddress(parsing: address), server.clientTokenFile)
    }
}

extension ClientEnvironment.Shell: ExpressibleByArgument {}
