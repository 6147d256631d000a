// SPDX-License-Identifier: Apache-2.0

/// A server's request for authentication, as passed to a ``ChallengeController``.
public struct AuthenticationChallenge: Equatable, Sendable {
    /// The site, realm and method of the challenge.
    public let protectionSpace: ProtectionSpace
    /// The credential that would otherwise be used; after a failure, the one that failed.
    public let proposedCredential: Credential?
    /// How many answers to this request the server has rejected.
    public let previousFailureCount: Int
    /// Identifies the exchange that asks, if it will report the outcome of the answer, as a ``ChallengeExchange`` does.
    package var permit: BreakerPermit?

    /// Creates a challenge.
    public init(
        protectionSpace: ProtectionSpace, proposedCredential: Credential? = nil, previousFailureCount: Int = 0
    ) {
        self.protectionSpace = protectionSpace
        self.proposedCredential = proposedCredential
        self.previousFailureCount = previousFailureCount
    }

    /// Compares the contents, regardless of the exchange that asks.
    public static func == (left: Self, right: Self) -> Bool {
        left.protectionSpace == right.protectionSpace && left.proposedCredential == right.proposedCredential
            && left.previousFailureCount == right.previousFailureCount
    }
}

/// How to proceed with an ``AuthenticationChallenge``, in Foundation's terms.
public enum ChallengeDisposition: Hashable, Sendable {
    /// Answer with the accompanying credential.
    case useCredential
    /// Do not answer: deliver the 401 unchanged, or continue the TLS handshake without a certificate.
    case performDefaultHandling
    /// Cancel the request.
    case cancelAuthenticationChallenge
    /// Do not answer this challenge, but try the next weaker one that the server offers.
    case rejectProtectionSpace
}
