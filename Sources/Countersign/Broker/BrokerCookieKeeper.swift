// SPDX-License-Identifier: Apache-2.0

package import CountersignAnswering
package import CountersignBroker
import CountersignCryptography
import Synchronization

/// Gets the headers of navigation requests from the identity broker. One without a nonce is used for a minute, for all
/// pages; one for a nonce is for one URL and used once. Requests that want the same share one call.
///
/// A page waits a few seconds; then its request continues without the header. The call continues: if it succeeds, the
/// next page gets the header. Until then, and for a while after any failure, no page waits, so that a broker that hangs
/// delays only one page. A failure leaves an existing header in place.
package final class BrokerCookieKeeper: Sendable {
    private typealias Account = BrokerCookies.Account
    private typealias Outcome = BrokerCookies.Outcome

    private let broker: Broker
    /// Whether the account's header may be used now.
    private let mayUse: @Sendable (BrokerCookies.Account) -> Bool
    private let patience: Duration
    private let now: @Sendable () -> ContinuousClock.Instant
    private let report: @Sendable (_ sentence: String, _ hint: String?) -> Void
    private let state = Mutex(State())

    private struct State {
        /// Without a nonce.
        var headers: [Account: (content: Secret, until: ContinuousClock.Instant)] = [:]
        var failures: [Account: (reason: String, until: ContinuousClock.Instant)] = [:]
        /// The requests that wait, by number.
        var waiting: [Int: Waiting] = [:]
        /// The requests of the calls in progress without a nonce.
        var shared: [Account: [Int]] = [:]
        /// The calls in progress, by the number of the first request.
        var calls: [Int: Task<Void, Never>] = [:]
        var lastNumber = 0
        var isStopped = false
        /// The reason that was reported last.
        var reported: String?
    }

    private struct Waiting {
        let account: Account
        let done: @Sendable (Outcome) -> Void
        let deadline: Task<Void, Never>

        func end(_ outcome: Outcome) {
            deadline.cancel()
            done(outcome)
        }
    }

    private static let lifetime = Duration.seconds(60)
    private static let failureLifetime = Duration.seconds(5)
    /// How long no page waits after one that has waited without success.
    private static let pause = Duration.seconds(30)
    /// The most calls at a time. A thread is blocked for each.
    private static let callLimit = 16

    /// `patience` is how long a page waits.
    package init(
        broker: Broker, mayUse: @escaping @Sendable (BrokerCookies.Account) -> Bool = { _ in true },
        patience: Duration = .seconds(5), now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        report: @escaping @Sendable (_ sentence: String, _ hint: String?) -> Void
    ) {
        self.broker = broker
        self.mayUse = mayUse
        self.patience = patience
        self.now = now
        self.report = report
    }

    package var cookies: BrokerCookies {
        BrokerCookies { [self] request, done in get(request, done) }
    }

    /// Ends the calls in progress, and forgets all headers.
    package func stop() {
        let (calls, waiting) = state.withLock { state in
            state.isStopped = true
            state.headers = [:]
            defer { state.waiting = [:] }
            return (Array(state.calls.values), Array(state.waiting.values))
        }
        for call in calls { call.cancel() }
        for waiting in waiting { waiting.end(.unavailable(reason: Self.isStopping)) }
    }

    private static let isStopping = "the proxy is stopping"

    /// Forgets headers that have expired, or whose account is no longer that of the sign-in.
    package func forget() {
        state.withLock { state in
            let now = now()
            state.headers = state.headers.filter { $0.value.until > now && mayUse($0.key) }
            state.failures = state.failures.filter { $0.value.until > now }
        }
    }

    /// How many headers are kept.
    var headerCount: Int { state.withLock { $0.headers.count } }

    private func get(_ request: BrokerCookies.Request, _ done: @escaping @Sendable (BrokerCookies.Outcome) -> Void) {
        let account = request.account
        if case .none(let reason) = account { return done(.unavailable(reason: reason)) }
        let known = state.withLock { state -> Outcome? in
            let now = now()
            if state.isStopped { return .unavailable(reason: Self.isStopping) }
            if !request.hasNonce, let header = state.headers[account], header.until > now {
                return .cookie(header.content)
            }
            if let failure = state.failures[account], failure.until > now {
                return .unavailable(reason: failure.reason)
            }
            state.lastNumber += 1
            let number = state.lastNumber
            if request.hasNonce || state.shared[account] == nil {
                guard state.calls.count < Self.callLimit else {
                    return .unavailable(reason: "too many requests are waiting for it")
                }
                state.calls[number] = Task.detached { [self] in end(number, request, await ask(request)) }
            }
            if !request.hasNonce { state.shared[account, default: []].append(number) }
            let deadline = Task.detached { [self, patience] in
                try? await Task.sleep(for: patience)
                if !Task.isCancelled { waitedInVain(number) }
            }
            state.waiting[number] = Waiting(account: account, done: done, deadline: deadline)
            return nil
        }
        if let known { done(known) }
    }

    private func waitedInVain(_ number: Int) {
        let reason = "the identity broker has not answered in time"
        let waiting = state.withLock { state -> Waiting? in
            guard let waiting = state.waiting.removeValue(forKey: number) else { return nil }
            state.failures[waiting.account] = (reason, now() + Self.pause)
            return waiting
        }
        guard let waiting else { return }
        tell(reason, nil)
        waiting.end(.unavailable(reason: reason))
    }

    /// The call of the request with this number has ended.
    private func end(_ number: Int, _ request: BrokerCookies.Request, _ result: Result<Secret, BrokerError>) {
        let account = request.account
        var outcome: Outcome
        switch result {
        case .success(let content): outcome = .cookie(content)
        case .failure(let error): outcome = .unavailable(reason: error.summary)
        }
        // The sign-in may have been removed meanwhile, or the vault locked.
        if case .cookie = outcome, !mayUse(account) {
            outcome = .unavailable(reason: "the account is not that of the site's line any more")
        }
        let waiting = state.withLock { [outcome] state -> [Waiting] in
            state.calls[number] = nil
            switch outcome {
            case .cookie(let content):
                state.failures[account] = nil
                if !request.hasNonce, !state.isStopped { state.headers[account] = (content, now() + Self.lifetime) }
            case .unavailable(let reason):
                let until = now() + Self.failureLifetime
                if state.failures[account].map({ $0.until < until }) ?? true {
                    state.failures[account] = (reason, until)
                }
            }
            let numbers = request.hasNonce ? [number] : state.shared.removeValue(forKey: account) ?? []
            return numbers.compactMap { state.waiting.removeValue(forKey: $0) }
        }
        switch result {
        case .success: state.withLock { $0.reported = nil }
        case .failure(let error): tell(error.detail, error.hint)
        }
        for waiting in waiting { waiting.end(outcome) }
    }

    private func ask(_ request: BrokerCookies.Request) async -> Result<Secret, BrokerError> {
        do throws(BrokerError) {
            let account = try request.account.chosen(among: try await broker.accounts(for: .browser))
            return .success(try await broker.cookie(for: request.url, of: account).content)
        } catch {
            return .failure(error)
        }
    }

    /// Reports a reason, unless it was the last one.
    private func tell(_ detail: String, _ hint: String?) {
        let isNew = state.withLock { state in
            defer { state.reported = detail }
            return state.reported != detail && !state.isStopped
        }
        if isNew { report("no one is signed in by the identity broker: \(detail)", hint) }
    }
}
