// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignCryptography
import CountersignEvents
import CountersignHTTP1
import CountersignJSON
import CountersignSitePolicy
import CountersignUpstream
import Glibc

/// Writes one line with a JSON object for every request and tunnel. It contains no path, field value or secret, because
/// ``Entry`` has none. ``LogFile`` handles a file that cannot be written.
package final class AccessLog: Sendable {
    typealias Decision = RequestEvent.Decision
    typealias Version = RequestEvent.Version

    /// One request or tunnel.
    struct Entry {
        var startedAt: (seconds: Int64, milliseconds: Int64)
        var id: UInt64
        var client: ClientProcess
        var method: String
        var site: RequestSite
        var decision: Decision
        var outcome: Outcome
        var durationMilliseconds: Int64 = 0
    }

    /// The result of a request or tunnel, so far.
    struct Outcome {
        /// The scheme of the challenge that was answered.
        var challenge: String?
        /// The name of the credential or identity in the answer.
        var credential: String?
        /// Who accepted the origin's certificate although it does not verify: `standing`, `client` or `delegate`.
        private(set) var trust: TrustOutcome.Decider?
        /// Why the certificate does not verify. Logged as part of ``reason``.
        private(set) var trustReason: String?
        /// The revocation status of the origin's certificate, if a connection to it was opened: `good`, `revoked` or
        /// `unknown`.
        private(set) var revocation: String?
        /// The credential's generation, if it has one.
        var generation: UInt64?
        /// The origin has accepted or rejected it; nil if its response, or the lack of one, does not say.
        var verdict: CredentialUseEvent.Result?
        /// There was a response of the origin.
        var isOrigins = false
        /// The connection was authenticated with it for an earlier request. Only if ``credential`` is nil.
        var connectionCredential: (name: String, generation: UInt64?)?
        /// The schemes of the first challenges, in lower case.
        var offered: [String] = []
        /// The check that failed.
        var check: RequestEvent.Check?
        /// Why a challenge was not answered, or why the proxy generated the response.
        var reason: String?
        /// Why a response of the origin was not clean, and was repaired. Logged as part of ``reason``.
        var repair: HTTP1Error.Code?
        /// The versions in which the client and the proxy sent the request; nil for a tunnel, or if nothing was sent.
        var clientVersion: Version?
        var originVersion: Version?
        var rounds = 0
        var status = 0
        /// Bytes of the body sent to the client.
        var bytes = 0

        /// The origin's certificate is accepted by `trust`, on `connection`.
        mutating func record(_ trust: TrustOutcome, on connection: any OriginLease) {
            guard trust.decider != nil || self.trust != nil else { return }
            self.trust = trust.decider
            trustReason = trust.decider == nil ? nil : connection.tls?.serverTrust?.text
        }

        /// `connection` was opened.
        mutating func record(revocationOf connection: any OriginLease) {
            revocation = connection.tls?.serverTrust?.revocation.code
        }

        /// The origin's certificate does not verify, and there is no decision yet.
        mutating func record(undecided trust: ServerTrust) {
            trustReason = trust.text
        }

        var allReasons: String? {
            guard trustReason != nil || repair != nil else { return reason }
            let repaired = repair.map { "the response was repaired: \($0.deviation)" }
            let reasons = [reason, trustReason, repaired].compactMap(\.self).filter { !$0.isEmpty }
            return reasons.isEmpty ? nil : reasons.joined(separator: "; ")
        }
    }

    private let file: LogFile

    /// Appends to the file at `path`, which is created with mode 0600; `-` is standard output. `isRequired`: requests
    /// that cannot be logged are refused. `report` is called with a sentence when lines are lost, and when the log can
    /// be written again.
    package init(
        path: String, isRequired: Bool = false, report: @escaping @Sendable (String) -> Void
    ) throws(AccessLogError) {
        file = try LogFile(path: path, isRequired: isRequired, report: report)
    }

    /// Why requests must be refused now; nil if they can be logged, or need not be.
    var refusal: OwnResponse? {
        guard file.refuses else { return nil }
        return OwnResponse(
            status: 503, detail: "the access log cannot be written, and requests must be logged",
            proxyError: "proxy_internal_error")
    }

    /// Opens the file again, after it was renamed.
    package func reopen() throws(AccessLogError) { try file.reopen() }

    /// Called every second, by any thread. Writes the lines that could not be written before.
    func secondPassed(now: UInt64) { file.secondPassed(now: now) }

    func write(_ entry: Entry) {
        var line = JSONObject()
        line.add("time", Self.timestamp(entry.startedAt))
        entry.event.add(to: &line)
        file.append(line.line)
    }

    /// RFC 3339, in UTC with milliseconds.
    static func timestamp(_ time: (seconds: Int64, milliseconds: Int64)) -> String { Timestamp(time).text }
}

extension AccessLog.Entry {
    /// What the log and the readers of events get.
    var event: RequestEvent {
        RequestEvent(
            id: id, pid: client.pid, uid: client.uid, method: method, site: site, decision: decision,
            challenge: outcome.challenge, credential: outcome.credential, check: outcome.check,
            details: RequestEvent.Details(
                offered: outcome.offered, trust: outcome.trust?.rawValue, revocation: outcome.revocation,
                reason: outcome.allReasons),
            clientVersion: outcome.clientVersion, originVersion: outcome.originVersion, rounds: outcome.rounds,
            status: outcome.status, bytes: outcome.bytes, milliseconds: durationMilliseconds)
    }
}

/// The access log cannot be opened.
package struct AccessLogError: DiagnosableError {
    package let detail: String
    package var hint: String?
}
