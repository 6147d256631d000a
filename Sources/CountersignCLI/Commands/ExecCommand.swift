// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignClientSetup
import CountersignHome
import CountersignNIO
import CountersignCryptography
import CountersignProxy
import CountersignReporting
import CountersignSitePolicy
import FoundationEssentials
import Glibc

/// `countersign exec`.
struct ExecCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "exec",
        abstract: "Run a command through its own proxy.",
        discussion: """
            Starts a proxy on a free loopback port, sets the variables that `countersign env` prints, and runs the \
            command. The proxy serves only the command and its child processes, which it recognises by process ID, and \
            clients that send the token contained in the proxy variables. Processes of other users need --allow-user: \
            apt, run by root, downloads as the user _apt.

            sudo removes the variables from the environment, so that `exec -- sudo apt-get update` bypasses the proxy. \
            Run sudo first, as in the last example; it uses root's home unless you pass --home.

            If the vault has a passphrase and the running `countersign serve` has it open, that runs the proxy, and \
            nobody is asked for the passphrase. With --access-log, --allow-user, --allow-local, --sandbox or --as, \
            this command runs it.

            With --sandbox, the command reaches listed sites only, and sees the system's programs, the folder in which \
            it starts and the paths that you name. Your home folder is empty, and the rest of the network and the \
            machine is not there.

            At its end, one line on standard error for each site whose challenge was not answered says why, and which \
            command helps.

            The command uses the terminal directly; SIGINT, SIGTERM and SIGHUP are forwarded to it. Exit status: the \
            command's own; 127 if it is not found; 126 if it cannot be run; 128+N if signal N ended it.

            EXAMPLES:
              countersign exec -- curl https://git.corp.example/
              countersign exec --home ./work -- sh -c 'git pull && make'
              sudo countersign exec --allow-user _apt -- apt-get update
              countersign exec --sandbox --sandbox-read ~/.gitconfig --as agent -- ./agent
            """)

    @OptionGroup var homeOption: HomeOption

    @OptionGroup var sandbox: SandboxOptions

    @Option(
        name: .customLong("as"),
        help: ArgumentHelp(
            "Give the command's client token this name, which for=token:NAME in the list of sites permits.",
            valueName: "name"))
    var clientName: String?

    @OptionGroup var logOptions: AccessLogOptions

    @OptionGroup var allowedUsers: AllowedUserOption
    @OptionGroup var spool: SpoolOption
    @OptionGroup var localNames: LocalNamesOption
    @OptionGroup var http2: HTTP2Option
    @OptionGroup var parents: ParentOptions

    @OptionGroup var secrets: SecretOption

    @Argument(
        parsing: .captureForPassthrough, help: ArgumentHelp("The command and its arguments.", valueName: "command"))
    var command: [String] = []

    var words: [String] { command.first == "--" ? Array(command.dropFirst()) : command }

    func validate() throws {
        // The parser captures an unknown option before the command as the first word of the command.
        if let first = command.first, first != "--", first.hasPrefix("-") {
            if first == "--help" || first == "-h" { throw CleanExit.helpRequest(Self.self) }
            throw ValidationError("unknown option '\(first)'")
        }
        guard !words.isEmpty else { throw ValidationError("there is no command to run") }
        if let clientName, !ClientRule.Word.isName(clientName) {
            throw ValidationError(
                "--as \(clientName.debugDescription) is not a name: write letters, digits, . _ and -, and begin with a "
                    + "letter or digit")
        }
        guard !sandbox.isOn || allowedUsers.allowUser.isEmpty else {
            throw ValidationError("--allow-user has no effect with --sandbox, in which there are no other users")
        }
    }

    func run() async throws {
        let descriptors = InheritedDescriptors.atStart
        let home = try homeOption.locatedOrNew()
        let access = VaultAccess(home: home, secrets: secrets.input)
        Startup.reportHardening()
        if let proxy = try serverProxy(home, access) {
            let status = try await run(
                through: proxy.address, token: proxy.token, home, access, descriptors)
            switch proxy.end() {
            case .finished(let report): ExecSummary(report: report, home: home).write(status: status)
            case .stopped(let report):
                Console.warning("`countersign serve` stopped while the command used it")
                if let report { ExecSummary(report: report, home: home).write(status: status) }
            case .silent: Console.warning("`countersign serve` does not respond; the command used it")
            }
            throw ExitCode(status)
        }
        throw ExitCode(try await runWithOwnProxy(home, access, descriptors))
    }

    /// Runs the proxy in this process, and the command; returns its exit status.
    private func runWithOwnProxy(
        _ home: Home, _ access: VaultAccess, _ descriptors: InheritedDescriptors
    ) async throws -> Int32 {
        let logger = ConsoleLogHandler.logger(.warning)
        let keeper = try PolicyKeeper(
            home: home, interception: .always, environment: ProcessInfo.processInfo.environment, logger: logger,
            now: { Int64(time(nil)) }, again: access.again, passphrase: access.passphrase)
        if let shut = keeper.vaultErrorAtStart { throw shut }
        ParentOptions.answerParents(with: keeper, logger: logger)
        EndingWarnings.writeLastDay(of: keeper)
        let token = Secret(utf8: Hex.encode(Randomness.bytes(16)))
        let routes = try await parents.loadedFinder(home)
        let upkeep = Task { await routes?.run() }
        defer { upkeep.cancel() }
        let unanswered = UnansweredSites(policy: keeper.policy)
        let sandboxed = try await sandbox.isOn ? startInSandbox(token, home, access, descriptors) : nil
        defer { sandboxed?.files.remove() }
        let runtime: ProxyRuntime
        do {
            runtime = try await ProxyRuntime(
                keeper: keeper, configuration: try configuration(token, home, sandboxed),
                accessLog: try logOptions.open(logger), threads: 1, hasControlSocket: false,
                observer: unanswered.observer, routes: routes, logger: logger)
        } catch {
            await sandboxed?.child.abandon()
            throw error
        }
        let status: Int32
        do {
            if let sandboxed {
                status = await sandboxed.child.run()
            } else {
                status = try await run(
                    through: runtime.addresses.first ?? "", token: token, home, access, descriptors)
            }
        } catch {
            await runtime.stop()
            throw error
        }
        await runtime.stop()
        let isListEmpty = keeper.policy.current.sites.isReallyEmpty
        ExecSummary(report: UnansweredReport(unanswered, isListEmpty: isListEmpty), home: home).write(status: status)
        return status
    }

    private func configuration(
        _ token: Secret, _ home: Home, _ sandboxed: Sandboxed?
    ) throws -> ProxyConfiguration {
        var configuration = ProxyConfiguration()
        if let sandboxed {
            configuration.listeningAddresses = [.sandbox(descriptor: sandboxed.child.listener)]
            configuration.refusesUnlistedSites = true
        } else {
            configuration.listeningAddresses = [.tcp(host: "127.0.0.1", port: 0)]
        }
        configuration.clientTokens = [ClientToken(token, name: clientName)]
        configuration.admittedAncestor = getpid()
        configuration.allowedUsers = try allowedUsers.numbers()
        spool.apply(to: &configuration, home)
        configuration.permitsLocalNames = localNames.allowLocal
        configuration.speaksHTTP2 = !http2.isOff
        configuration.drainSeconds = 0
        return configuration
    }

    /// A proxy in the home's running server if that has the vault open, so that the passphrase is not needed. It
    /// neither writes an access log nor admits other users, knows no name of the command and no sandbox, and refuses
    /// names of other owners that lead to this machine.
    private func serverProxy(_ home: Home, _ access: VaultAccess) throws -> ServerProxy? {
        guard !parents.isGiven, !secrets.passwordStdin, logOptions.accessLog == nil,
            allowedUsers.allowUser.isEmpty, !localNames.allowLocal, !http2.isOff, !sandbox.isOn, clientName == nil,
            let server = access.server(failed: VaultAccess.opensVault)
        else { return nil }
        // Faults that the server has only logged.
        let sites = try home.sites()
        _ = try home.anchorFiles()
        guard access.hasSameTickets(server, for: sites.rules) else { return nil }
        return try server.openProxy(spoolBytes: spool.limitBytes, declined: VaultAccess.opensVault)
    }

    /// Runs the command with the variables for a proxy, and returns its exit status.
    private func run(
        through proxy: String, token: Secret, _ home: Home, _ access: VaultAccess, _ descriptors: InheritedDescriptors
    ) async throws -> Int32 {
        let inherited = ProcessInfo.processInfo.environment
        let listening = try ListenAddress(parsing: proxy)
        let trust = ClientTrust(home: home, access: access)
        let files = try trust.files(named: ClientFiles.nameOfThisProcess())
        defer { files.remove() }
        let environment = try trust.environment(
            for: listening.address, token: token, files: files, inherited: inherited)
        if let warning = environment.replaced.warning { Console.warning(warning) }
        SiteReports.write(
            [
                GitOverrides(environment: inherited).warning,
                SubversionOptions.warning(for: words, rootPath: home.rootCertificate.path),
            ].compactMap(\.self))
        return try await ChildProcess.run(
            words, environment: environment.applied(to: inherited), descriptors: descriptors)
    }
}
