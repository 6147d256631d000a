// SPDX-License-Identifier: Apache-2.0

/// A question to a ``ScopeDelegate``: a site needs more than a sign-in's access token permits.
public struct ScopeQuestion: Equatable, Sendable {
    /// The site.
    public let protectionSpace: ProtectionSpace
    /// The name of the sign-in.
    public let signIn: String
    /// The scopes that the site requires (RFC 6750 §3); empty if it does not name them. ``SignIns/scopes(lackedIn:)``
    /// looks in the metadata of the resource, too.
    public let scopes: [String]
    /// The claims that the token must have, a JSON object as in the parameter `claims` (OpenID Connect Core §5.5); nil
    /// if the site requires none.
    public let claims: String?
    /// The classes of authentication of which the site requires one (RFC 9470 §3); empty for any.
    public let acrValues: [String]
    /// How long ago the person may have signed in, in seconds (RFC 9470 §3); nil for any time.
    public let maximumAge: Int?
    /// The path and query of the request.
    public let target: String
    /// Where the metadata of the resource is, in the site's words (RFC 9728 §5.1); nil if it does not say.
    public let resourceMetadata: String?

    /// Creates a question, for the tests of a program.
    public init(
        protectionSpace: ProtectionSpace, signIn: String, scopes: [String], claims: String? = nil,
        acrValues: [String] = [], maximumAge: Int? = nil, target: String = "/", resourceMetadata: String? = nil
    ) {
        self.protectionSpace = protectionSpace
        self.signIn = signIn
        self.scopes = scopes
        self.claims = claims
        self.acrValues = acrValues
        self.maximumAge = maximumAge
        self.target = target
        self.resourceMetadata = resourceMetadata
    }
}

/// Asks the person to sign in again when a site requires more of an access token: scopes (`insufficient_scope`, RFC
/// 6750 §3.1), claims (`insufficient_claims`), or another sign-in (`insufficient_user_authentication`, RFC 9470).
public protocol ScopeDelegate: Sendable {
    /// Returns whether the person has signed in again, for example with
    /// ``SignIns/enrollment(again:meeting:)``; the request is then sent once more, with the new token.
    ///
    /// The request of an exchange waits for the answer; a `ChallengeProxy` delivers the site's response meanwhile,
    /// and its next request gets the new token. Requests that lack the same scopes share one question. While it is
    /// open, the delegate gets no question about other scopes of the same sign-in: the site's response is delivered.
    /// After false, it gets no further question about these scopes until the token changes. Until then, it gets
    /// questions about at most 16 different sets of scopes.
    func obtainScopes(_ question: ScopeQuestion) async -> Bool
}
