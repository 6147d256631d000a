// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignUpstream

/// The access-log entry of one exchange, filled in while the exchange runs.
struct ExchangeRecord {
    private let start: AccessLog.Start?
    private var outcome = AccessLog.Outcome()

    init(in log: AccessLog?) { start = log?.start() }

    /// The status that the client gets; 0 before there is one.
    var status: Int { outcome.status }
    /// Why a challenge was not answered, or why the proxy responds itself.
    var reason: String? { outcome.reason }

    mutating func requestSent(isAuthorized: Bool, overHTTP2: Bool) {
        if isAuthorized { outcome.rounds += 1 }
        outcome.originVersion = overHTTP2 ? .http2 : .http11
    }

    mutating func responded(_ status: Int) { outcome.status = status }

    mutating func explain(_ reason: String?) { outcome.reason = reason }

    /// A response of the origin was not clean.
    mutating func repaired(_ repair: HTTP1Error.Code) { outcome.repair = repair }

    mutating func delivered(byteCount: Int) { outcome.bytes += byteCount }

    mutating func tunnelled(byteCount: Int) { outcome.bytes = byteCount }

    /// A challenge is answered with the credential called `name`.
    mutating func answered(_ scheme: String, with name: String) {
        outcome.challenge = scheme
        outcome.credential = name
    }

    /// No challenge has been answered after all.
    mutating func forgetAnswer() {
        outcome.challenge = nil
        outcome.credential = nil
    }

    /// The connection shows the client certificate called `name`. The answer to a challenge takes precedence over it.
    mutating func showed(certificate name: String) {
        outcome.challenge = outcome.challenge ?? "certificate"
        outcome.credential = outcome.credential ?? name
    }

    /// The origin is trusted under `trust`, on `connection`.
    mutating func trusted(under trust: TrustOutcome, on connection: any OriginLease) {
        outcome.record(trust, on: connection)
    }

    /// `connection` was opened for this exchange.
    mutating func learned(revocationOf connection: any OriginLease) {
        outcome.record(revocationOf: connection)
    }

    /// Writes the entry, once the exchange is over. `version` is that of the client's request.
    func write(
        to log: AccessLog?, _ session: ClientSession, method: @autoclosure () -> String,
        version: @autoclosure () -> AccessLog.Version, _ route: Route
    ) {
        guard let start, let log else { return }
        var outcome = outcome
        outcome.clientVersion = version()
        let decision: AccessLog.Decision = session.connectSite?.isIntercepted == true ? .intercept : .forward
        log.write(
            start, of: session.process, method: method(), site: route.origin.description, decision: decision,
            rule: route.rule, outcome)
    }
}
