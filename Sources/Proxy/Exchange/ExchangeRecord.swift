// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignEvents
import CountersignHTTP1
import CountersignUpstream

/// What the ``Journal`` gets about one exchange, filled in while the exchange runs.
struct ExchangeRecord {
    private let start: Journal.Start?
    private var outcome = AccessLog.Outcome()
    private var hasRecordedUse = false
    /// The client has left, and the origin's verdict on the credential is awaited.
    var awaitsVerdict = false

    init(in journal: Journal?) { start = journal?.start() }

    /// The status that the client gets; 0 before there is one.
    var status: Int { outcome.status }
    /// Why a challenge was not answered, or why the proxy responds itself.
    var reason: String? { outcome.reason }

    mutating func requestSent(isAuthorized: Bool, overHTTP2: Bool) {
        if isAuthorized { outcome.rounds += 1 }
        outcome.originVersion = overHTTP2 ? .http2 : .http11
    }

    mutating func responded(_ status: Int) { outcome.status = status }

    /// The same for a response of the origin.
    mutating func originResponded(_ status: Int) {
        outcome.status = status
        outcome.isOrigins = true
    }

    mutating func explain(_ reason: String?) { outcome.reason = reason }

    /// A response of the origin was not clean.
    mutating func repaired(_ repair: HTTP1Error.Code) { outcome.repair = repair }

    mutating func delivered(byteCount: Int) { outcome.bytes += byteCount }

    mutating func tunnelled(byteCount: Int) { outcome.bytes = byteCount }

    /// A challenge is answered with the credential called `name`.
    mutating func answered(_ scheme: String, with name: String, generation: UInt64? = nil) {
        if outcome.credential != name || outcome.generation != generation {
            outcome.verdict = nil
            outcome.check = nil
        }
        outcome.challenge = scheme
        outcome.credential = name
        outcome.generation = generation
    }

    /// The request has used a connection that was authenticated for an earlier one, with `credential`.
    mutating func rode(on credential: CredentialReference) {
        var generation: UInt64?
        if case .vault(let number) = credential.source { generation = number }
        outcome.connectionCredential = (credential.name, generation)
    }

    /// An answer was sent with `credential`.
    mutating func answered(_ scheme: String, with credential: CredentialReference) {
        var generation: UInt64?
        if case .vault(let number) = credential.source { generation = number }
        answered(scheme, with: credential.name, generation: generation)
    }

    /// The origin has accepted the credential of ``answered(_:with:)``.
    mutating func accepted() {
        outcome.verdict = .accepted
        outcome.check = nil
    }

    /// The origin has rejected it.
    mutating func rejected() { outcome.verdict = .rejected }

    /// The origin has challenged with `challenges`.
    mutating func challenged(with challenges: [Challenge]) {
        guard start != nil, outcome.offered.isEmpty else { return }
        for challenge in challenges
        where outcome.offered.count < Self.offeredLimit && challenge.scheme.utf8.count <= Self.schemeBytes {
            let scheme = challenge.scheme.lowercased()
            if !outcome.offered.contains(scheme) { outcome.offered.append(scheme) }
        }
    }

    /// More schemes than any server offers.
    private static let offeredLimit = 8
    /// Longer than any scheme's name.
    private static let schemeBytes = 32

    /// The person has not agreed.
    mutating func unapproved() { outcome.check = .approval }

    /// The check that has failed; nil if none has.
    mutating func failed(_ checks: ThreeChecks) {
        outcome.check =
            checks.site.refusal != nil
            ? .site : checks.challenge?.refusal != nil ? .scheme : checks.credential?.refusal != nil ? .credential : nil
    }

    /// No challenge has been answered after all.
    mutating func forgetAnswer() {
        outcome.challenge = nil
        outcome.credential = nil
        outcome.generation = nil
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

    /// Records the use of a credential, if there was one, once what came of it is known.
    mutating func recordUse(
        to journal: Journal, _ session: ClientSession, method: @autoclosure () -> String, _ route: Route
    ) {
        guard let start, !hasRecordedUse else { return }
        hasRecordedUse = true
        journal.recordUse(
            start, of: session, method: method(), site: route.reportedSite, decision: Self.decision(session),
            outcome)
    }

    private static func decision(_ session: ClientSession) -> AccessLog.Decision {
        session.connectSite?.isIntercepted == true ? .intercept : .forward
    }

    /// Writes the entry, once the exchange is over. `version` is that of the client's request.
    mutating func write(
        to journal: Journal, _ session: ClientSession, method: @autoclosure () -> String,
        version: @autoclosure () -> AccessLog.Version, _ route: Route
    ) {
        guard let start else { return }
        if !awaitsVerdict { recordUse(to: journal, session, method: method(), route) }
        var outcome = outcome
        outcome.clientVersion = version()
        journal.write(
            start, of: session, method: method(), site: route.reportedSite, decision: Self.decision(session),
            outcome)
    }
}
