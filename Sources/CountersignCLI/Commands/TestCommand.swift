// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignAddresses
import CountersignHome
import CountersignNIO
import CountersignCryptography
import CountersignProxy
import CountersignReporting
import CountersignRouting
import Dispatch
import FoundationEssentials
import Glibc
import Synchronization

/// `countersign test`.
struct TestCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test",
        abstract: "Send one real request to a URL, and show what happened and what to do next.",
        discussion: """
            Sends a GET through a proxy of its own, with the credentials of the home. Shows the route, the three \
            checks, whether the server's certificate verifies and whether it is revoked, the answer, the response, and \
            the command that helps if something is missing. A password that the site rejects counts as rejected, as from any other program.

            Exit status: 0 if the site responded with neither an error of TLS or the proxy nor a 401, and did not ask in \
            vain for a client certificate before it responded with an error; 1 otherwise.

            EXAMPLES:
              countersign test https://git.corp.example/tools.git
              countersign test --json git.corp.example | jq .next
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var output: JSONOption
    @OptionGroup var parents: ParentOptions
    @OptionGroup var secrets: SecretOption

    @Argument(help: ArgumentHelp("A URL; https:// may be left out.", valueName: "url"))
    var url: String

    func run() async throws {
        let url = try AbsoluteURL(parsing: url, defaultScheme: .https)
        let home = try homeOption.located()
        let access = VaultAccess(home: home, secrets: secrets.input)
        _ = try home.sites()
        _ = try home.anchorFiles()
        if !parents.isGiven, let report = try access.report(.test(url: url.description), at: url.origin) {
            return try show(report, home)
        }
        let routes = try await parents.loadedFinder(home)
        let logger = ConsoleLogHandler.logger(.error)
        let keeper = try PolicyKeeper(
            home: home, interception: .whenNeeded, environment: ProcessInfo.processInfo.environment, logger: logger,
            now: { Int64(time(nil)) }, again: access.again, passphrase: access.passphrase)
        if let shut = keeper.vaultErrorAtStart { throw shut }
        ParentOptions.answerParents(with: keeper, logger: logger)
        try show(try await Self.report(url, keeper, routes), home)
    }

    private func show(_ report: PolicyReport, _ home: Home) throws {
        Console.result(output.json ? report.json : PrintedCommand.complete(report.text))
        guard !report.isGood else { return }
        SiteReports.write(home.ignoredSiteFiles + home.ignoredAnchorFiles)
        throw ExitCode.failure
    }

    /// Sends the request through a proxy of its own. If the task is cancelled, ends within a second or two, and throws.
    static func report(
        _ url: AbsoluteURL, _ keeper: PolicyKeeper, _ routes: RouteFinder?
    ) async throws -> PolicyReport {
        let home = keeper.home
        let logger = ConsoleLogHandler.logger(.error)
        let token = Secret(utf8: Hex.encode(Randomness.bytes(16)))
        var configuration = ProxyConfiguration()
        configuration.listeningAddresses = [.tcp(host: "127.0.0.1", port: 0)]
        configuration.clientTokens = [ClientToken(token)]
        configuration.drainSeconds = 0
        let unanswered = UnansweredSites(policy: keeper.policy)
        let runtime = try await ProxyRuntime(
            keeper: keeper, configuration: configuration, accessLog: nil, threads: 1, hasControlSocket: false,
            isTemporary: true, observer: unanswered.observer, routes: routes, logger: logger)
        let client = CurlClient(
            proxy: "http://countersign:\(token.utf8Text ?? "")@\(runtime.addresses.first ?? "")",
            trustPath: home.bundle.isRegular ? home.bundle.path : nil, userAgent: "countersign-test")
        let isCancelled = Atomic(false)
        let response = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                DispatchQueue(label: "countersign.test").async {
                    continuation.resume(
                        returning: client.get(url.description) { isCancelled.load(ordering: .relaxed) })
                }
            }
        } onCancel: {
            isCancelled.store(true, ordering: .relaxed)
        }
        await runtime.stop()
        guard !Task.isCancelled else {
            throw CountersignError(.refused, "`countersign serve` was stopped before the site responded")
        }
        let route = try? await RouteHop.all(to: url.description, routes)
        let result = TestResult(url, response, unanswered, keeper.policy.current, route: route ?? [])
        return PolicyReport(text: result.text, json: try Console.json(result), isGood: result.isGood)
    }
}
