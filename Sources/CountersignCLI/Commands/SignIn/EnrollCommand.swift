// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignOAuth
import CountersignSignIn
import CountersignVault
import FoundationEssentials
import Glibc

/// `countersign enroll`.
struct EnrollCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "enroll",
        abstract: "Sign in once at an OAuth 2.0 provider, for all clients of the proxy.",
        discussion: """
            The profile is a JSON document that your organisation hands out, as a file or at an https URL. The command \
            shows what it contains, asks, and opens the provider's page in a browser. Bearer challenges of the \
            profile's sites are answered with the access token from then on. It is renewed when necessary.

            User agents: `system` is your browser ($BROWSER, else the desktop's). `system-private` is a window of \
            Chromium or Firefox that shares no cookies with it. `device` shows a code that you enter in a browser \
            anywhere (RFC 8628). The default is the profile's, else `system` on a machine with a display, else \
            `device`.

            The URL is always printed. If the browser is on another machine, paste the address of the page to which \
            the sign-in has led into the terminal.

            EXAMPLES:
              countersign enroll https://acme.example/countersign.json
              countersign enroll profile.json --user-agent device
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var secrets: SecretOption

    @Argument(help: ArgumentHelp("A file or an https URL.", valueName: "profile"))
    var profile: String

    @Option(help: ArgumentHelp("Sign in with system, system-private or device.", valueName: "agent"))
    var userAgent: UserAgentKind?

    @Option(
        help: ArgumentHelp(
            "The name of the sign-in and its access token. (default: the profile's, else the provider's host)",
            valueName: "name"))
    var name: String?

    @Flag(help: "Do what the profile says without a prompt.")
    var yes = false

    @Flag(help: "Write the progress to standard output as JSON, one object per line.")
    var events = false

    @Option(help: ArgumentHelp("Wait this long for the sign-in.", valueName: "seconds"))
    var timeout = 600

    func validate() throws {
        if let fault = name.flatMap(SignInName.fault) { throw ValidationError("--name \(fault)") }
        guard (1...86_400).contains(timeout) else { throw ValidationError("--timeout must be 1 to 86400 seconds") }
    }

    func run() async throws {
        let interrupts = Interrupts()
        let home = try homeOption.locatedOrNew()
        let client = try home.providerClient(now: Self.now)
        let (profile, source) = try await read(client)
        let name = self.name ?? profile.name ?? SignInName.implied(by: profile.issuer)
        try SignInName.check(name)
        let lines = profile.siteLines(name: name)
        let environment = ProcessInfo.processInfo.environment
        let kind = userAgent ?? profile.userAgent ?? UserAgentKind.preferred(in: environment)
        try profile.check(kind)
        try Confirmation(isGiven: yes).check()
        let access = VaultAccess(home: home, secrets: secrets.input)
        let existing = try SealedVault(home: home.path).exists() ? try access.session(creates: true) : nil
        let former = try existing?.signIns(.listSignIns).first { $0.name == name }
        try check(former, isReplacedBy: profile.issuer)
        let summary = ProfileSummary(
            profile, name: name, agent: kind, source: source, former: former, list: try home.sites())
        guard try Confirmation(isGiven: yes).asks("\(summary.text)Sign in?") else {
            throw CountersignError(.refused, "nothing was done")
        }
        if yes { Console.write(summary.text, to: STDERR_FILENO) }
        let session = try existing ?? access.session(creates: true)
        guard try session.signIns(.checkSignIn(name: name, sites: lines)).first?.issuer == former?.issuer else {
            throw CountersignError(.refused, "another sign-in \(name.debugDescription) was stored meanwhile")
        }
        let reporter = SignInReporter(isJSON: events)
        var nextLine: (@Sendable () async -> String?)?
        if let lines = TerminalLines() { nextLine = { await lines.next() } }
        let flow = SignInFlow(
            profile, client: client, agent: Self.agent(kind, environment), limit: .seconds(timeout), now: Self.now,
            nextLine: nextLine, report: reporter.report)
        let result = try await interrupts.cancelling { try await flow.run() }
        let new = NewSignIn(result, name: name, profile, source: source, sites: lines, former: former, at: Self.now())
        if let former, !former.subject.isEmpty, former.subject != new.subject {
            Console.warning("\(new.account) takes the place of \(former.account), who was signed in before")
        }
        do {
            try Self.store(new, result.tokens, in: session, interrupts)
        } catch {
            await Self.discard(new, result.tokens, of: profile, client, session)
            throw interrupts.exitCode ?? error
        }
        reporter.stored(new)
    }

    /// Waits for the renewal of a former sign-in until the person interrupts it.
    private static func store(
        _ new: NewSignIn, _ tokens: TokenSet, in session: VaultSession, _ interrupts: Interrupts
    ) throws {
        guard !interrupts.haveArrived else { throw CountersignError(.refused, "the command was interrupted") }
        let result = try session.perform(
            .storeSignIn(new), secret: SignInTokens(tokens).encoded, isAbandoned: { interrupts.haveArrived },
            report: { progress in
                guard progress == .waitingForOtherProcess else { return }
                Console.log(
                    "info",
                    "another process is renewing the access token of \(new.name.debugDescription): waiting for it; "
                        + "Ctrl-C revokes the new tokens")
            })
        guard case .done = result else { throw VaultSession.unexpected }
    }

    /// Revokes tokens that were not stored: nobody could use or end them any more.
    private static func discard(
        _ new: NewSignIn, _ tokens: TokenSet, of profile: SignInProfile, _ client: ProviderClient,
        _ session: VaultSession
    ) async {
        // If the vault cannot be read, they may be stored.
        guard let signIns = try? session.signIns(.listSignIns) else { return }
        guard !signIns.contains(where: { $0.identifier == new.identifier }) else {
            return Console.warning("the sign-in is stored, but not complete; `countersign enroll` completes it")
        }
        if let warning = await client.revoke(tokens, of: profile).warning {
            Console.warning("the new tokens are not stored, and the provider has not revoked them: \(warning)")
        } else {
            Console.warning("the new tokens are not stored; the provider has revoked them")
        }
    }

    /// Another provider's profile must not take over a name that the person has not chosen for it: the sites with that
    /// name would get its token.
    private func check(_ former: ListedSignIn?, isReplacedBy issuer: Issuer) throws {
        guard let former, former.issuer != issuer.text, self.name == nil else { return }
        let name = former.name
        throw CountersignError(
            .nameInUse,
            "the sign-in \(name.debugDescription) is at \(former.issuer), and the profile's provider is \(issuer)",
            hint: "choose another name with --name, replace it with --name \(name), or end it with "
                + "`countersign unenroll \(name)`")
    }

    private func read(_ client: ProviderClient) async throws -> (profile: SignInProfile, source: String) {
        let document: [UInt8]
        var source = profile
        if profile.contains("://") {
            let url = try EndpointURL(profile, "the profile's address")
            document = try await client.profile(at: url)
        } else {
            document = try HomeFile(path: profile).read(upTo: SignInProfile.maximumBytes)
            source = ServeCommand.absolutePath(profile) ?? profile
        }
        do {
            return (try SignInProfile(document), source)
        } catch {
            guard let diagnostic = Diagnostic.all(in: error).first else { throw error }
            throw CountersignError(
                .configuration, "\(profile): \(diagnostic.message)",
                hint: diagnostic.hint ?? "Documentation/profile.schema.json describes profiles")
        }
    }

    private static func agent(_ kind: UserAgentKind, _ environment: [String: String]) -> SignInFlow.Agent {
        switch kind {
        case .system: .browser(SystemBrowser(environment: environment))
        case .systemPrivate: .browser(PrivateBrowser(environment: environment))
        case .device: .device
        }
    }

    /// Seconds since 1970.
    @Sendable static func now() -> Int64 { Int64(time(nil)) }
}

extension UserAgentKind: ExpressibleByArgument {}

extension NewSignIn {
    fileprivate init(
        _ result: SignInResult, name: String, _ profile: SignInProfile, source: String, sites: [String],
        former: ListedSignIn?, at now: Int64
    ) {
        self.init(
            name: name, profile: profile.text, source: source, issuer: profile.issuer.text,
            subject: result.idToken?.subject ?? "", account: result.idToken?.accountName ?? "",
            scope: result.tokens.scope ?? "", sites: sites, signedIn: now, expires: result.tokens.expiresAt ?? 0,
            formerIssuer: former?.issuer)
    }
}
