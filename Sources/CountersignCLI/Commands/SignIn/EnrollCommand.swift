// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignDeviceManagement
import CountersignHome
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

            If the profile names an EST service (RFC 7030), that issues a client certificate after the sign-in, for a \
            new key that stays in the vault. Sign-in and certificate are stored together, or neither is. `serve` and \
            `certificate refresh` renew the certificate.

            User agents: `system` is your browser ($BROWSER, else the desktop's). `system-private` is a window of \
            Chromium or Firefox that shares no cookies with it. `embedded` is a window of countersign-webview, a \
            separate program. `device` shows a code that you enter in a browser anywhere (RFC 8628). The default is \
            the profile's, else `system` on a machine with a display, else `device`.

            Profiles for google, github, gitlab, bitbucket, azure-devops and entra are built in; you register a client \
            with the provider, and pass its --client-id. If the client has a secret, the command asks for it, and keeps \
            it in the vault.

            A profile with "grant_type" is for a machine: it gets its token without a browser and a person. gcp, for a \
            service account of Google Cloud, and github-app, for an installation of a GitHub App, are built in; --key \
            names the file with the private key, which the vault keeps.

            A profile with "broker" gets its tokens from the identity broker on the session bus instead.

            The URL for a browser is printed. If the browser is on another machine, paste the address of the page to which \
            the sign-in has led into the terminal.

            Without a profile, name the https URL of a site that asks for tokens, such as an MCP server: its metadata \
            (RFC 9728) names the provider, which you confirm, and this program is registered as a client there (RFC 7591).

            EXAMPLES:
              countersign enroll https://api.example/mcp
              countersign enroll https://acme.example/countersign.json
              countersign enroll profile.json --user-agent device
              countersign enroll work --scope wiki.write
              countersign enroll work --acr-values phr --site https://payroll.example
              countersign enroll github --client-id Iv1.0123456789abcdef --client-secret-from 'exec:/usr/bin/pass github'
              countersign enroll profile.json --no-browser --redirect-port 8765
              countersign enroll gcp --key service-account.json
              countersign enroll github-app --client-id Iv23abc --installation 12345 --key app.pem
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var secrets: SecretOption

    @Argument(
        help: ArgumentHelp(
            "A file or an https URL, the name of a sign-in, whose profile is read again, or a provider that is built in.",
            valueName: "profile"))
    var profile: String

    @OptionGroup var provider: ProviderOptions
    @OptionGroup var clientSecret: ClientSecretOptions
    @OptionGroup var grant: GrantOptions
    @OptionGroup var redirect: RedirectOptions

    @Option(help: ArgumentHelp("Sign in with system, system-private, embedded or device.", valueName: "agent"))
    var userAgent: UserAgentKind?

    @Option(
        help: ArgumentHelp(
            "The name of the sign-in and its access token. (default: the profile's, else the provider's host)",
            valueName: "name"))
    var name: String?

    @Option(
        help: ArgumentHelp(
            "The account, for a profile whose tokens come from the identity broker. (default: the only one, else asked)",
            valueName: "user"))
    var account: String?

    @Option(help: ArgumentHelp("Also ask for this scope. May be repeated.", valueName: "scope"))
    var scope: [String] = []

    @OptionGroup var stepUp: StepUpOptions

    @Flag(
        name: .customLong("special-urls"),
        help: "Let the provider's pages enrol this device and install profiles, also if the profile does not say so.")
    var specialURLs = false

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
        // The proxy of an embedded window needs the passphrase, too.
        let input = clientSecret.input(besides: secrets)
        let access = VaultAccess(home: home, secrets: input, remembered: RememberedPassphrase())
        var session: VaultSession?
        let again = try namedSignIn(access, &session)
        guard
            again != nil || NamedMachine.isBuiltIn(self.profile) || SignInName.fault(of: self.profile) != nil
                || HomeFile.absolutePath(self.profile) != nil
        else {
            throw CountersignError(
                .configuration, "there is neither a file nor a sign-in named \"\(self.profile)\"",
                hint: "`countersign status` lists the sign-ins; a profile is a file or an https URL")
        }
        let machine = try grant.read(self.profile, again, client: provider.clientID)
        let (read, source) =
            if let machine {
                machine
            } else {
                try await provider.read(
                    self.profile, again, userAgent, clientSecret, with: client, redirect.redirectPort,
                    Confirmation(isGiven: yes))
            }
        let demand = try stepUp.demand(on: again, name: name, scopes: scope, list: home.sites)
        let wider = try read.adding(stepUp.stepUp(scopes: (demand == nil ? [] : again?.scopes ?? []) + scope))
        let wanted = specialURLs ? wider.enablingSpecialURLs() : wider
        let environment = ProcessInfo.processInfo.environment
        var kind = userAgent ?? wanted.userAgent ?? UserAgentKind.preferred(in: environment)
        var profile = try redirect.applied(to: wanted, kind)
        var plan = try SignInPlan(profile, from: source, name: name ?? again?.name)
        plan.keepsCertificate = again != nil && !scope.isEmpty
        plan.demand = demand
        try clientSecret.check(plan)
        try grant.check(plan)
        let usesBroker = profile.usesBroker
        guard usesBroker || profile.specialURLs != nil || account == nil else {
            throw CountersignError(
                .configuration, "--account is for profiles with \"broker\", and \(source) is none",
                hint: "choose the account on the provider's page")
        }
        if profile.grant != nil, userAgent != nil {
            throw CountersignError(
                .configuration, "--user-agent is for sign-ins of a person, and \(source) is for a machine",
                hint: "leave --user-agent out")
        }
        let opensPage = !usesBroker && profile.grant == nil
        if opensPage, !redirect.noBrowser || !Confirmation.hasTerminal { try profile.check(kind) }
        if kind == .embedded, opensPage { try EmbeddedAgent.check(environment) }
        try Confirmation(isGiven: yes).check()
        let readsSecret = clientSecret.clientSecretStdin
        if session == nil, try SealedVault(home: home.path).exists() {
            session = try access.session(creates: true, readsSecret: readsSecret)
        }
        let former = try session.flatMap { try plan.former(in: $0) }
        try plan.check(former)
        let summary = ProfileSummary(plan, agent: kind, former: former, list: try home.sites())
        let question = profile.grant == nil ? "Sign in?" : "Get an access token?"
        guard try Confirmation(isGiven: yes).asks("\(summary.text)\(question)") else {
            throw CountersignError(.refused, "nothing was done")
        }
        if yes { Console.write(summary.text, to: STDERR_FILENO) }
        if kind == .embedded { PageAnswers.warn(of: profile.pageMessages ?? []) }
        let vault = try session ?? access.session(creates: true, readsSecret: readsSecret)
        try plan.prepare(replacing: former, in: vault)
        try grant.authenticate(&plan, in: vault)
        let isSecretStored = try clientSecret.authenticate(&plan, former, in: vault, input)
        profile = plan.profile
        var redirect = redirect
        if await lacksDeviceFlow(plan, kind, client) { (kind, redirect.noBrowser) = (.system, true) }
        var reporter = SignInReporter(isJSON: events, agent: kind)
        reporter.opensBrowser = !redirect.noBrowser
        if profile.grant != nil {
            do {
                return try await enroll(granting: plan, former, in: vault, client, reporter, interrupts)
            } catch {
                throw Self.explaining(error, isStored: isSecretStored, plan.name)
            }
        }
        if usesBroker {
            return try await enroll(with: plan, former, in: vault, environment, reporter, interrupts)
        }
        var nextLine: (@Sendable () async -> String?)?
        if kind != .embedded, let lines = TerminalLines() { nextLine = { await lines.next() } }
        let managesDevice = kind == .embedded && profile.specialURLs != nil
        if profile.specialURLs != nil, !managesDevice {
            Console.warning(
                "only the user agent embedded understands URLs for device management: the provider's pages may get "
                    + "stuck", hint: "use --user-agent embedded")
        }
        let door = try await SignInDoor.open(for: profile, in: kind, home, access, managesDevice: managesDevice)
        let cookies = kind == .embedded ? profile.session.map { vault.cookies(of: $0) } : nil
        // The terminal is read when the question comes: profiles and pages ask there, too.
        let choose: @Sendable ([String]) async -> Int? = { names in await Self.accountChoice()?(names) }
        let transfer = BrokerTransfer(
            profile, environment, account: account, limit: .seconds(timeout), choose: yes ? nil : choose)
        let installer = SignInProfileInstaller(session: vault, home: home, signIn: plan.name)
        let support = await managesDevice ? specialURLSupport(for: plan, door, transfer, installer) : nil
        let flow = SignInFlow(
            profile, client: client,
            agent: redirect.agent(
                SignInFlow.Agent(
                    kind, environment: environment, door: door?.door, cookies: cookies, specialURLs: support)),
            limit: .seconds(timeout), now: Self.now, nextLine: nextLine, answer: PageAnswers.answer,
            report: reporter.report)
        let languages = PreferredLanguages.field(in: environment)
        let remediation = ComplianceFlow(
            profile, client: client, languages: languages, limit: .seconds(timeout), now: Self.now)
        let show = ComplianceFlow.show(
            in: SignInFlow.Agent(kind, environment: environment, door: door?.door), for: profile,
            limit: .seconds(timeout), report: SignInReporter(isJSON: events, agent: kind, readsAddress: false).report)
        let result: SignInResult
        do {
            result = try await interrupts.cancelling {
                do {
                    return try await flow.run()
                } catch let error as OAuthError where error.code == .protectionPolicyRequired {
                    guard let remediation else { throw error }
                    return try await Self.signIn(again: flow, after: error, remediation, show)
                }
            }
        } catch {
            await door?.close()
            guard let found = transfer.result, (error as? SignInError)?.code == .transferred else {
                installer.rollBack()
                throw Self.explaining(error, isStored: isSecretStored, plan.name)
            }
            do {
                return try store(found, of: plan, former, in: vault, reporter, interrupts)
            } catch {
                installer.rollBack()
                throw error
            }
        }
        await door?.close()
        var new = plan.signIn(result, replacing: former, at: Self.now())
        // The browser that stays signed in is not of this machine.
        new.userAgent = (redirect.noBrowser ? .device : kind).rawValue
        if let former, !former.subject.isEmpty, former.subject != new.subject, plan.demand == nil {
            Console.warning("\(new.account) takes the place of \(former.account), who was signed in before")
        }
        do {
            try Self.store(new, result.tokens, of: plan, in: vault, interrupts)
        } catch {
            // A token for one site is left to expire: the provider may end the whole sign-in with it.
            if plan.demand == nil { await Self.discard(new, result.tokens, of: profile, client, vault) }
            installer.rollBack()
            throw interrupts.exitCode ?? error
        }
        if let cookies { Self.store(cookies, in: vault) }
        vault.refreshServer()
        let stored = try? vault.perform(ListSignIns()).first { $0.name == new.name }
        if profile.certificates != nil, let stored, stored.certificate.map({ $0.isMissing == true }) ?? true {
            throw CountersignError(
                .refused, "the running server has stored the sign-in without its certificate",
                hint: "it is an earlier version: restart `countersign serve`, and run `countersign enroll \(new.name)`")
        }
        reporter.stored(new, stored?.certificate, GrantReport(result.tokens, of: profile.request, name: new.name))
    }

    /// The provider requires a protection policy before it issues the first token: has it applied, and signs in again.
    private static func signIn(
        again flow: SignInFlow, after error: OAuthError, _ remediation: ComplianceFlow,
        _ show: @escaping ComplianceFlow.Show
    ) async throws -> SignInResult {
        let account = error.providerCode?.account
        Console.log("info", "the provider requires the organisation's policy on this device first")
        let outcome = await remediation.remediate(
            ComplianceAccount(identifier: error.providerCode?.clientInfo?.uid, user: account), token: nil, show: show)
        guard outcome.status == .compliant else {
            ComplianceCommand.show(ComplianceReport(outcome).rules)
            throw NotCompliant(outcome, account: account)
        }
        if outcome.restarts { Console.warning(ComplianceCommand.restart) }
        do {
            return try await flow.run()
        } catch let error as OAuthError where error.code == .protectionPolicyRequired {
            throw NotCompliant.stillRefused(outcome, account: account)
        }
    }

    /// Gets the tokens from the identity broker, and stores them.
    private func enroll(
        with plan: SignInPlan, _ former: ListedSignIn?, in vault: VaultSession, _ environment: [String: String],
        _ reporter: SignInReporter, _ interrupts: Interrupts
    ) async throws {
        reporter.report(.switchingToBroker)
        let broker = BrokerSignIn(plan.profile, environment: environment, now: Self.now)
        let (account, limit) = (account, Duration.seconds(timeout))
        let choose = yes ? nil : Self.accountChoice()
        let found = try await interrupts.cancelling {
            try await broker.run(
                account: account, isInteractive: BrokerSignIn.isInteractive(environment), limit: limit, choose: choose)
        }
        try store(found, of: plan, former, in: vault, reporter, interrupts)
    }

    /// The support that a window needs for device management.
    private func specialURLSupport(
        for plan: SignInPlan, _ door: SignInDoor?, _ transfer: BrokerTransfer, _ installer: SignInProfileInstaller
    ) async -> SpecialURLSupport {
        var support = SpecialURLSupport(plan.profile.specialURLs ?? .standard, signIn: plan.name)
        support.installer = installer
        support.confirmHandOff = { await HandOffQuestion.isAgreed(to: $0) }
        if let door { support.openDoors = { try await door.observing($0, $1) } }
        if await transfer.isPossible() { support.broker = { try await transfer.run() } }
        return support
    }

    /// Stores the tokens that the identity broker has issued.
    private func store(
        _ found: BrokerSignIn.Result, of plan: SignInPlan, _ former: ListedSignIn?, in vault: VaultSession,
        _ reporter: SignInReporter, _ interrupts: Interrupts
    ) throws {
        let result = SignInResult(tokens: found.tokens, idToken: nil)
        let new = plan.signIn(result, found, replacing: former, at: Self.now())
        if let former, !former.subject.isEmpty, former.subject != new.subject {
            Console.warning("\(new.account) takes the place of \(former.account), who was signed in before")
        }
        do {
            try Self.store(new, found.tokens, of: plan, in: vault, interrupts)
        } catch {
            throw interrupts.exitCode ?? error
        }
        vault.refreshServer()
        let stored = try? vault.perform(ListSignIns()).first { $0.name == new.name }
        reporter.stored(new, stored?.certificate)
    }

    /// Asks on the terminal for one of the accounts, and returns nil without an answer. Nil without a terminal.
    private static func accountChoice() -> (@Sendable ([String]) async -> Int?)? {
        guard let lines = TerminalLines() else { return nil }
        return { names in
            for (index, name) in names.enumerated() {
                Console.write("  \(index + 1)  \(Console.printable(name))\n", to: STDERR_FILENO)
            }
            while true {
                Console.write("Which account? ", to: STDERR_FILENO)
                guard let line = await lines.next() else { return nil }
                if let number = Int(line), names.indices.contains(number - 1) { return number - 1 }
                if let index = names.firstIndex(of: line) { return index }
            }
        }
    }

    /// The sign-in that the argument names, if it is neither a URL nor a file. Sets `session` if it opens the vault.
    private func namedSignIn(_ access: VaultAccess, _ session: inout VaultSession?) throws -> ListedSignIn? {
        guard SignInName.fault(of: profile) == nil,
            NamedMachine.isBuiltIn(profile) || HomeFile.absolutePath(profile) == nil,
            try SealedVault(home: access.home.path).exists()
        else { return nil }
        let opened = try access.session(creates: true, readsSecret: clientSecret.clientSecretStdin)
        session = opened
        return try opened.perform(ListSignIns()).first { $0.name == profile }
    }

    /// Seconds since 1970.
    @Sendable static func now() -> Int64 { Int64(time(nil)) }
}

extension UserAgentKind: ExpressibleByArgument {}
