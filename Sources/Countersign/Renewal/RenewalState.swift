// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
package import CountersignHome
package import CountersignVault

/// Whether one identity needs a new certificate, and when. All times are in seconds since 1970.
package struct RenewalState: Equatable, Sendable, Codable {
    package enum Need: Equatable, Sendable, Codable {
        /// The certificate is in the first two thirds of its lifetime.
        case none
        /// The certificate is in the last third of its lifetime.
        case aging
        case expired
        /// The key or the chain is missing, they do not match, or the chain's file differs from the vault.
        case damaged(String)
        /// The identity is enrolled, but its first certificate has not been issued.
        case missing
    }

    package let name: String
    package let need: Need
    /// The last second of the certificate's validity; nil if there is no usable certificate.
    package let notAfter: Int64?
    /// When the renewal is due, in the past or future.
    package let due: Int64
    /// When to try next, taking into account previous failures and the server's `Retry-After`.
    package let nextAttempt: Int64
    /// Whether the identity can be renewed.
    package let isEnrolled: Bool
    /// Whether the vault has its key, or a reference to the token that does.
    package let hasKey: Bool

    package var isDue: Bool { need != .none }

    /// Whether a renewal is due and possible.
    package var isRenewable: Bool { isDue && isEnrolled }

    /// The remedy for an imported identity of that name, which no server can renew.
    package static func importAgain(_ name: String) -> String {
        "it was imported: " + (Remedy.importIdentity(name: name, replaces: true).command.map { "`\($0)`" } ?? "")
    }

    /// Reads the chain's file. Returns nil if there is no identity of that name.
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
        hasKey = contents?.hasKey(of: name) == true
        // A failure in the future was recorded by a clock that was wrong.
        let lastFailure = record.map { $0.lastFailure > now ? 0 : $0.lastFailure } ?? 0
        let attempt = schedule.nextAttempt(failures: record?.failures ?? 0, lastFailure: lastFailure)
        let pending = contents?.hasAbandonedRequest(named: name) == true ? nil : contents?.pendingEnrollments[name]
        nextAttempt = max(attempt, pending?.retryTime(at: now) ?? 0)
    }

    private static func need(
        of stored: StoredIdentity, isThere: Bool, _ schedule: RenewalSchedule, _ now: Int64
    ) -> Need {
        guard isThere else { return .missing }
        guard let leaf = stored.chain?.first else { return .damaged(stored.fault ?? "it is incomplete") }
        if leaf.notAfter < now { return .expired }
        if let fault = stored.fileFault { return .damaged(fault) }
        return schedule.due <= now ? .aging : .none
    }
}
