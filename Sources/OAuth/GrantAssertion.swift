// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// The JWT with which a client that has a key of its own asks for a token: the grant of RFC 7523 §2.1 and §3, or the
/// proof of a GitHub App. Each request gets a new one. Signed with RS256 alone (RFC 7518 §3.3): both Google and GitHub
/// issue RSA keys.
package struct GrantAssertion: Sendable, Equatable {
    let issuer: String
    let subject: String?
    /// Nil for a GitHub App, whose assertions name nobody.
    let audience: String?
    let scope: String?
    let keyIdentifier: String?

    /// How far `iat` is in the past, in seconds, for servers whose clock is behind, as GitHub recommends.
    static let backdating: Int64 = 60
    /// From now to `exp`, in seconds. GitHub accepts up to ten minutes, Google up to an hour.
    static let lifetime: Int64 = 540

    /// The compact serialisation (RFC 7515 §3.1). `time` is in seconds since 1970. `sign` returns the signature in the
    /// form of RS256, or nil if the key cannot be used; that throws `configuration`.
    package func signed(at time: Int64, by sign: ([UInt8]) -> [UInt8]?) throws(OAuthError) -> String {
        func member(_ name: String, _ text: String?) -> [JSONMember] {
            text.map { [JSONMember(name, JSONValue(.string($0)))] } ?? []
        }
        let header =
            member("alg", SignatureAlgorithm.rs256.rawValue) + member("typ", "JWT") + member("kid", keyIdentifier)
        var claims = member("iss", issuer) + member("sub", subject) + member("aud", audience) + member("scope", scope)
        claims.append(JSONMember("iat", JSONValue(.integer(time - Self.backdating))))
        claims.append(JSONMember("exp", JSONValue(.integer(time + Self.lifetime))))
        let parts = [header, claims].map { Base64URL.encode(JSONValue(.object($0)).serialized.utf8) }
        let message = parts.joined(separator: ".")
        guard let signature = sign(Array(message.utf8)) else {
            throw .profile(
                "the private key of \(PrintableText.quote(issuer)) cannot sign", hint: "give an RSA key with --key")
        }
        return "\(message).\(Base64URL.encode(signature))"
    }
}

extension MachineGrant {
    /// The assertion of the client of `request` for that token endpoint; nil for a grant without one.
    package func assertion(of request: SignInRequest, for endpoint: EndpointURL) -> GrantAssertion? {
        switch self {
        case .clientCredentials, .assertion, .exchange: nil
        case .signedAssertion(let grant):
            GrantAssertion(
                issuer: request.client.identifier, subject: grant.subject,
                audience: grant.audience ?? endpoint.description, scope: request.scope,
                keyIdentifier: grant.keyIdentifier)
        case .installation:
            GrantAssertion(
                issuer: request.client.identifier, subject: nil, audience: nil, scope: nil, keyIdentifier: nil)
        }
    }
}
