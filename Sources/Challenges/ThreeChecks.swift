// SPDX-License-Identifier: Apache-2.0

/// Whether a challenge is answered, and why: is the site on the list, may this kind of challenge be answered there, is
/// there a credential for the answer. `Proxy-Status`, the access log, `explain` and the library all use this value.
package struct ThreeChecks: Equatable, Sendable {
    /// The result of one check. `reason` is a short sentence without a full stop and without a secret.
    package struct Check: Equatable, Sendable {
        package let passed: Bool
        package let reason: String

        package static func yes(_ reason: String) -> Check { Check(passed: true, reason: reason) }
        package static func no(_ reason: String) -> Check { Check(passed: false, reason: reason) }
    }

    /// Is the site on the list?
    package var site: Check
    /// Is the challenge of a supported kind that the site's line permits? Nil if an earlier check failed.
    package var challenge: Check?
    /// Is there a credential or identity for the answer? Nil if an earlier check failed.
    package var credential: Check?

    package init(site: Check, challenge: Check? = nil, credential: Check? = nil) {
        self.site = site
        self.challenge = challenge
        self.credential = credential
    }

    /// Whether all three checks passed.
    package var answers: Bool {
        site.passed && challenge?.passed == true && credential?.passed == true
    }

    /// The reason of the first failed check, or nil.
    package var failure: String? {
        for check in [site, challenge, credential] {
            if let check, !check.passed { return check.reason }
        }
        return nil
    }
}
