// SPDX-License-Identifier: Apache-2.0

/// A request for the credential with which to answer a challenge.
package struct CredentialRequest: Equatable, Sendable {
    package let offer: Offer
    package let space: AuthenticationSpace
    /// How many answers to this request have been rejected.
    package let previousFailureCount: Int

    package init(_ offer: Offer, at origin: Origin, previousFailureCount: Int) {
        self.offer = offer
        space = offer.space(at: origin)
        self.previousFailureCount = previousFailureCount
    }
}

/// The answer to a ``CredentialRequest``. The cases are named as in Foundation.
package enum CredentialDecision: Equatable, Sendable {
    case useCredential(EnrolledCredential)
    /// The challenge is handed back to the client unchanged, for this reason.
    case performDefaultHandling(reason: String)
    /// This challenge is not answered, but a weaker one may be.
    case rejectProtectionSpace(reason: String)
}
