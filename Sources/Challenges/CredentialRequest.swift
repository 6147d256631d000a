// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// A request for the credential with which to answer a challenge.
package struct CredentialRequest: Equatable, Sendable {
    package let offer: Offer
    package let space: AuthenticationSpace
    /// How many answers to this request have been rejected.
    package let previousFailureCount: Int
    /// The answer that was sent before a challenge, and to which the server replied with this one. It counts until an
    /// answer is accepted: ``Breaker/Result/challengedUnasked``.
    package let refused: AcceptedAnswer?
    /// The schemes that the server offers with the challenge; nil without one.
    package let offered: OfferedSchemes?

    package init(
        _ offer: Offer, at origin: Origin, previousFailureCount: Int, after refused: AcceptedAnswer? = nil,
        offered: OfferedSchemes? = nil
    ) {
        self.offer = offer
        space = offer.space(at: origin)
        self.previousFailureCount = previousFailureCount
        self.refused = refused
        self.offered = offered
    }

    /// Ignores the fields that are for the breaker only.
    package static func == (left: Self, right: Self) -> Bool {
        left.offer == right.offer && left.space == right.space
            && left.previousFailureCount == right.previousFailureCount
    }
}

/// The answer to a ``CredentialRequest``. The cases are named as in Foundation.
package enum CredentialDecision: Equatable, Sendable {
    case useCredential(EnrolledCredential)
    /// The challenge is handed back to the client unchanged, for this reason.
    case performDefaultHandling(reason: Refusal)
    /// This challenge is not answered, but a weaker one may be.
    case rejectProtectionSpace(reason: Refusal)
}
