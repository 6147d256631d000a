// SPDX-License-Identifier: Apache-2.0

import CountersignBroker
import CountersignCryptography
import CountersignProxy
import Logging
import Synchronization

/// Gets the headers of navigation requests from the identity broker. One without a nonce is used for a minute, for all
/// pages; one for a nonce is for one URL and used once. Requests that want the same share one call. A failure counts
/// for a few seconds, so that not every page waits for a broker that hangs.
final class BrokerCookieKeeper: Sendable {
    private typealias Outcome = BrokerCookies.Outcome

    private let broker: Broker
    /// The user name of the account that a credential of this name is of, if it is one of the broker's.
    private let account: @Sendable (_ credential: String) -> String?
    private let report: @Sendable (_ sentence: String, _ hint: String?) -> Void
    private let state = Mutex(State())

    private struct State {
        /// What a call without a nonce has returned, by credential.
        var known: [String: (outcome: Outcome, until: ContinuousClock.Instant)] = [:]
        /// Those that wait for a call in progress, by credential.
        var waiting: [String: [@Sendable (Outcome) -> Void]] = [:]
        var tasks: [Int: Task<Void, Never>] = [:]
        var lastTask = 0
        var isStopped = false
        /// The reason that was reported last.
        var reported: String?
    }

    private static let lifetime = Duration.seconds(60)
    private static let failureLifetime = Duration.seconds(5)
    /// The most calls at a time. A thread is blocked for each.
    private static let callLimit = 16

    init(
        broker: Broker, account: @escaping @Sendable (_ credential: String) -> String? = { _ in nil },
        report: @escaping @Sendable (_ sentence: String, _ hint: String?) -> Void
    ) {
        self.broker = broker
        self.account = account
        self.report = report
    }

    var cookies: BrokerCookies {
        BrokerCookies { [self] request, done in get(request, done) }
    }

    /// Ends the calls in progress.
    func stop() {
        let tasks = state.withLock { state in
            state.isStopped = true
            return Array(state.tasks.values)
        }
        for task in tasks { task.cancel() }
    }

    private func get(_ request: BrokerCookies.Request, _ done: @escaping @Sendable (BrokerCookies.Outcome) -> Void) {
        let name = request.credential
        let known = state.withLock { state -> Outcome? in
            if state.isStopped { return .unavailable(reason: "the proxy is stopping") }
            if let known = state.known[name], known.until > .now {
                // One that failed fails for a nonce, too.
                if !request.hasNonce { return known.outcome }
                if case .unavailable = known.outcome { return known.outcome }
            }
            if !request.hasNonce, state.waiting[name] != nil {
                state.waiting[name]?.append(done)
                return nil
            }
            guard state.tasks.count < Self.callLimit else {
                return .unavailable(reason: "too many requests are waiting for it")
            }
            if !request.hasNonce { state.waiting[name] = [done] }
            state.lastTask += 1
            let number = state.lastTask
            state.tasks[number] = Task.detached { [self] in
                let outcome = await ask(request)
                for waiting in end(number, request, outcome) { waiting(outcome) }
                if request.hasNonce { done(outcome) }
            }
            return nil
        }
        if let known { done(known) }
    }

    private func end(
        _ number: Int, _ request: BrokerCookies.Request, _ outcome: Outcome
    ) -> [@Sendable (Outcome) -> Void] {
        state.withLock { state in
            state.tasks[number] = nil
            if case .unavailable = outcome {
                state.known[request.credential] = (outcome, .now + Self.failureLifetime)
            } else if !request.hasNonce {
                state.known[request.credential] = (outcome, .now + Self.lifetime)
            }
            guard !request.hasNonce else { return [] }
            return state.waiting.removeValue(forKey: request.credential) ?? []
        }
    }

    private func ask(_ request: BrokerCookies.Request) async -> Outcome {
        do throws(BrokerError) {
            let accounts = try await broker.accounts(for: .browser)
            let account = try BrokerAccount.choose(among: accounts, named: account(request.credential))
            let cookie = try await broker.cookie(for: request.url, of: account)
            state.withLock { $0.reported = nil }
            return .cookie(cookie.content)
        } catch {
            let isNew = state.withLock { state in
                defer { state.reported = error.detail }
                return state.reported != error.detail && !state.isStopped
            }
            if isNew { report("no one is signed in by the identity broker: \(error.detail)", error.hint) }
            return .unavailable(reason: error.detail)
        }
    }
}
