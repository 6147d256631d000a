// SPDX-License-Identifier: Apache-2.0

/// Whether a challenge is answered, and why: is the site on the list, may this kind of challenge be answered there, is
/// there a credential for the answer. `Proxy-Status`, the access log, `explain` and the library all use this value.
package struct ThreeChecks: Equatable, Sendable {
    /// The result of one check.
    package enum Check: Equatable, Sendable {
        /// With a short sentence without a full stop and without a secret.
        case yes(String)
        case no(Refusal)

        package var passed: Bool { refusal == nil }

        /// Nil if the check passed.
        package var refusal: Refusal? { if case .no(let refusal) = self { refusal } else { nil } }

        /// The sentence.
        package var reason: String {
            switch self {
            case .yes(let reason): reason
            case .no(let refusal): refusal.text
            }
        }
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

    /// That of the first failed check, or nil.
    package var refusal: Refusal? { site.refusal ?? challenge?.refusal ?? credential?.refusal }

    /// Its sentence.
    package var failure: String? { refusal?.text }
}
