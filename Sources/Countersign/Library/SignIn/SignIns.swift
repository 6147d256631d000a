// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignAnswering
import CountersignCookies
import CountersignCryptography
import CountersignHome
import CountersignOAuth
import CountersignSignIn
import CountersignVault
import Dispatch
public import FoundationEssentials
import Logging
import Synchronization

/// The sign-ins of a home: signs the user in at OAuth 2.0 providers, and out again.
///
/// A stored sign-in takes effect in every process that uses the home: a ``ChallengeController`` and a `ChallengeProxy`
/// answer the Bearer challenges of a sign-in's sites, `countersign status` lists it, and `countersign unenroll` ends
/// it. All methods are thread-safe, and do their file operations on another thread.
public final class SignIns: Sendable {
    let vault: HomeVault
    var home: Home { vault.home }
    let environment: [String: String]
    private let windows: SignInWindows
    /// The plans of the sign-ins that require a protection policy first, by the account.
    let waitingForPolicy = Mutex<[String: SignInPlan]>([:])
    /// Runs remediations, which may wait for a person at a page, so that other operations need not wait.
    let remediations = DispatchQueue(label: "countersign.remediations")

    /// The sign-ins of the home in the folder `home`; by default, of the home that the `countersign` command uses. The
    /// first sign-in creates the home and its vault if they do not exist.
    ///
    /// `windows` says how the windows of ``SignInAgent/embedded`` reach servers. `passphrase` is called on another
    /// thread when the vault is opened, if it requires a passphrase. Throws ``ChallengeError`` with the code
    /// `homeMissing` if `home` is not a folder's URL, or there is no home folder of the user.
    public init(
        home: URL? = nil, windows: SignInWindows = .direct, passphrase: (@Sendable () throws -> Password)? = nil
    ) throws(ChallengeError) {
        self.windows = windows
        environment = ProcessInfo.processInfo.environment
        vault = HomeVault(
            try ChallengeController.locate(ChallengeController.path(of: home), environment), passphrase: passphrase)
    }

    init(
        home path: String, environment: [String: String], windows: SignInWindows = .direct,
        passphrase: (@Sendable () throws -> Password)? = nil
    ) throws(ChallengeError) {
        self.windows = windows
        self.environment = environment
        vault = HomeVault(try ChallengeController.locate(path, environment), passphrase: passphrase)
    }

    /// The sign-ins of a controller's home, with the vault that the controller has opened. They are in effect for the
    /// controller as soon as they are stored. `windows` sets how the windows of ``SignInAgent/embedded`` reach servers.
    public init(_ controller: ChallengeController, windows: SignInWindows = .direct) {
        self.windows = windows
        environment = ProcessInfo.processInfo.environment
        vault = HomeVault(controller)
    }

    init(_ controller: ChallengeController, environment: [String: String], windows: SignInWindows = .direct) {
        self.windows = windows
        self.environment = environment
        vault = HomeVault(controller)
    }

    // MARK: Signing in

    /// Fetches a profile from an https URL, or reads it from a file.
    ///
    /// The server must be verified by the system's anchors or those of the home. Throws ``ChallengeError``:
    /// `profileFaulty`, with line and column in its text if the document is not a profile, `providerUnreachable` and
    /// `providerRefused` if it could not be fetched, and the codes of the home. Throws `CancellationError` if the task
    /// is cancelled.
    public func profile(at place: String) async throws -> EnrollmentProfile {
        do {
            let (profile, source) = try await SignInProfile.read(place, with: client())
            return EnrollmentProfile(profile, from: source)
        } catch {
            try Task.checkCancellation()
            throw ChallengeError(readingProfile: error)
        }
    }

    /// A sign-in as `profile` describes it, which does nothing yet. `name` replaces the profile's name. Throws
    /// ``ChallengeError`` with the code `profileFaulty` if the name cannot be that of a sign-in.
    public func enrollment(_ profile: EnrollmentProfile, name: String? = nil) throws(ChallengeError) -> Enrollment {
        try enrollment(profile, name: name, keepsCertificate: false)
    }

    private func enrollment(
        _ profile: EnrollmentProfile, name: String?, keepsCertificate: Bool
    ) throws(ChallengeError) -> Enrollment {
        do {
            var plan = try SignInPlan(profile.profile, from: profile.source, name: name)
            plan.keepsCertificate = keepsCertificate
            return Enrollment(plan, of: profile, in: self)
        } catch {
            throw ChallengeError(signingIn: error)
        }
    }

    /// A sign-in to replace `signIn`, for example with more scopes. Reads its profile again from its source. With more
    /// scopes, a valid certificate of the sign-in stays. Throws as ``profile(at:)`` and ``enrollment(_:name:)`` do; a
    /// program that made the profile itself passes it to the latter.
    public func enrollment(
        again signIn: StoredSignIn, addingScopes scopes: [String] = []
    ) async throws -> Enrollment {
        let profile = try await profile(at: signIn.profileSource).adding(scopes: scopes)
        return try enrollment(profile, name: signIn.name, keepsCertificate: !scopes.isEmpty)
    }

    /// A sign-in again for what a site requires, in answer to a question. If that is more than scopes, the new access
    /// token is for this site alone, and the sign-in keeps its own for others. Reads the profile again from its source,
    /// and the metadata of the resource as ``scopes(lackedIn:)`` does. Throws as these do.
    public func enrollment(again signIn: StoredSignIn, meeting question: ScopeQuestion) async throws -> Enrollment {
        let stepUp = question.stepUp
        guard stepUp.isForOneSite else {
            return try await enrollment(again: signIn, addingScopes: try await scopes(lackedIn: question))
        }
        let profile = try await profile(at: signIn.profileSource)
        do {
            var granted = stepUp
            granted.scopes = signIn.scopes + stepUp.scopes.filter { !signIn.scopes.contains($0) }
            let wider = EnrollmentProfile(try profile.profile.adding(granted), from: profile.source)
            var plan = try SignInPlan(wider.profile, from: wider.source, name: signIn.name)
            plan.demand = SiteDemand(stepUp, of: try question.protectionSpace.origin())
            return Enrollment(plan, of: wider, in: self)
        } catch {
            throw ChallengeError(signingIn: error)
        }
    }

    /// The scopes to ask for: those that a site names, or else those that the metadata of its resource lists (RFC
    /// 9728), at most 16, without those that the sign-in has.
    ///
    /// The metadata is fetched without a token, from the site itself, if it is listed, and counts only if it names the
    /// sign-in's issuer. Throws ``ChallengeError``: `signInMissing`, `siteMissing`, `providerRefused` if there is no
    /// such scope or the site is not for tokens of the issuer, `providerUnreachable` if the metadata could not be
    /// fetched, and the codes of the home and the vault.
    public func scopes(lackedIn question: ScopeQuestion) async throws -> [String] {
        let space = question.protectionSpace
        guard let signIn = try await all().first(where: { $0.name == question.signIn }) else {
            throw ChallengeError(.signInMissing, "there is no sign-in \(question.signIn.debugDescription)")
        }
        do {
            let host = try HostName(canonicalizing: space.host).text
            let origin = Origin(scheme: .https, host: host, port: UInt16(clamping: space.port))
            guard try home.sites().rule(for: origin) != nil else {
                throw ChallengeError(.siteMissing, "\(origin) is not listed", fault: .caller)
            }
            let lack = LackedScopes(
                stepUp: StepUp(scopes: question.scopes), metadata: question.resourceMetadata, origin: origin,
                target: question.target)
            let issuer = try Issuer(signIn.issuer, .secureOrLoopback)
            return try await lack.found(besides: signIn.scopes, issuer: issuer, client()) { _ in }.stepUp.scopes
        } catch let error as ProtectedResourceError {
            throw ChallengeError(
                error.code == .unavailable ? .providerUnreachable : .providerRefused, error.detail)
        } catch let error as CountersignError where error.code == .refused {
            throw ChallengeError(.providerRefused, error.detail)
        } catch let error as ChallengeError {
            throw error
        } catch {
            throw ChallengeError(signingIn: error)
        }
    }

    // MARK: Shared sessions

    /// The sessions that sites and sign-ins share, sorted by group and host, without cookies that have expired. Throws
    /// ``ChallengeError`` with the codes of the home and the vault.
    public func sharedSessions() async throws -> [SharedSessionSummary] {
        try await vault.withOperations(creates: false) { vault in
            try vault?.perform(ListSessions()).map { SharedSessionSummary($0) } ?? []
        }
    }

    /// Removes the shared sessions of a group, or all, and returns their number. The provider is not notified. Throws
    /// ``ChallengeError`` with the codes of the home and the vault.
    @discardableResult
    public func clearSharedSessions(group: String? = nil) async throws -> Int {
        try await vault.withOperations(creates: false) { vault in
            try vault?.perform(ClearSessions(group: group, host: nil)).count ?? 0
        }
    }

    // MARK: Those who are signed in

    /// The sign-ins, sorted by name. Throws ``ChallengeError`` with the codes of the home and the vault.
    public func all() async throws -> [StoredSignIn] {
        try await vault.withOperations(creates: false) { vault in
            try vault?.perform(ListSignIns()).map { StoredSignIn($0) } ?? []
        }
    }

    /// Revokes the tokens of the sign-in at the provider (RFC 7009), and removes the sign-in's tokens and sites from
    /// the home, and nothing else.
    ///
    /// They are removed even if the provider does not revoke the tokens; the result says why. Throws
    /// ``ChallengeError``: `signInMissing` if there is no sign-in of that name, and the codes of the home and the
    /// vault.
    @discardableResult
    public func signOut(_ name: String) async throws -> SignOut {
        let missing = ChallengeError(
            .signInMissing, "there is no sign-in \(name.debugDescription)", hint: "list them with `countersign status`")
        return try await vault.withOperations(creates: false) { vault in
            guard let result = try vault?.perform(RemoveSignIn(name: name)).done else { throw missing }
            return SignOut(result)
        }
    }

    /// Removes all results of a sign-in. Returns why that is not complete; nil if it is, or if there is no such
    /// sign-in.
    func wipe(_ name: String) async -> String? {
        do {
            try await vault.withOperations(creates: false) { vault in _ = try vault?.perform(WipeSignIn(name: name)) }
            return nil
        } catch {
            return (error as? ChallengeError)?.detail ?? "\(error)"
        }
    }

    // MARK: The home

    /// A client for providers, which trusts the system's anchors and the home's.
    func client() throws -> ProviderClient { try home.providerClient(now: ChallengeController.now) }

    // MARK: Windows

    /// A window to sign the person in, or without `sharesSession` to show another page of the profile. The vault must
    /// have been opened.
    func window(for plan: SignInPlan, sharesSession: Bool = true) async throws -> SignInWindow {
        let cookies = try await sharesSession ? cookies(of: plan.profile) : nil
        // WebKit sends no plain http through a proxy with a password.
        guard let start = windows.start, plan.profile.transport == .secure else {
            return SignInWindow(proxy: nil, cookies: cookies)
        }
        let logger = Logger(label: "countersign") { _ in SwiftLogNoOpLogHandler() }
        guard let controller = vault.controller else {
            let keeper = try await vault.blocking { [vault, environment] in
                try PolicyKeeper(
                    home: vault.home, interception: .always, environment: environment, logger: logger,
                    now: ChallengeController.now, passphrase: vault.passphraseOnce)
            }
            if let shut = keeper.vaultErrorAtStart { throw shut }
            return SignInWindow(proxy: try await start(keeper, false, nil, logger), cookies: cookies)
        }
        await controller.windowProxyBegins()
        do {
            let proxy = try await start(controller.keeper, true, controller.renewals, controller.logger)
            return SignInWindow(proxy: proxy, cookies: cookies) { await controller.windowProxyEnded() }
        } catch {
            await controller.windowProxyEnded()
            throw error
        }
    }

    /// The cookies that the window gets and reports; nil if the profile names none.
    private func cookies(of profile: SignInProfile) async throws -> SharedCookies? {
        guard let scope = profile.session else { return nil }
        return try await vault.blocking { [vault] in
            let key = SharedSession.Key(group: scope.group, host: scope.host.text)
            guard let open = try vault.opened(creates: false) else { return SharedCookies(scope, stored: nil) }
            let operations = VaultOperations(home: vault.home, vault: open, now: ChallengeController.now)
            return SharedCookies(scope, stored: operations.session(key))
        }
    }
}

/// The proxy and the cookies of a window for one sign-in or one page.
struct SignInWindow: Sendable {
    /// Nil if the window's connections are direct.
    let proxy: SignInWindows.Proxy?
    /// Nil if the profile shares no cookies.
    let cookies: SharedCookies?
    /// Called after the end of the proxy.
    var ended: @Sendable () async -> Void = {}

    /// Runs `body`, then stops the window's proxy.
    static func closing<Value>(_ window: SignInWindow?, _ body: () async throws -> Value) async throws -> Value {
        do {
            let value = try await body()
            await window?.close()
            return value
        } catch {
            await window?.close()
            throw error
        }
    }

    /// Stops the proxy, also in a task that was cancelled.
    private func close() async {
        await Task.detached { [self] in
            await proxy?.stop()
            await ended()
        }.value
    }
}
