// SPDX-License-Identifier: Apache-2.0

import CountersignJSON
import CountersignOAuth
public import FoundationEssentials

/// The access token of a sign-in, for requests to which your program adds the token itself. Requests to sites that
/// challenge need no such token: their challenges are answered.
public struct AccessToken: Equatable, Sendable {
    /// The name of the sign-in.
    public let name: String
    /// The token, for `Authorization: Bearer`.
    public let value: BearerToken
    /// The scopes that the provider has granted.
    public let scopes: [String]
    /// When the token expires; nil if the provider does not say.
    public let expires: Date?
    /// The claims of the last ID token, which was verified; nil if the provider has sent none.
    public let identityClaims: IdentityClaims?

    init(_ fresh: FreshToken) {
        let record = fresh.record
        name = record.name
        value = BearerToken(fresh.token.token)
        scopes = record.scope.split(separator: " ").map(String.init)
        expires = record.expires == 0 ? nil : Date(seconds: record.expires)
        identityClaims = record.identityToken.flatMap { IDToken.claims(ofVerified: $0) }.map { IdentityClaims($0) }
    }
}

/// What an ID token says about the person (OpenID Connect Core §2, §5.1).
public struct IdentityClaims: Equatable, Sendable {
    private let value: JSONValue

    init(_ value: JSONValue) { self.value = value }

    /// The claim of that name, if it is a string: `sub`, `name`, `email`, `preferred_username`.
    public subscript(name: String) -> String? {
        if case .string(let text)? = value[name]?.content { text } else { nil }
    }

    /// All claims, a JSON object.
    public var json: String { value.serialized }
}
