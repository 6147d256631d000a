// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
package import CountersignDeviceManagement
import CountersignHome
package import CountersignOAuth
package import CountersignSignIn
import Synchronization

/// Runs one remediation: sends the requests of the ``ComplianceRemediation`` machine, and has its page shown.
package struct ComplianceFlow: Sendable {
    /// Shows the page. May return before the person is done. `cancelled` of ``SignInError`` says that the person has
    /// closed it, and any other error that it cannot be shown. Its task is cancelled when the remediation has ended.
    package typealias Show = @Sendable (EndpointURL) async throws -> Void

    private let profile: SignInProfile
    private let service: ComplianceService
    private let client: ProviderClient
    private let languages: String
    private let now: @Sendable () -> Int64
    private let limit: Duration

    package static let usualLimit = Duration.seconds(600)
    /// The limit of a silent remediation, which runs in the background.
    static let silentLimit = Duration.seconds(60)

    /// Nil if the profile names no service. `languages` is the value of `Accept-Language`.
    package init?(
        _ profile: SignInProfile, client: ProviderClient, languages: String, limit: Duration = usualLimit,
        now: @escaping @Sendable () -> Int64
    ) {
        guard let service = profile.compliance else { return nil }
        self.profile = profile
        self.service = service
        self.client = client
        self.languages = languages
        self.limit = limit
        self.now = now
    }

    /// Registers, enrols and applies the policy for `account`. Without `show`, silently: no page is opened. `token` is
    /// the access token of the sign-in, if there is a valid one. A cancelled task ends it with `userCancelled`.
    package func remediate(_ account: ComplianceAccount, token: Secret?, show: Show?) async -> ComplianceOutcome {
        var machine = ComplianceRemediation(
            account, at: service, client: profile.request.client.identifier, isSilent: show == nil, token: token,
            languages: languages, limit: limit.components.seconds,
            randomBytes: Randomness.secret(ComplianceRemediation.verifierByteCount))
        let showing = Showing()
        var action = machine.start(now: now())
        while true {
            if Task.isCancelled { action = machine.cancelled() }
            switch action {
            case .send(let request):
                action = machine.received(await client.send(request), now: now())
            case .open(let page):
                showing.start { try await show?(page) }
                action = machine.opened(now: now())
            case .wait(let seconds):
                await showing.sleep(seconds)
                switch showing.failure {
                case nil: action = machine.waited(now: now())
                case let error as SignInError where error.code == .cancelled: action = machine.closed()
                case .some(let error): action = machine.notOpened(Diagnostic.all(in: error)[0].message)
                }
            case .finish(let outcome):
                await showing.end()
                return outcome
            }
        }
    }

    /// The page in its window.
    private final class Showing: Sendable {
        private struct State {
            var task: Task<Void, Never>?
            var sleeper: Task<Void, Never>?
            var failure: (any Error)?
        }
        private let state = Mutex(State())

        var failure: (any Error)? { state.withLock { $0.failure } }

        func start(_ show: @escaping @Sendable () async throws -> Void) {
            let task = Task {
                do {
                    try await show()
                } catch {
                    state.withLock { state in
                        state.failure = error
                        state.sleeper?.cancel()
                    }
                }
            }
            state.withLock { $0.task = task }
        }

        /// Ends early if the page is closed, or this task is cancelled.
        func sleep(_ seconds: Int64) async {
            let sleeper = Task { _ = try? await Task.sleep(for: .seconds(seconds)) }
            state.withLock { state in
                state.sleeper = sleeper
                if state.failure != nil { sleeper.cancel() }
            }
            await withTaskCancellationHandler {
                await sleeper.value
            } onCancel: {
                sleeper.cancel()
            }
        }

        func end() async {
            let task = state.withLock { $0.task }
            task?.cancel()
            await task?.value
        }
    }
}

extension ComplianceFlow {
    /// Shows a page in an agent, and reports its address. With the device flow, only reports the address.
    package static func show(
        in agent: SignInFlow.Agent, for profile: SignInProfile, limit: Duration = usualLimit,
        report: @escaping @Sendable (SignInEvent) -> Void
    ) -> Show {
        { url in
            report(.page(url))
            guard case .browser(let agent) = agent else { return }
            try await agent.show(
                CountersignSignIn.SignInPage(compliance: url, of: profile, limit: limit) { report(.agent($0)) }
            )
        }
    }
}

/// The device does not comply, so that there is no token.
package struct NotCompliant: DiagnosableError {
    package let outcome: ComplianceOutcome
    /// The provider's name for the account; nil if unknown.
    let account: String?

    package init(_ outcome: ComplianceOutcome, account: String?) {
        self.outcome = outcome
        self.account = account
    }

    package var detail: String {
        if outcome.hasNoPolicy {
            let name = account.map { PrintableText.quote($0) } ?? "this account"
            return "no protection policy is assigned to \(name), so there is no token: \(text)"
        }
        return "\(outcome.status.name): \(text)"
    }

    private var text: String {
        outcome.title.hasSuffix(".") ? "\(outcome.title) \(outcome.message)" : "\(outcome.title). \(outcome.message)"
    }

    package var hint: String? {
        if outcome.hasNoPolicy { return "ask who administers the account to assign one" }
        return outcome.page.map { "open \($0)" }
    }

    /// The service calls the device compliant, and the provider issues no token nevertheless.
    package static func stillRefused(_ outcome: ComplianceOutcome, account: String?) -> NotCompliant {
        NotCompliant(
            ComplianceOutcome(
                .notCompliant,
                message: "The compliance service says that the device complies, and the provider still requires a "
                    + "protection policy.", page: outcome.page, hasNoPolicy: true), account: account)
    }
}
