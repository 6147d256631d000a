// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignEnrollment
import CountersignVault

/// Whether one identity wants a new certificate, and when. All times are in seconds since 1970.
package struct RenewalState: Equatable, Sendable {
    package enum Need: Equatable, Sendable {
        /// It is in the first two thirds of its life.
        case none
        /// It is past them.
        case aging
        case expired
        /// Key and chain are not both there, or do not belong together; or the file of the chain is not what it should be.
        case damaged(String)
        /// It is enrolled, and its first certificate has not come.
        case missing
    }

    package let name: String
    package let need: Need
    /// The certificate's last second; nil where there is none that can be used.
    package let notAfter: Int64?
    /// When it is due, past or to come.
    package let due: Int64
    /// When it is to be tried next, failures so far and the server's wishes considered.
    package let nextAttempt: Int64
    /// Whether it can be refreshed.
    package let isEnrolled: Bool

    package var isDue: Bool { need != .none }

    /// Nil where there is nothing of that name. Reads the file of the chain.
    package init?(named name: String, in contents: VaultContents?, home: Home, now: Int64) {
        let record = contents?.plan(of: name)
        let isThere = contents?.hasKey(of: name) == true || (try? home.identityNames().contains(name)) == true
        guard isThere || record != nil else { return nil }
        let stored = StoredIdentity(named: name, in: contents, home: home, readsTokens: false)
        let leaf = stored.chain?.first
        let schedule = leaf.map { RenewalSchedule(of: $0) } ?? .overdue
        self.name = name
        need = Self.need(of: stored, isThere: isThere, schedule, now)
        notAfter = leaf?.notAfter
        due = schedule.due
        isEnrolled = record != nil
        // A time to come is a clock's that was wrong.
        let lastFailure = record.map { $0.lastFailure > now ? 0 : $0.lastFailure } ?? 0
        let attempt = schedule.nextAttempt(failures: record?.failures ?? 0, lastFailure: lastFailure)
        nextAttempt = max(attempt, contents?.pendingEnrollments[name]?.retryTime(at: now) ?? 0)
    }

    private static func need(
        of stored: StoredIdentity, isThere: Bool, _ schedule: RenewalSchedule, _ now: Int64
    ) -> Need {
        guard isThere else { return .missing }
        guard let leaf = stored.chain?.first else { return .damaged(stored.fault ?? "it is not whole") }
        if leaf.notAfter < now { return .expired }
        if let fault = stored.fileFault { return .damaged(fault) }
        return schedule.due <= now ? .aging : .none
    }
}

extension RenewalSchedule {
    /// The schedule of a certificate, whose fingerprint gives the jitter.
    package init(of certificate: Certificate) {
        self.init(
            notBefore: certificate.notBefore, notAfter: certificate.notAfter,
            jitter: Self.jitter(of: certificate.sha256Fingerprint))
    }
}

extension VaultContents {
    /// The vault has the identity's private key, or says where it lies.
    package func hasKey(of name: String) -> Bool { identityKeys[name] != nil || tokenKeys[name] != nil }

    /// By what a certificate of that name is asked for next: what is pending, else the identity's enrolment.
    package func plan(of name: String) -> EnrollmentRecord? { pendingPlan(of: name) ?? enrollments[name] }

    /// The names that have a ``plan(of:)``.
    package var plannedNames: [String] {
        Set(enrollments.keys).union(pendingEnrollments.keys.filter { pendingPlan(of: $0) != nil }).sorted()
    }

    /// An enrolment that was stopped before the server had it does not stand in the way of an identity that is there.
    func pendingPlan(of name: String) -> EnrollmentRecord? {
        guard let pending = pendingEnrollments[name], let plan = pending.plan else { return nil }
        return pending.isUnderway || enrollments[name] == nil && !hasKey(of: name) ? plan : nil
    }
}

extension PendingEnrollment {
    /// When it may be asked for again; a time that no server can have asked for is a clock's that was wrong.
    func retryTime(at now: Int64) -> Int64 { retryAt - now > ESTClient.longestRetryAfter ? 0 : retryAt }
}
