// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignJSON

/// The key of a client that signs an assertion in place of sending a secret: `private_key_jwt` (OpenID Connect Core
/// §9). The key itself is in another module.
package struct ClientKey: Sendable {
    /// The identity's name, for display.
    package let name: String
    /// The identity's certificate, in DER.
    package let certificate: [UInt8]
    /// Those of the key, the one that most providers know first.
    package let algorithms: [SignatureAlgorithm]
    /// The `kid` under which the provider knows the key (RFC 7515 §4.1.4); nil for a provider that finds it by the
    /// certificate, or has only one key of the client.
    package var identifier: String?
    /// The signature of a message in the form of JSON Web Signature (RFC 7515 §5.1); nil if the key cannot be used. May
    /// block while a token makes it.
    let sign: @Sendable ([UInt8], SignatureAlgorithm) -> [UInt8]?

    package init(
        name: String, certificate: [UInt8], algorithms: [SignatureAlgorithm],
        sign: @escaping @Sendable ([UInt8], SignatureAlgorithm) -> [UInt8]?
    ) {
        self.name = name
        self.certificate = certificate
        self.algorithms = algorithms
        self.sign = sign
    }
}

extension ClientKey: Equatable {
    /// Equal certificates imply the same key.
    package static func == (left: Self, right: Self) -> Bool {
        left.name == right.name && left.certificate == right.certificate && left.identifier == right.identifier
    }
}

/// The assertion with which a client proves that it has its key (RFC 7523 §2.2 and §3). Each request gets one of its
/// own: ``signed(at:random:)`` makes it when the request is sent.
///
/// `aud` is the issuer alone, as the revision of RFC 7523 demands (draft-ietf-oauth-rfc7523bis §4): with the token
/// endpoint in it, a provider could pass an assertion on to another one whose endpoint it claims to have. Microsoft's
/// and Keycloak's providers accept their issuer. If the profile names the endpoints, nobody has confirmed that the
/// issuer has them, and `aud` is the token endpoint instead (RFC 7523 §3).
///
/// `x5t#S256` and `x5t` name the certificate (RFC 7515 §4.1.7 and §4.1.8): Microsoft's provider finds the key by one of
/// them. There is no `kid` unless the profile has one: Keycloak computes its own, and refuses any other.
package struct ClientAssertion: Sendable, Equatable {
    let client: String
    let audience: String
    let algorithm: SignatureAlgorithm
    let key: ClientKey

    /// The value of `client_assertion_type`.
    static let type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    /// From `iat` to `exp`, in seconds.
    static let lifetime: Int64 = 120
    /// The size of ``signed(at:random:)``'s random bytes.
    static let randomByteCount = 16

    /// The compact serialisation (RFC 7515 §3.1). `time` is in seconds since 1970; `random` are bytes for `jti`. Throws
    /// `configuration` if the key cannot be used.
    func signed(at time: Int64, random: [UInt8]) throws(OAuthError) -> String {
        func text(_ text: String) -> JSONValue { JSONValue(.string(text)) }
        var header = [JSONMember("alg", text(algorithm.rawValue)), JSONMember("typ", text("JWT"))]
        if let identifier = key.identifier { header.append(JSONMember("kid", text(identifier))) }
        header += [
            JSONMember("x5t", text(Base64URL.encode(Digest.sha1.hash(key.certificate)))),
            JSONMember("x5t#S256", text(Base64URL.encode(Digest.sha256.hash(key.certificate)))),
        ]
        let claims = [
            JSONMember("iss", text(client)), JSONMember("sub", text(client)), JSONMember("aud", text(audience)),
            JSONMember("jti", text(Base64URL.encode(random))), JSONMember("iat", JSONValue(.integer(time))),
            JSONMember("exp", JSONValue(.integer(time + Self.lifetime))),
        ]
        let parts = [header, claims].map { Base64URL.encode(JSONValue(.object($0)).serialized.utf8) }
        let signed = parts.joined(separator: ".")
        guard let signature = key.sign(Array(signed.utf8), algorithm) else {
            throw .profile(
                "the key of the identity \(PrintableText.quote(key.name)) cannot sign the client's assertion",
                hint: "check the identity with `countersign certificate list`")
        }
        return "\(signed).\(Base64URL.encode(signature))"
    }
}

extension ClientAssertion {
    /// With the first of the key's algorithms that the provider accepts (RFC 8414 §2,
    /// `token_endpoint_auth_signing_alg_values_supported`), or the key's first if the provider does not say. Throws
    /// `unsupportedProvider` if it accepts none.
    init(_ client: String, _ key: ClientKey, at metadata: ProviderMetadata) throws(OAuthError) {
        let accepted = metadata.tokenEndpointAuthenticationAlgorithms
        let algorithm = key.algorithms.first { accepted?.containsExactly($0.rawValue) != false }
        guard let algorithm else {
            let own = key.algorithms.map(\.rawValue).joined(separator: " and ")
            throw OAuthError(
                .unsupportedProvider, .provider,
                "the provider accepts no client assertion that the identity \(PrintableText.quote(key.name)) can "
                    + "sign: its key signs with \(own)",
                hint: "ask which kind of key the provider wants, and name an identity with one in the profile")
        }
        // An assertion for the token endpoint must reach nobody else, who could use it there.
        let others = [
            metadata.pushedAuthorizationEndpoint, metadata.deviceAuthorizationEndpoint, metadata.revocationEndpoint,
        ].compactMap(\.self)
        guard metadata.isPublished || others.allSatisfy({ $0.origin == metadata.tokenEndpoint.origin }) else {
            throw OAuthError(
                .unsupportedProvider, .profile,
                "the endpoints that the profile names are on several servers, and one of them could use the client's "
                    + "assertion at another",
                hint: "ask for a profile that names none: the provider's metadata has them")
        }
        self.client = client
        self.algorithm = algorithm
        self.key = key
        audience = metadata.isPublished ? metadata.issuer : metadata.tokenEndpoint.description
    }
}

extension ProviderRequest {
    /// The request as it is sent once: with the client's assertion, and with the proof of the key that the tokens are
    /// bound to, if it has them. `nonce` is the provider's, if it has given one (RFC 9449 §8). `time` is in
    /// seconds since 1970; `random` returns the given number of unpredictable bytes. Throws `configuration` if a key
    /// cannot be used.
    package func completed(
        at time: Int64, nonce: String? = nil, random: (Int) -> [UInt8]
    ) throws(OAuthError) -> ProviderRequest {
        var completed = self
        if let assertion, let body {
            var parameters = FormParameters()
            parameters.append("client_assertion_type", ClientAssertion.type)
            let signed = try assertion.signed(at: time, random: random(ClientAssertion.randomByteCount))
            parameters.append("client_assertion", signed)
            completed = ProviderRequest(
                purpose, url, body: body.appending("&\(parameters.text)"), authorization: authorization,
                secrets: secrets + [Secret(utf8: signed)], proofKey: proofKey)
        }
        guard let proofKey else { return completed }
        let proof = DPoPProof(method, url.description, nonce: nonce)
            .signed(with: proofKey, at: time, random: random(DPoPProof.randomByteCount))
        guard let proof else { throw .profile("the key of the tokens cannot sign") }
        completed.proof = proof
        return completed
    }
}

extension Secret {
    fileprivate func appending(_ text: String) -> Secret {
        let more = Array(text.utf8)
        return withBytes { bytes in
            Secret(count: bytes.count + more.count) { output in
                output.copyBytes(from: bytes)
                UnsafeMutableRawBufferPointer(rebasing: output[bytes.count...]).copyBytes(from: more)
            }
        }
    }
}
