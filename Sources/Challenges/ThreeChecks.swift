// SPDX-License-Identifier: Apache-2.0

/// Whether a challenge is answered, and why: is the site on the list, is the challenge of a kind that may be answered there,
/// is there a credential to answer with. One value feeds `Proxy-Status`, the access log, `explain` and the library.
package struct ThreeChecks: Equatable, Sendable {
    /// One check's answer. `reason` is a short sentence without a full stop, and without a secret.
    package struct Check: Equatable, Sendable {
        package let passed: Bool
        package let reason: String

        package static func yes(_ reason: String) -> Check { Check(passed: true, reason: reason) }
        package static func no(_ reason: String) -> Check { Check(passed: false, reason: reason) }
    }

    /// Is the site on the list?
    package var site: Check
    /// Is the challenge of a supported kind that the site's line permits? Nil: not looked at, an earlier check failed.
    package var challenge: Check?
    /// Is there a credential or identity to answer with? Nil: not looked at, an earlier check failed.
    package var credential: Check?

    package init(site: Check, challenge: Check? = nil, credential: Check? = nil) {
        self.site = site
        self.challenge = challenge
        self.credential = credential
    }

    /// All three passed.
    package var answers: Bool {
        site.passed && challenge?.passed == true && credential?.passed == true
    }

    /// The reason of the first check that failed, or nil.
    package var failure: String? {
        for check in [site, challenge, credential] {
            if let check, !check.passed { return check.reason }
        }
        return nil
    }
}
