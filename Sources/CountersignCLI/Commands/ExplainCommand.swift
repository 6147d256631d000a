// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignAddresses
import CountersignHome
import CountersignReporting
import CountersignSitePolicy
import Glibc
import Logging

/// `countersign explain`.
struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Show the three checks for a URL and their result, without sending anything.",
        discussion: """
            The checks: is the site listed, does its line permit the kind of challenge, and is there a credential or \
            identity to answer with. If requests go out through parent proxies, the route is shown with its reason, \
            as by `countersign route`. Sends nothing to the site and creates nothing in the home. Exit status: 0, \
            whether or not the checks pass; for scripts, see `countersign sites check`.

            EXAMPLES:
              countersign explain https://git.corp.example/
              countersign explain --method POST https://git.corp.example/api/v1/users
              countersign explain --client exe:/usr/bin/git https://git.corp.example/
              countersign explain --json https://git.corp.example/ | jq .schemes
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var output: JSONOption
    @OptionGroup var parents: ParentOptions
    @OptionGroup var secrets: SecretOption

    @Option(help: ArgumentHelp("The request's method.", valueName: "method"))
    var method = "GET"

    @OptionGroup var client: ClientOption

    @Argument(help: ArgumentHelp("A URL; https:// may be left out.", valueName: "url"))
    var url: String

    func run() throws {
        let home = try homeOption.located()
        let parsed = try AbsoluteURL(parsing: url, defaultScheme: .https)
        let access = VaultAccess(home: home, secrets: secrets.input)
        // Faults that a running server has only logged.
        _ = try home.sites()
        _ = try home.anchorFiles()
        let question = PolicyQuestion.explain(url: url, method: method, client: client.client)
        if !parents.isGiven, let report = try access.report(question, at: parsed.origin) { return show(report) }
        let now = Int64(time(nil))
        let keeper = try PolicyKeeper(
            home: home, interception: .never, environment: [:], logger: ConsoleLogHandler.logger(.warning),
            now: { now },
            again: access.again, passphrase: access.passphrase)
        if let shut = keeper.vaultErrorAtStart {
            Console.warning("\(shut.detail); its credentials are not taken into account", hint: shut.hint)
        }
        show(try Self.report(parsed, method, client.client, keeper, route: try parents.route(to: url, home)))
    }

    private func show(_ report: PolicyReport) {
        Console.result(output.json ? report.json : PrintedCommand.complete(report.text))
    }

    static func report(
        _ url: AbsoluteURL, _ method: String?, _ client: String?, _ keeper: PolicyKeeper, route: [RouteHop]
    ) throws -> PolicyReport {
        let now = Int64(time(nil))
        let records = try BreakerFile(home: keeper.home, now: { now }).read()
        let policy = keeper.policy.current
        var explanation = Explanation(
            of: url.origin, SiteRequest(method: method ?? "GET", target: ArraySlice(url.path.utf8)),
            for: try ClientOption.client(client, in: policy.sites), policy: policy, records: records, now: now,
            broker: { BrokerReach.check(for: $0) })
        if route.isBySetting {
            explanation.route = route
            explanation.anchors = try keeper.home.anchors().map(\.subject)
        }
        return PolicyReport(text: explanation.description, json: try Console.json(explanation))
    }
}
