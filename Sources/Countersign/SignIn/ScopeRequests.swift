// SPDX-License-Identifier: Apache-2.0

package import CountersignAnswering
import CountersignChallenges
import CountersignHome
import CountersignOAuth
package import CountersignSignIn
import Dispatch
package import Logging
import Synchronization

/// Signs a person in again when a site requires something that the access token of a sign-in does not have. The request
/// that has shown it is not delayed: its response goes to the client, and the next request gets the new token.
///
/// ``ScopeLimits`` says how often.
package final class ScopeRequests: Sendable {
    let keeper: PolicyKeeper
    let logger: Logger
    /// Seconds since 1970.
    let now: @Sendable () -> Int64
    let environment: [String: String]
    let agent: Agent
    private let report: @Sendable (UserAgentKind, SignInEvent) -> Void
    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "countersign.scopes")
    private let start = ContinuousClock.now

    /// A user agent of that kind; nil if it cannot be used now.
    package typealias Agent = @Sendable (UserAgentKind) -> SignInFlow.Agent?

    private struct State {
        var limits = ScopeLimits()
        /// By sign-in.
        var running: [String: Task<Void, Never>] = [:]
        var isStopped = false
    }

    /// How long ``stop()`` waits for a provider.
    private static let stopPatience = Duration.seconds(10)

    package init(
        keeper: PolicyKeeper, logger: Logger, environment: [String: String], now: @escaping @Sendable () -> Int64,
        agent: @escaping Agent, report: @escaping @Sendable (UserAgentKind, SignInEvent) -> Void
    ) {
        self.keeper = keeper
        self.logger = logger
        self.environment = environment
        self.now = now
        self.agent = agent
        self.report = report
    }

    package var asker: ScopeAsker { ScopeAsker { [self] in begin($0) } }

    /// Closes the pages, and begins no further request.
    package func cancel() {
        let running = state.withLock { state in
            state.isStopped = true
            return Array(state.running.values)
        }
        for task in running { task.cancel() }
    }

    /// Cancels the requests, and waits some seconds for tokens to be stored or revoked.
    package func stop() async {
        cancel()
        for task in state.withLock({ Array($0.running.values) }) { _ = await task.value(within: Self.stopPatience) }
    }

    /// Reads no file, and takes no lock under which one is read.
    private func begin(_ lack: ScopeAsker.Lack) -> String? {
        let name = lack.token.name
        guard lack.stepUp != StepUp() || lack.metadata != nil else { return nil }
        let wish = ScopeLimits.Wish(name: name, origin: lack.origin, stepUp: lack.stepUp)
        let time = elapsed
        return state.withLock { state in
            guard !state.isStopped else { return nil }
            switch state.limits.wished(wish, at: time) {
            case .refused: return nil
            case .isRunning: break
            case .begins: state.running[name] = Task.detached { [self] in await ask(lack, wish) }
            }
            let remedy = lack.remedy.sentence
            return "a page may open that asks you for it; if none does, \(remedy)"
        }
    }

    private var elapsed: Duration { ContinuousClock.now - start }

    private func ask(_ lack: ScopeAsker.Lack, _ wish: ScopeLimits.Wish) async {
        let request = ScopeRequest(lack: lack, requests: self) { [self] kind, event in
            switch event {
            case .page, .code: state.withLock { $0.limits.pageOpened(wish) }
            default: break
            }
            report(kind, event)
        }
        let outcome: Result<ScopeRequest.Obtained, any Error>
        do { outcome = .success(try await request.run()) } catch { outcome = .failure(error) }
        let time = elapsed
        state.withLock { state in
            state.limits.ended(wish, at: time)
            state.running[wish.name] = nil
        }
        switch outcome {
        case .success(.scopes(let scopes)):
            logger.notice("the access token of \"\(wish.name)\" has the scope \(scopes.joined(separator: " ")) now")
        case .success(.siteToken): logger.notice("\"\(wish.name)\" has an access token for \(wish.origin) alone now")
        case .failure(let error):
            // When the proxy stops, the person needs to do nothing.
            if !Task.isCancelled { warn(lack, error) }
        }
    }

    private func warn(_ lack: ScopeAsker.Lack, _ error: any Error) {
        let isInVain = (error as? ProtectedResourceError)?.endsRequest == true
        let hint = lack.remedy.sentence
        let what = lack.stepUp.isForOneSite ? "token" : "scope"
        for diagnostic in Diagnostic.all(in: error) {
            logger.warning(
                "the \(what) that \(lack.origin) requires was not obtained: \(diagnostic.message)",
                metadata: isInVain ? nil : ["hint": "\(hint)"])
        }
    }

    func onQueue<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try body() }) }
        }
    }
}

extension ScopeAsker.Lack {
    /// The command for the same question.
    var remedy: Remedy {
        .signIn(name: token.name, stepUp: stepUp, site: stepUp.isForOneSite ? origin.shortText : nil)
    }
}
