// SPDX-License-Identifier: Apache-2.0

/// The question that is asked of whoever holds the credentials.
package struct AuthenticationChallenge: Equatable, Sendable {
    package let space: ProtectionSpace
    /// How many answers this request has seen rejected.
    package let previousFailureCount: Int

    package init(space: ProtectionSpace, previousFailureCount: Int) {
        self.space = space
        self.previousFailureCount = previousFailureCount
    }
}

/// The answer to an ``AuthenticationChallenge``, in Foundation's words.
package enum ChallengeDisposition: Equatable, Sendable {
    case useCredential(Credential)
    /// Not answered: the challenge goes back to the client as it came. The text says why, for `Proxy-Status`.
    case performDefaultHandling(reason: String)
    /// Not with this offer, but the next weaker one may be asked about.
    case rejectProtectionSpace(reason: String)
}
