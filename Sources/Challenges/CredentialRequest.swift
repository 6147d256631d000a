// SPDX-License-Identifier: Apache-2.0

/// The question for whoever holds the credentials.
package struct CredentialRequest: Equatable, Sendable {
    package let offer: Offer
    package let space: AuthenticationSpace
    /// How many answers to this request were rejected before.
    package let previousFailureCount: Int

    package init(_ offer: Offer, at origin: Origin, previousFailureCount: Int) {
        self.offer = offer
        space = offer.space(at: origin)
        self.previousFailureCount = previousFailureCount
    }
}

/// The answer to a ``CredentialRequest``. The cases have the names of Foundation's.
package enum CredentialDecision: Equatable, Sendable {
    case useCredential(EnrolledCredential)
    /// The challenge goes back to the client unchanged, for this reason.
    case performDefaultHandling(reason: String)
    /// This offer is not answered, but a weaker one may be.
    case rejectProtectionSpace(reason: String)
}
