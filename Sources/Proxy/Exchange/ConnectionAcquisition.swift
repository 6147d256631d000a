// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignTLS
import CountersignUpstream

/// The origin connection of one exchange: which connections it may use, the one that it uses now, and its retries.
///
/// Which connections an exchange may use depends on who decided to trust the origin's certificate. Until something has
/// been sent, the outcome here is a guess: an open connection, or a new one, may turn out to be based on a trust
/// exception or the delegate, and the exchange then starts again under that outcome. Once something has been sent, the
/// outcome is fixed.
struct ConnectionAcquisition {
    /// The SHA-256 of the only leaf that the client accepts, if it named one.
    let pin: [UInt8]?
    /// Why the origin's certificate is trusted: a guess until there is a connection.
    private(set) var trust: TrustOutcome
    /// The idle connections that this exchange may use.
    private(set) var slot: UpstreamPool.Slot
    private(set) var connection: (any OriginLease)?
    /// The evaluation of the connection attempt in progress.
    private var evaluation: TrustEvaluation?
    /// The connection that is being opened.
    private var opening: ConnectionAttempt?
    /// The slot for whose connection others wait while it is being opened.
    private var awaitingSlot: UpstreamPool.Slot?
    private var hasRetried = false
    private var unprocessedCount = 0
    private var identityRetry = IdentityRetry()

    init(_ route: Route, pin: [UInt8]?, mayBeAnswered: Bool, _ shared: ProxyServices) {
        self.pin = pin
        var trust = TrustOutcome.verified
        if let pin {
            let exception =
                route.isListed
                ? route.policy.trustException(for: route.origin, leaf: pin, now: shared.wallClock()) : nil
            trust = exception.map { .exception($0) } ?? .client(leaf: pin)
        }
        self.trust = trust
        slot = route.slot(under: trust, mayBeAnswered: mayBeAnswered)
    }

    // MARK: Open connections

    /// An open connection that the exchange may use, and the outcome under which it was opened.
    ///
    /// `isFresh`: nothing has been sent, so that the outcome may still change. `usesPool`: connections that are not
    /// this client's own will do. `usesBound`: those that are this client's own will do, unless `withholdsIdentity` and
    /// a client identity was shown on them. `needsHTTP1`: a connection of HTTP/2 will not do. Mutating,
    /// because Swift copies a property's value for a call that is not. The copy took 280 instructions per request.
    mutating func openConnection(
        _ route: Route, _ session: ClientSession, _ services: LoopServices, isFresh: Bool, mayBeAnswered: Bool,
        usesPool: Bool, usesBound: Bool, withholdsIdentity: Bool, needsHTTP1: Bool
    ) -> (connection: any OriginLease, outcome: TrustOutcome)? {
        let usesPool = usesPool && !hasRetried
        if trust.isInForce(at: route.origin, services.shared.policy, now: services.shared.wallClock),
            let connection = Self.open(
                slot, under: trust, route, session, services, usesPool: usesPool, usesBound: usesBound,
                withholdsIdentity: withholdsIdentity, needsHTTP1: needsHTTP1)
        {
            return (connection, trust)
        }
        guard isFresh else { return nil }
        for outcome in otherOutcomes(route, session, services)
        where outcome.isInForce(at: route.origin, services.shared.policy, now: services.shared.wallClock) {
            let slot = route.slot(under: outcome, mayBeAnswered: mayBeAnswered)
            let connection = Self.open(
                slot, under: outcome, route, session, services, usesPool: usesPool, usesBound: usesBound,
                withholdsIdentity: withholdsIdentity, needsHTTP1: needsHTTP1)
            if let connection { return (connection, outcome) }
        }
        return nil
    }

    /// The outcomes other than the guess under which a connection may be open.
    private func otherOutcomes(
        _ route: Route, _ session: ClientSession, _ services: LoopServices
    ) -> [TrustOutcome] {
        guard pin == nil, route.isListed, route.origin.scheme == .https,
            !route.policy.trustExceptions.isEmpty || !session.consents.isEmpty
        else { return [] }
        let exceptions = route.policy.trustExceptions(for: route.origin, now: services.shared.wallClock())
        let consent = session.consents[route.origin].map { TrustOutcome.delegate(leaf: $0.leaf) }
        return exceptions.map { .exception($0) } + (consent.map { [$0] } ?? [])
    }

    private static func open(
        _ slot: UpstreamPool.Slot, under outcome: TrustOutcome, _ route: Route, _ session: ClientSession,
        _ services: LoopServices, usesPool: Bool, usesBound: Bool, withholdsIdentity: Bool,
        needsHTTP1: Bool
    ) -> (any OriginLease)? {
        guard
            let connection =
                (usesBound
                    ? session.boundConnection(for: slot, withholdsIdentity: withholdsIdentity, needsHTTP1: needsHTTP1)
                    : nil)
                ?? (usesPool && outcome.isShared ? slot.lease(now: services.now, needsHTTP1: needsHTTP1) : nil)
        else { return nil }
        guard outcome.decider == .delegate else { return connection }
        // The client may have accepted this connection itself, for other reasons than those in the delegate's decision.
        if let trust = connection.tls?.serverTrust,
            trust.isTrusted || session.consents[route.origin]?.covers(trust) == true
        {
            return connection
        }
        connection.close()
        return nil
    }

    // MARK: A new connection

    mutating func begin(_ evaluation: TrustEvaluation) {
        self.evaluation = evaluation
    }

    /// `attempt` opens the connection for `evaluation`, unless that attempt has ended already.
    mutating func opens(with attempt: ConnectionAttempt, for evaluation: TrustEvaluation) {
        if self.evaluation === evaluation { opening = attempt }
    }

    /// Ends the attempt that `evaluation` belongs to. False if it is no longer the current one.
    mutating func end(_ evaluation: TrustEvaluation) -> Bool {
        guard self.evaluation === evaluation else { return false }
        self.evaluation = nil
        opening = nil
        return true
    }

    /// Takes the attempt, if there is one, to be cancelled.
    mutating func takeAttempt() -> (evaluation: TrustEvaluation?, opening: ConnectionAttempt?) {
        let taken = (evaluation, opening)
        evaluation = nil
        opening = nil
        return taken
    }

    /// Others wait for the connection that is being opened for `slot`.
    mutating func isAwaited(in slot: UpstreamPool.Slot) { awaitingSlot = slot }

    /// The slot whose exchanges wait, once.
    mutating func takeAwaitingSlot() -> UpstreamPool.Slot? {
        defer { awaitingSlot = nil }
        return awaitingSlot
    }

    // MARK: The connection in use

    /// Whether `outcome` differs from the one that the exchange was started under.
    func changes(with outcome: TrustOutcome) -> Bool { outcome.key != trust.key }

    mutating func use(_ connection: any OriginLease, _ outcome: TrustOutcome) {
        self.connection = connection
        trust = outcome
    }

    /// From now on the exchange uses the connections of `slot`.
    mutating func use(_ slot: UpstreamPool.Slot) {
        self.slot = slot
    }

    /// Hands the connection over: to be closed, or to be kept for another exchange.
    mutating func release() -> (any OriginLease)? {
        let released = connection
        connection = nil
        return released
    }

    // MARK: Retries

    /// Whether the request may be sent once more after an idle connection turned out to be closed (RFC 9112 §9.3.1).
    /// From then on no pooled connection is used.
    mutating func retries() -> Bool {
        guard !hasRetried else { return false }
        hasRetried = true
        return true
    }

    /// Whether the request may be sent once more after the origin has said that it has not processed it (RFC 9113
    /// §8.7).
    mutating func retriesUnprocessed(atMost limit: Int) -> Bool {
        unprocessedCount += 1
        return unprocessedCount <= limit
    }

    /// As ``IdentityRetry/begin(after:_:completion:)``.
    mutating func retriesWithOtherIdentity(
        after error: UpstreamError, _ services: LoopServices, completion: @escaping (Bool) -> Void
    ) -> Bool {
        identityRetry.begin(after: error, services, completion: completion)
    }
}
