// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignOAuth
import Glibc

/// Runs one sign-in: sends the requests of the ``SignIn`` machine, shows the person the provider's pages, and waits for
/// the browser to return.
package struct SignInFlow: Sendable {
    /// How the person sees the provider's pages.
    package enum Agent: Sendable {
        case browser(any UserAgent)
        /// A code for another device (RFC 8628).
        case device

        /// `environment` is that of the programs that the agent starts. The rest is for an embedded window, as in
        /// ``EmbeddedAgent``.
        package init(
            _ kind: UserAgentKind, environment: [String: String], door: EmbeddedAgent.Door?,
            cookies: SharedCookies? = nil, specialURLs: SpecialURLSupport? = nil
        ) {
            self =
                switch kind {
                case .system: .browser(SystemBrowser(environment: environment))
                case .systemPrivate: .browser(PrivateBrowser(environment: environment))
                case .embedded:
                    .browser(
                        EmbeddedAgent(environment: environment, door: door, cookies: cookies, specialURLs: specialURLs))
                case .device: .device
                }
        }
    }

    /// The provider's authorization response, whose code is not redeemed yet.
    package struct Authorized: Sendable {
        fileprivate var machine: SignIn
    }

    private enum Outcome {
        case authorized(Authorized)
        case finished(SignInResult)
    }

    private let profile: SignInProfile
    private let client: ProviderClient
    private let agent: Agent
    private let limit: Duration
    private let now: @Sendable () -> Int64
    private let report: @Sendable (SignInEvent) -> Void
    /// The next line that the person has typed or pasted; nil if there will be none. Ends when its task is cancelled.
    private let nextLine: (@Sendable () async -> String?)?
    private let answer: @Sendable (PageMessage) async -> String?

    /// `limit` is the time limit for the person, and before that for all responses of the provider. `answer` returns
    /// the answer to a message of the provider's page, or nil to cancel the sign-in; it ends when its task is
    /// cancelled. `report` is called on any thread.
    package init(
        _ profile: SignInProfile, client: ProviderClient, agent: Agent, limit: Duration = .seconds(600),
        now: @escaping @Sendable () -> Int64, nextLine: (@Sendable () async -> String?)? = nil,
        answer: @escaping @Sendable (PageMessage) async -> String? = { _ in nil },
        report: @escaping @Sendable (SignInEvent) -> Void
    ) {
        self.profile = profile
        self.client = client
        self.agent = agent
        self.limit = limit
        self.now = now
        self.nextLine = nextLine
        self.answer = answer
        self.report = report
    }

    /// Returns the tokens, whose ID token is verified. Throws ``SignInError`` and ``OAuthError``, and any error of the
    /// user agent. Tokens that the provider has issued although the sign-in fails or is cancelled are revoked first,
    /// which may take as long as the limits of the requests.
    package func run() async throws -> SignInResult { try finished(try await run(.automatic)) }

    /// The manual form: returns when the person has signed in; ``redeem(_:)`` fetches the tokens. Throws as ``run()``
    /// does. The device flow has no authorization response.
    package func authorize() async throws -> Authorized {
        guard case .browser = agent, case .authorized(let response) = try await run(.manual) else {
            throw SignInError(
                .noAgent, "the device flow has no authorization response to redeem later",
                hint: "sign in with a browser, or fetch the tokens at once")
        }
        return response
    }

    /// Fetches the tokens. A second call with the same response fails at the provider, because a code is for one use.
    package func redeem(_ response: Authorized) async throws -> SignInResult {
        var machine = response.machine
        let action = machine.redeem()
        return try finished(try await run(&machine, action, nil))
    }

    /// In the automatic form, the machine redeems every authorization itself, regardless of the provider's response.
    private func finished(_ outcome: Outcome) throws -> SignInResult {
        guard case .finished(let result) = outcome else { preconditionFailure("the automatic form fetches the tokens") }
        return result
    }

    private func run(_ form: SignIn.Form) async throws -> Outcome {
        guard case .browser(let agent) = agent else {
            return try await run(by: .device, nil, form)
        }
        let visit = try BrowserVisit(agent, profile, limit: limit, nextLine: nextLine, answer: answer, report: report)
        do {
            let outcome = try await run(by: .browser(visit.redirect), visit, form)
            await visit.end()
            return outcome
        } catch {
            await visit.end()
            throw error
        }
    }

    private func run(
        by method: SignIn.Method, _ visit: BrowserVisit?, _ form: SignIn.Form
    ) async throws -> Outcome {
        let secrets = SignInSecrets(randomBytes: Randomness.secret(SignInSecrets.randomByteCount))
        let wanted = profile.bound(to: profile.request.proofKey).request
        var machine = SignIn(
            issuer: profile.issuer, wanted, by: method, form: form, secrets: secrets,
            metadata: profile.metadata, transport: profile.transport)
        report(.started(issuer: profile.issuer.text))
        let action = machine.start()
        return try await run(&machine, action, visit)
    }

    /// Revokes tokens that would otherwise be lost.
    private func run(
        _ machine: inout SignIn, _ first: SignIn.Action, _ visit: BrowserVisit?
    ) async throws -> Outcome {
        do {
            return try await steps(&machine, first, visit)
        } catch {
            _ = machine.cancelled()
            if let tokens = machine.tokensToRevoke { await revoke(tokens) }
            throw error
        }
    }

    private func steps(
        _ machine: inout SignIn, _ first: SignIn.Action, _ visit: BrowserVisit?
    ) async throws -> Outcome {
        var action = first
        var deadline = ContinuousClock.now + limit
        while true {
            if Task.isCancelled {
                if case .finish(let result) = action { await revoke(result.tokens) }
                throw CancellationError()
            }
            switch action {
            case .send(let request):
                let outcome = await send(request, until: deadline)
                action = machine.received(outcome, now: now())
                outcome.wipe()
            case .open(let url):
                guard let visit else { throw SignInError(.environment, "there is no browser to open") }
                (machine, action) = try await visit.redirect(from: url, machine)
                deadline = .now + limit
            case .show(let authorization, let seconds):
                report(.code(authorization))
                deadline = .now + limit
                action = try await wait(seconds, &machine, until: deadline)
            case .wait(let seconds):
                action = try await wait(seconds, &machine, until: deadline)
            case .authorized:
                await visit?.showLastPage()
                return .authorized(Authorized(machine: machine))
            case .finish(let result):
                await visit?.showLastPage()
                report(.finished)
                return .finished(result)
            case .fail(let error):
                await visit?.showLastPage()
                throw error
            }
        }
    }

    /// A cancellation does not reach a request for tokens: they would be valid, but could not be revoked. Nor does the
    /// deadline, which is the person's: the code has been used.
    private func send(_ request: ProviderRequest, until deadline: ContinuousClock.Instant) async -> ProviderOutcome {
        guard request.purpose == .token else { return await client.send(request, within: deadline - .now) }
        return await Task.detached { await client.send(request) }.value
    }

    private func revoke(_ tokens: TokenSet) async {
        let warning = await Task.detached { await client.revoke(tokens, of: profile).warning }.value
        if let warning { report(.notRevoked(reason: warning)) }
    }

    /// Throws `timedOut` at `deadline`, unless the person has confirmed the code.
    private func wait(
        _ seconds: Int64, _ machine: inout SignIn, until deadline: ContinuousClock.Instant
    ) async throws -> SignIn.Action {
        let end = ContinuousClock.now + .seconds(seconds)
        if machine.awaitsConfirmation, deadline < end {
            try await Task.sleep(until: deadline)
            throw SignInError.timedOut(after: limit)
        }
        try await Task.sleep(until: end)
        return machine.waited(now: now())
    }
}

/// The progress of a sign-in.
package enum SignInEvent: Equatable, Sendable {
    case started(issuer: String)
    /// This page is shown to the person, who can also open it elsewhere.
    case page(EndpointURL)
    case agent(UserAgentEvent)
    /// The person is to enter this code.
    case code(DeviceAuthorization)
    /// A redirect or a pasted address does not belong to this sign-in.
    case redirectIgnored(reason: String, hint: String?)
    /// Another user of the machine has connected in place of the browser. Reported once.
    case connectionRefused(user: UInt32?)
    /// Requesting the tokens from the identity broker, which may show a window of its own.
    case switchingToBroker
    /// The redirect has arrived. The tokens are next.
    case authorized
    case finished
    /// The sign-in has failed or was cancelled, and the provider has not revoked the tokens that it had issued.
    case notRevoked(reason: String)
}

extension ProviderOutcome {
    /// Overwrites the body of a response, which may contain tokens. Nothing else may still use the body.
    package func wipe() {
        guard case .response(let response) = self else { return }
        response.body.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            // In place: a mutable copy of the array would leave the original unchanged.
            explicit_bzero(UnsafeMutableRawPointer(mutating: start), bytes.count)
        }
    }
}
