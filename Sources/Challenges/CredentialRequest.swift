// SPDX-License-Identifier: Apache-2.0

/// The question that is asked of whoever holds the credentials.
package struct CredentialRequest: Equatable, Sendable {
    package let space: AuthenticationSpace
    /// How many answers this request has seen rejected.
    package let previousFailureCount: Int

    package init(space: AuthenticationSpace, previousFailureCount: Int) {
        self.space = space
        self.previousFailureCount = previousFailureCount
    }
}

/// The answer to an ``CredentialRequest``, in Foundation's words.
package enum CredentialDecision: Equatable, Sendable {
    case useCredential(EnrolledCredential)
    /// Not answered: the challenge goes back to the client as it came. The text says why, for `Proxy-Status`.
    case performDefaultHandling(reason: String)
    /// Not with this offer, but the next weaker one may be asked about.
    case rejectProtectionSpace(reason: String)
}
