// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignSitePolicy

extension Policy {
    /// The third check for a challenge that asks for this device's certificate: that of the identity which `rule`
    /// names, or of the first one that the server accepts. Without one, the answer says so. `now` is in seconds since
    /// 1970.
    package func deviceDecision(
        for challenge: Challenge, _ rule: SiteRule, now: Int64
    ) -> CredentialDecision {
        guard let challenge = PKeyAuthChallenge(challenge) else {
            return .performDefaultHandling(reason: "the challenge is incomplete")
        }
        return deviceDecision(for: challenge, rule, now: now)
    }

    package func deviceDecision(for challenge: PKeyAuthChallenge, _ rule: SiteRule, now: Int64) -> CredentialDecision {
        guard case .open(_, _, let identities) = enrolled else {
            if case .closed(let reason) = enrolled { return .performDefaultHandling(reason: reason) }
            return .performDefaultHandling(reason: "the vault is closed")
        }
        if let reason = withheldReason(for: rule) { return .performDefaultHandling(reason: reason) }
        let fitting = identities.lazy.filter { identity in
            (rule.identity == nil || rule.identity == identity.name)
                && identity.fits(acceptableIssuers: [], at: now) && challenge.accepts(issuer: identity.leaf.issuer)
                && challenge.accepts(certificate: identity.leaf.der)
        }
        let device = fitting.compactMap { identity -> DeviceCredential? in
            guard let key = IdentityKey(identity), challenge.permits(algorithm: key.algorithm) else { return nil }
            return DeviceCredential(
                name: identity.name,
                certificate: DeviceCertificate(der: identity.leaf.der, issuer: identity.leaf.issuer, key: key))
        }.first
        return .useCredential(.device(device ?? .none)).unlessDry(rule)
    }

    /// Whether a challenge that asks for this device's certificate is answered at a site with this rule, be it without
    /// a certificate.
    package func answersDevice(for rule: SiteRule) -> Bool {
        if case .open = enrolled { rule.answer.contains(.pkeyauth) && !rule.isDryRun } else { false }
    }

    /// Whether there is an identity that can prove this device at a site with this rule.
    package func hasDevice(for rule: SiteRule, now: Int64) -> Bool {
        identity(for: nil, rule: rule, now: now).identity != nil
    }
}
