// SPDX-License-Identifier: Apache-2.0

import CountersignOAuth
import CountersignSignIn
import Synchronization

/// A sign-in that a profile describes. Show the user the effects of the profile, then call
/// ``signIn(with:account:timeout:)``; or ``authorize(with:timeout:)`` first and ``AuthorizedEnrollment/redeem()``
/// later, if your program has something to do between the two.
///
/// If the profile names an EST service, that issues a client certificate, which is stored with the sign-in.
///
/// To end a sign-in before the person is done, cancel the task. A failed or cancelled one changes nothing: an earlier
/// sign-in of that name stays, with its certificate. There is one exception: if the list of sites cannot be written at
/// the very end, the call throws although the new sign-in is stored. The next sign-in of that name, or a running proxy,
/// completes the list.
///
/// Each call begins a new sign-in at the provider, because codes are for one use.
public final class Enrollment: Sendable {
    /// The profile of the sign-in.
    public let profile: EnrollmentProfile
    /// With the client's secret once a sign-in has begun.
    var plan: SignInPlan { present.withLock { $0 } }
    let present: Mutex<SignInPlan>
    let signIns: SignIns
    private let secretOfClient = Mutex<Password?>(nil)
    private let streams = EventStreams<EnrollmentEvent>()
    private let handler = Mutex<(any InteractiveWebviewHandler)?>(nil)
    private let pageHandlers = Mutex<[String: PageCallback.Handler]>([:])
    private let wishes = Mutex(SignInOptions())

    init(_ plan: SignInPlan, of profile: EnrollmentProfile, in signIns: SignIns) {
        present = Mutex(plan)
        self.profile = profile
        self.signIns = signIns
    }

    /// The name of the sign-in and of its access token.
    public var name: String { plan.name }

    /// Your program's part if the provider's pages manage the device; nil if the profile decides alone. Applies to the
    /// sign-ins that begin afterwards.
    public var webviewHandler: (any InteractiveWebviewHandler)? {
        get { handler.withLock { $0 } }
        set { handler.withLock { $0 = newValue } }
    }

    /// Your program's answers to questions of the provider's page in an `embedded` window, by the type of the callback,
    /// such as `NameCallback`; nothing by default. A page may ask only if the profile has `page_messages`, and only for
    /// the types there. It gets an error for a type that has no handler. Applies to the sign-ins that begin afterwards.
    public var pageCallbackHandlers: [String: PageCallback.Handler] {
        get { pageHandlers.withLock { $0 } }
        set { pageHandlers.withLock { $0 = newValue } }
    }

    /// The secret of the client at the provider, if the profile's client has one. Without it, the sign-in uses the
    /// secret that is stored with the sign-in of this name, if that is for the same client; else it throws
    /// `profileFaulty`. It is stored with the sign-in. For a machine that signs with a key of its own, it is that key,
    /// as the text of its file. Applies to the sign-ins that begin afterwards.
    public var clientSecret: Password? {
        get { secretOfClient.withLock { $0 } }
        set { secretOfClient.withLock { $0 = newValue } }
    }

    /// What the provider's page is asked for beyond the profile: `prompt`, the suggested account and further
    /// parameters. Applies to the sign-ins that begin afterwards, but not to ``SignInAgent/device`` and to tokens of
    /// the identity broker, which have no such page.
    public var options: SignInOptions {
        get { wishes.withLock { $0 } }
        set { wishes.withLock { $0 = newValue } }
    }

    /// The lines that the sign-in will add to the list of sites.
    public var siteLines: [String] { plan.sites }

    /// The stored sign-in of that name, which the new one will replace; nil without one. Throws ``ChallengeError`` with
    /// the codes of the home and the vault.
    public var replaced: StoredSignIn? {
        get async throws { try await former().map { StoredSignIn($0) } }
    }

    /// A new stream of the progress, from now on. Each stream receives all events, buffers the newest 256 of them, and
    /// ends with the enrollment's next success or failure, or when an ``AuthorizedEnrollment`` is released that was not
    /// redeemed.
    public var progress: AsyncStream<EnrollmentEvent> { streams.stream() }

    /// Signs the person in, and stores the sign-in.
    ///
    /// Waits for the person until `timeout`. `account` is the user name of the account, for a profile whose tokens come
    /// from the identity broker of the machine; nil for its only one. Such a profile needs no agent: the broker shows a
    /// window of its own, which stays open if the call ends early. Nor does the profile of a machine, whose tokens need
    /// no person.
    ///
    /// Throws `CancellationError` if the task is cancelled, and ``ChallengeError``:
    ///
    /// - `nameInUse`: the name is that of another credential, or was not chosen for this provider.
    /// - `profileFaulty`: the profile's sites cannot be added to the list, its redirect URI needs another agent, or
    ///   `account` is given and the tokens do not come from the broker.
    /// - `userAgentFailed`, `signInCancelled`, `signInDenied`, `signInTimedOut`: the person was not signed in.
    /// - `providerUnreachable`, `providerRefused`: the provider is at fault, or does not know the client; or the
    ///   profile's EST service has issued no certificate. The broker counts as the provider: without it, or without a
    ///   session bus, that is unreachable.
    /// - `protectionPolicyRequired`: apply the policy with a ``ComplianceManager``, and sign in again.
    /// - the codes of the home and the vault, if possible before the person sees a page.
    @discardableResult
    public func signIn(
        with agent: SignInAgent = .automatic, account: String? = nil, timeout: Duration = .seconds(600)
    ) async throws -> StoredSignIn {
        try await ending {
            if plan.profile.usesBroker { return try await signInWithBroker(account, timeout) }
            guard account == nil else {
                throw SignInError(
                    .profile, "the profile does not get its tokens from the identity broker, which alone has accounts",
                    hint: "let the person choose the account on the provider's page")
            }
            if plan.profile.grant != nil { return try await signInMachine() }
            let transfer = await transfer(timeout)
            let kind = try agent.kind(for: plan, environment: signIns.environment)
            let former = try await prepare()
            try await authenticate()
            let window = kind == .embedded ? try await signIns.window(for: plan) : nil
            return try await keepingProfiles { installer in
                do {
                    let result = try await SignInWindow.closing(window) {
                        try await flow(agent, timeout, transfer, window, installer).run()
                    }
                    return try await store(result, replacing: former, cookies: window?.cookies, kind)
                } catch let error as SignInError where error.code == .transferred {
                    guard let found = transfer?.result else { throw error }
                    return try await store(
                        SignInResult(tokens: found.tokens, idToken: nil), found, replacing: former)
                }
            }
        }
    }

    /// The manual form: signs the person in, and leaves the tokens for later. Throws as
    /// ``signIn(with:account:timeout:)`` does.
    /// The device flow has no such step; `agent` must be a browser.
    ///
    /// The provider's code is in the result. It expires, usually within a minute or ten, and is for one use. If the
    /// identity broker has gone on with the sign-in of a window that manages the device, the result has the broker's
    /// tokens.
    public func authorize(
        with agent: SignInAgent = .automatic, timeout: Duration = .seconds(600)
    ) async throws -> AuthorizedEnrollment {
        do {
            guard !plan.profile.usesBroker else {
                throw SignInError(.profile, "the identity broker has no authorization response to redeem later")
            }
            guard plan.profile.grant == nil else {
                throw SignInError(.profile, "the sign-in of a machine has no authorization response to redeem later")
            }
            let transfer = await transfer(timeout)
            let kind = try agent.kind(for: plan, environment: signIns.environment)
            let former = try await prepare()
            try await authenticate()
            let window = kind == .embedded ? try await signIns.window(for: plan) : nil
            return try await keepingProfiles { installer in
                do {
                    let (response, flow) = try await SignInWindow.closing(window) {
                        let flow = try self.flow(agent, timeout, transfer, window, installer)
                        return (try await flow.authorize(), flow)
                    }
                    let code = AuthorizedEnrollment.Response.code(response, flow, window?.cookies, kind)
                    return AuthorizedEnrollment(code, former, self, installer)
                } catch let error as SignInError where error.code == .transferred {
                    guard let found = transfer?.result else { throw error }
                    return AuthorizedEnrollment(.broker(found), former, self, installer)
                }
            }
        } catch {
            streams.finish()
            throw try converted(error)
        }
    }

    // MARK: Steps

    /// Stores tokens of the identity broker. It may show a window of its own.
    private func signInWithBroker(_ account: String?, _ timeout: Duration) async throws -> StoredSignIn {
        let former = try await prepare()
        streams.tell(.switchingToBroker)
        let environment = signIns.environment
        let broker = BrokerSignIn(plan.profile, environment: environment, now: ChallengeController.now)
        let found = try await broker.run(
            account: account, isInteractive: BrokerSignIn.isInteractive(environment), limit: timeout, choose: nil)
        return try await store(SignInResult(tokens: found.tokens, idToken: nil), found, replacing: former)
    }

    /// The broker of the machine, if the provider's pages may manage the device and there is one.
    private func transfer(_ timeout: Duration) async -> BrokerTransfer? {
        guard plan.profile.specialURLs != nil else { return nil }
        let transfer = BrokerTransfer(plan.profile, signIns.environment, account: nil, limit: timeout)
        return await transfer.isPossible() ? transfer : nil
    }

    /// The support that a window needs for device management; nil if its pages may not manage the device.
    private func specialURLSupport(
        _ transfer: BrokerTransfer?, _ proxy: SignInWindows.Proxy?, _ installer: AppProfileInstaller?
    ) -> SpecialURLSupport? {
        guard let settings = plan.profile.specialURLs else { return nil }
        var support = SpecialURLSupport(settings, signIn: plan.name)
        if let proxy { support.openDoors = proxy.observing }
        if let transfer { support.broker = { try await transfer.run() } }
        guard let app = webviewHandler else { return support }
        support.handler = { AppWebviewHandler(app: app, own: $0) }
        support.installer = installer
        return support
    }

    /// Runs `body` with the installer for profiles that the pages deliver; nil without a handler of the program. If it
    /// fails, removes the profiles that were installed for it.
    private func keepingProfiles<Value>(_ body: (AppProfileInstaller?) async throws -> Value) async throws -> Value {
        let installer = webviewHandler.map { AppProfileInstaller(app: $0, home: signIns.home) }
        do {
            let value = try await body(installer)
            return withExtendedLifetime(installer) { value }
        } catch {
            await removeProfiles(of: installer)
            throw error
        }
    }

    /// If that fails as well, the next command or a running proxy removes them.
    fileprivate func removeProfiles(of installer: AppProfileInstaller?) async {
        guard let installer, installer.wasAsked else { return }
        let profiles = ConfigurationProfiles(signIns)
        // Also in a task that was cancelled.
        await Task.detached { [name] in try? await profiles.removePending(of: name) }.value
        installer.end()
    }

    private func flow(
        _ agent: SignInAgent, _ timeout: Duration, _ transfer: BrokerTransfer?, _ window: SignInWindow?,
        _ installer: AppProfileInstaller?
    ) throws -> SignInFlow {
        SignInFlow(
            try options.applied(to: plan.profile), client: try signIns.client(),
            agent: try agent.resolved(
                for: plan, environment: signIns.environment, window: window,
                specialURLs: specialURLSupport(transfer, window?.proxy, installer)), limit: timeout,
            now: ChallengeController.now, answer: PageCallbackHandlers(handlers: pageCallbackHandlers).answer,
            report: { [streams] event in streams.tell(EnrollmentEvent(event)) })
    }

    /// Gets the token of a profile that needs no person, and stores it.
    private func signInMachine() async throws -> StoredSignIn {
        let former = try await prepare()
        try await authenticate()
        let flow = GrantFlow(plan.profile, client: try signIns.client(), now: ChallengeController.now)
        return try await store(SignInResult(tokens: try await flow.run(), idToken: nil), replacing: former)
    }

    private func former() async throws -> ListedSignIn? {
        try await signIns.vault.withOperations(creates: false) { [plan] vault in
            try vault.flatMap { try plan.former(in: $0) }
        }
    }

    /// Throws unless the sign-in can be stored: it is better to fail before the person signs in than after. Returns the
    /// sign-in that is replaced.
    private func prepare() async throws -> ListedSignIn? {
        try await signIns.vault.withOperations(creates: true) { [plan] vault in
            guard let vault else { return nil }
            let former = try plan.former(in: vault)
            try plan.check(former)
            try plan.prepare(replacing: former, in: vault)
            return former
        }
    }

    fileprivate func store(
        _ result: SignInResult, _ broker: BrokerSignIn.Result? = nil, replacing former: ListedSignIn?,
        cookies: SharedCookies? = nil, _ kind: UserAgentKind? = nil
    ) async throws -> StoredSignIn {
        var new = plan.signIn(result, broker, replacing: former, at: ChallengeController.now())
        new.userAgent = kind?.rawValue
        let stored: ListedSignIn?
        if let service = plan.profile.certificates {
            streams.tell(.certificateRequested(server: service.endpoint.description))
        }
        do {
            stored = try await signIns.vault.withOperations(creates: true) { [plan, new] vault -> ListedSignIn? in
                guard let vault else { return nil }
                try plan.store(new, result, in: vault)
                return try plan.former(in: vault)
            }
        } catch {
            // A task of its own, which the cancellation does not reach.
            await Task.detached { [self, new] in await discard(new, result) }.value
            throw error
        }
        guard let stored else { throw ChallengeError(.signInMissing, "the sign-in was removed meanwhile") }
        let signIn = StoredSignIn(stored)
        if let cookies { await store(cookies) }
        streams.tell(.stored(signIn))
        return signIn
    }

    /// Stores the session that the person has now at the provider. The sign-in is complete without it.
    private func store(_ cookies: SharedCookies) async {
        do {
            try await signIns.vault.withOperations(creates: false) { vault in
                if let vault { try cookies.store(in: vault) }
            }
        } catch {
            let reason = (error as? ChallengeError)?.detail ?? "the task was cancelled"
            streams.tell(.sessionNotStored(host: cookies.key.host, reason: reason))
        }
    }

    /// Revokes tokens that were not stored: no process could use or revoke them later.
    private func discard(_ new: NewSignIn, _ result: SignInResult) async {
        // If the vault cannot be read, they may be stored.
        do {
            // A token for one site is left to expire: the provider may end the whole sign-in with it.
            guard plan.demand == nil, try await former()?.identifier != new.identifier, !plan.profile.usesBroker else {
                return
            }
            guard let reason = try await signIns.client().revoke(result.tokens, of: plan.profile).warning else {
                return
            }
            streams.tell(.tokensNotRevoked(reason: reason))
        } catch {}
    }

    fileprivate func end() { streams.finish() }

    /// Runs `body`, converts its errors, and ends the streams.
    fileprivate func ending<Value>(_ body: () async throws -> Value) async throws -> Value {
        defer { streams.finish() }
        do {
            return try await body()
        } catch {
            throw try converted(error)
        }
    }

    /// Throws `CancellationError` in place of the error that a cancellation has caused.
    private func converted(_ error: any Error) throws -> ChallengeError {
        try Task.checkCancellation()
        var converted = ChallengeError(signingIn: error)
        if let error = error as? OAuthError, error.code == .protectionPolicyRequired {
            let account = error.providerCode?.account ?? plan.name
            converted.accountID = account
            if plan.profile.compliance != nil { signIns.waitingForPolicy.withLock { $0[account] = plan } }
        }
        return converted
    }
}

/// A person who has signed in, whose tokens have not been fetched yet.
public final class AuthorizedEnrollment: Sendable {
    enum Response {
        /// The provider's code, the sign-in that it belongs to, the cookies of its window, and the kind of user agent.
        case code(SignInFlow.Authorized, SignInFlow, SharedCookies?, UserAgentKind?)
        /// The identity broker's tokens.
        case broker(BrokerSignIn.Result)
    }

    private let response: Mutex<Response?>
    private let former: ListedSignIn?
    private let enrollment: Enrollment
    private let installer: AppProfileInstaller?

    init(
        _ response: Response, _ former: ListedSignIn?, _ enrollment: Enrollment, _ installer: AppProfileInstaller? = nil
    ) {
        self.former = former
        self.response = Mutex(response)
        self.enrollment = enrollment
        self.installer = installer
    }

    deinit { if response.withLock({ $0 != nil }) { enrollment.end() } }

    /// Fetches the tokens, and stores the sign-in. Throws as ``Enrollment/signIn(with:account:timeout:)`` does; the
    /// second call throws `providerRefused`, because the code is for one use.
    @discardableResult
    public func redeem() async throws -> StoredSignIn {
        try await enrollment.ending {
            let response = response.withLock { response in
                defer { response = nil }
                return response
            }
            switch response {
            case .code(let code, let flow, let cookies, let kind):
                return try await enrollment.store(
                    try await flow.redeem(code), replacing: former, cookies: cookies, kind)
            case .broker(let found):
                return try await enrollment.store(
                    SignInResult(tokens: found.tokens, idToken: nil), found, replacing: former)
            case nil:
                throw ChallengeError(
                    .providerRefused, "the authorization was redeemed before", hint: "sign in again", fault: .caller)
            }
        }
    }
}
