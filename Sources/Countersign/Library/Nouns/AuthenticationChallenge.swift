// SPDX-License-Identifier: Apache-2.0

/// The question that a server's challenge puts to whoever holds the credentials.
public struct AuthenticationChallenge: Equatable, Sendable {
    /// What is asked for.
    public let protectionSpace: ProtectionSpace
    /// What would be tried otherwise, or, after a failure, what failed.
    public let proposedCredential: Credential?
    /// How many answers to this request have been rejected.
    public let previousFailureCount: Int
    /// The dialogue that asks, if it is one that will tell how the answer fared, as a ``ChallengeExchange`` does.
    package var attempt: BreakerPermit?

    /// A challenge as it came.
    public init(
        protectionSpace: ProtectionSpace, proposedCredential: Credential? = nil, previousFailureCount: Int = 0
    ) {
        self.protectionSpace = protectionSpace
        self.proposedCredential = proposedCredential
        self.previousFailureCount = previousFailureCount
    }

    /// The same question; which dialogue asks is no part of it.
    public static func == (left: Self, right: Self) -> Bool {
        left.protectionSpace == right.protectionSpace && left.proposedCredential == right.proposedCredential
            && left.previousFailureCount == right.previousFailureCount
    }
}

/// What becomes of an ``AuthenticationChallenge``, in Foundation's words.
public enum ChallengeDisposition: Hashable, Sendable {
    /// Answer with the credential that comes with it.
    case useCredential
    /// Treat it as though nobody had been asked: the 401 goes back as it came, the handshake goes on without a
    /// certificate.
    case performDefaultHandling
    /// Give the request up.
    case cancelAuthenticationChallenge
    /// Not this challenge; the next weaker one that the server offers may be asked about.
    case rejectProtectionSpace
}
