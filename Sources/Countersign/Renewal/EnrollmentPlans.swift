// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignEnrollment
package import CountersignVault

extension VaultContents {
    /// Whether the vault contains the identity's private key, or a reference to the token that does.
    package func hasKey(of name: String) -> Bool { identityKeys[name] != nil || tokenKeys[name] != nil }

    /// The record by which the next certificate of that name is requested: the pending one, else the identity's
    /// enrolment.
    package func plan(of name: String) -> EnrollmentRecord? { pendingPlan(of: name) ?? enrollments[name] }

    /// The names that have a ``plan(of:)``.
    package var plannedNames: [String] {
        Set(enrollments.keys).union(pendingEnrollments.keys.filter { pendingPlan(of: $0) != nil }).sorted()
    }

    /// The names of all identities, complete or not.
    var identityNames: Set<String> { Set(identityKeys.keys).union(tokenKeys.keys).union(plannedNames) }

    /// The pending plan of that name. If the identity exists, a plan counts only once a server has received the
    /// request. One of a sign-in counts once the sign-in is stored: before, no other process has a token for it.
    func pendingPlan(of name: String) -> EnrollmentRecord? {
        guard let pending = pendingEnrollments[name], let plan = pending.plan, !hasAbandonedRequest(named: name)
        else { return nil }
        return pending.isUnderway || enrollments[name] == nil && !hasKey(of: name) ? plan : nil
    }
}

extension EnrollmentRecord {
    /// The ``keySpecification`` that lets the server choose the kind of key, and this program if the server does not.
    package static let anyKey = "any"
}

extension PendingEnrollment {
    /// Creates a pending enrolment with the key in `token`, or with a new one of the plan's kind, which is P-256 while
    /// the server may still ask for another.
    init(for plan: EnrollmentRecord, token: TokenKey?, created: Int64) throws {
        if let token {
            self.init(token: token, created: max(0, created))
        } else {
            let key = try PrivateKey.generate(KeySpecification(plan.keySpecification) ?? .ecP256)
            self.init(name: plan.name, privateKey: try key.pkcs8, created: max(0, created))
        }
        self.plan = plan
    }

    /// When to send the request again. A time further away than any server may ask for comes from a clock that was
    /// wrong, and is ignored.
    func retryTime(at now: Int64) -> Int64 { retryAt - now > ESTClient.longestRetryAfter ? 0 : retryAt }
}

extension PreviousIdentity {
    var leaf: Certificate? { chain.first.flatMap { try? Certificate(der: $0) } }
}
