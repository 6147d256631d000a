// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignOAuth
import Glibc
import Synchronization

/// Runs one sign-in: sends the requests of the ``SignIn`` machine, shows the person the provider's pages, and waits for
/// the browser to return.
package struct SignInFlow: Sendable {
    /// How the person sees the provider's pages.
    package enum Agent: Sendable {
        case browser(any UserAgent)
        /// A code for another device (RFC 8628).
        case device
    }

    private let profile: SignInProfile
    private let client: ProviderClient
    private let agent: Agent
    private let limit: Duration
    private let now: @Sendable () -> Int64
    private let report: @Sendable (SignInEvent) -> Void
    /// The next line that the person has typed or pasted; nil if there will be none. Ends when its task is cancelled.
    private let nextLine: (@Sendable () async -> String?)?

    /// `limit` is how long to wait for the person. `report` is called on any thread.
    package init(
        _ profile: SignInProfile, client: ProviderClient, agent: Agent, limit: Duration = .seconds(600),
        now: @escaping @Sendable () -> Int64, nextLine: (@Sendable () async -> String?)? = nil,
        report: @escaping @Sendable (SignInEvent) -> Void
    ) {
        self.profile = profile
        self.client = client
        self.agent = agent
        self.limit = limit
        self.now = now
        self.nextLine = nextLine
        self.report = report
    }

    /// Returns the tokens, whose ID token is verified. Throws ``SignInError`` and ``OAuthError``.
    package func run() async throws -> SignInResult {
        var listener: RedirectListener?
        var method = SignIn.Method.device
        if case .browser = agent {
            guard let address = profile.redirect.address else {
                throw SignInError(.profile, "the redirect URI \(profile.redirect) is not one of this machine")
            }
            // Bound before the browser opens, so that no other process can take the port.
            let bound = try RedirectListener(address)
            listener = bound
            method = .browser(profile.redirect.bound(toPort: bound.port))
        }
        let secrets = SignInSecrets(randomBytes: Randomness.secret(SignInSecrets.randomByteCount))
        var machine = SignIn(
            issuer: profile.issuer, profile.request, by: method, secrets: secrets, transport: profile.transport)
        defer {
            listener?.end()
            if case .browser(let agent) = agent { agent.close() }
        }
        report(.started(issuer: profile.issuer.text))
        var action = machine.start()
        while true {
            try Task.checkCancellation()
            switch action {
            case .send(let request):
                let outcome = await client.send(request)
                action = machine.received(outcome, now: now())
                outcome.wipe()
            case .open(let url):
                guard let listener else { throw SignInError(.environment, "there is no browser to open") }
                (machine, action) = try await redirect(from: url, to: listener, machine)
            case .show(let authorization, let seconds):
                report(.code(authorization))
                action = try await wait(seconds, &machine)
            case .wait(let seconds):
                action = try await wait(seconds, &machine)
            case .authorized:
                action = machine.redeem()
            case .finish(let result):
                listener?.finish()
                report(.finished)
                return result
            case .fail(let error):
                listener?.finish()
                throw error
            }
        }
    }

    private func wait(_ seconds: Int64, _ machine: inout SignIn) async throws -> SignIn.Action {
        try await Task.sleep(for: .seconds(seconds))
        return machine.waited(now: now())
    }

    // MARK: The browser

    /// Opens the page, and returns when the browser has come back, or the person has pasted the address to which it was
    /// sent.
    private func redirect(
        from url: EndpointURL, to listener: RedirectListener, _ machine: SignIn
    ) async throws -> (SignIn, SignIn.Action) {
        let state = Mutex<(machine: SignIn, action: SignIn.Action?)>((machine, nil))
        report(.page(url))
        if case .browser(let agent) = agent {
            let report = report
            try agent.open(url.description) { report(.pageNotShown(reason: $0)) }
        }
        let judge: @Sendable (RedirectMessage) -> RedirectListener.Verdict = { [report] message in
            state.withLock { state in
                guard state.action == nil else { return .foreign }
                switch state.machine.redirected(message) {
                case .ignored(let error):
                    report(.redirectIgnored(reason: error.detail, hint: error.hint))
                    return .foreign
                case .accepted(let action):
                    state.action = action
                    if case .fail = action { return .failed }
                    report(.authorized)
                    return .accepted
                }
            }
        }
        try await withThrowingTaskGroup(of: Void.self) { [limit] group in
            group.addTask { _ = try await listener.response(within: limit) { judge(.query($0)) } }
            if let nextLine {
                group.addTask {
                    while let line = await nextLine() {
                        if case .foreign = judge(.url(line)) { continue }
                        return
                    }
                    // Nobody will paste anything: only the browser can end the wait.
                    try await Task.sleep(for: limit + limit)
                }
            }
            defer { group.cancelAll() }
            try await group.next()
        }
        return try state.withLock { state in
            guard let action = state.action else { throw SignInError(.cancelled, "the sign-in was cancelled") }
            return (state.machine, action)
        }
    }
}

/// The progress of a sign-in.
package enum SignInEvent: Equatable, Sendable {
    case started(issuer: String)
    /// This page is shown to the person, who can also open it elsewhere.
    case page(EndpointURL)
    /// The browser could not be started; the sign-in goes on, because the page can be opened by hand.
    case pageNotShown(reason: String)
    /// The person is to enter this code.
    case code(DeviceAuthorization)
    /// A redirect or a pasted address does not belong to this sign-in.
    case redirectIgnored(reason: String, hint: String?)
    /// The browser has come back. The tokens are next.
    case authorized
    case finished
}

extension ProviderOutcome {
    /// Overwrites the body of a response, which may contain tokens. Nothing else may use the body any more.
    package func wipe() {
        guard case .response(let response) = self else { return }
        response.body.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            // In place: a mutable copy of the array would leave the original as it is.
            explicit_bzero(UnsafeMutableRawPointer(mutating: start), bytes.count)
        }
    }
}
