// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignCryptography
import CountersignHTTP1
import CountersignSitePolicy
import CountersignUpstream
import Glibc
import Synchronization

/// Writes one line with a JSON object for every request and tunnel. It contains no path, field value or secret, because
/// ``Entry`` has none. ``LogFile`` handles a file that cannot be written.
package final class AccessLog: Sendable {
    enum Decision: String {
        case tunnel
        case intercept
        case refuse
        /// Forwarded without interception: over http, or in absolute form.
        case forward
    }

    /// A version of HTTP.
    enum Version: String {
        case http10 = "1.0"
        case http11 = "1.1"
        case http2 = "2"
    }

    /// One request or tunnel.
    struct Entry {
        var startedAt: (seconds: Int64, milliseconds: Int64)
        var id: UInt64
        var client: ClientProcess
        var method: String
        /// `scheme://host:port`, or `host:port` of a tunnel with unknown content.
        var site: String
        var decision: Decision
        /// The list's `file:line`.
        var rule: String?
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

        fileprivate var allReasons: String? {
            guard trustReason != nil || repair != nil else { return reason }
            let repaired = repair.map { "the response was repaired: \($0.deviation)" }
            let reasons = [reason, trustReason, repaired].compactMap(\.self).filter { !$0.isEmpty }
            return reasons.isEmpty ? nil : reasons.joined(separator: "; ")
        }
    }

    /// The start of a request or tunnel.
    struct Start {
        fileprivate let time: (seconds: Int64, milliseconds: Int64)
        fileprivate let id: UInt64
    }

    private let file: LogFile
    private let lastID = Atomic<UInt64>(0)

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

    /// Starts the log entry of a request or tunnel.
    func start() -> Start {
        Start(time: WallClock.now(), id: lastID.add(1, ordering: .relaxed).newValue)
    }

    /// Writes the entry of a request or tunnel that has ended.
    func write(
        _ start: Start, of client: ClientProcess, method: String, site: String, decision: Decision, rule: SiteRule?,
        _ outcome: Outcome
    ) {
        let now = WallClock.now()
        write(
            Entry(
                startedAt: start.time, id: start.id, client: client, method: method, site: site,
                decision: decision, rule: rule?.location, outcome: outcome,
                durationMilliseconds: (now.seconds - start.time.seconds) * 1000 + now.milliseconds
                    - start.time.milliseconds))
    }

    func write(_ entry: Entry) {
        var line = JSONObject()
        line.add("time", Self.timestamp(entry.startedAt))
        line.add("id", entry.id)
        if let pid = entry.client.pid { line.add("pid", UInt64(pid)) }
        if let uid = entry.client.uid { line.add("uid", UInt64(uid)) }
        line.add("method", entry.method)
        line.add("site", entry.site)
        line.add("decision", entry.decision.rawValue)
        if let rule = entry.rule { line.add("rule", rule) }
        if let challenge = entry.outcome.challenge { line.add("challenge", challenge) }
        if let credential = entry.outcome.credential { line.add("credential", credential) }
        if let trust = entry.outcome.trust { line.add("trust", trust.rawValue) }
        if let revocation = entry.outcome.revocation { line.add("revocation", revocation) }
        if let reason = entry.outcome.allReasons { line.add("reason", reason) }
        if let version = entry.outcome.clientVersion { line.add("http", version.rawValue) }
        if let version = entry.outcome.originVersion { line.add("origin_http", version.rawValue) }
        line.add("rounds", UInt64(entry.outcome.rounds))
        line.add("status", UInt64(entry.outcome.status))
        line.add("bytes", UInt64(entry.outcome.bytes))
        line.add("ms", UInt64(max(0, entry.durationMilliseconds)))
        file.append(line.utf8 + [UInt8(ascii: "\n")])
    }

    /// RFC 3339, in UTC with milliseconds.
    static func timestamp(_ time: (seconds: Int64, milliseconds: Int64)) -> String {
        var seconds = time_t(time.seconds)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func padded(_ number: some BinaryInteger, _ width: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, width - text.count)) + text
        }
        let date = "\(parts.tm_year + 1900)-\(padded(parts.tm_mon + 1, 2))-\(padded(parts.tm_mday, 2))"
        let clock = "\(padded(parts.tm_hour, 2)):\(padded(parts.tm_min, 2)):\(padded(parts.tm_sec, 2))"
        return "\(date)T\(clock).\(padded(time.milliseconds, 3))Z"
    }
}

/// The access log cannot be opened.
package struct AccessLogError: DiagnosableError {
    package let detail: String
}
