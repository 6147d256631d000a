// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// The client's registration with the provider (RFC 6749 §2).
package struct Client: Sendable, Equatable {
    /// How the client proves who it is at the token endpoint (RFC 6749 §2.3).
    package enum Authentication: Sendable, Equatable {
        /// A public client, as native apps are (RFC 8252 §8.4): only `client_id` is sent.
        case none
        /// A secret, sent in the way that the provider supports; see ``Client/resolved(for:)``.
        case secret(Secret)
        /// `client_secret_basic`.
        case basic(Secret)
        /// `client_secret_post`.
        case post(Secret)
        /// `private_key_jwt`, before the provider is known; see ``Client/resolved(for:)``.
        case key(ClientKey)
        /// The grant is a ``GrantAssertion``, which this key signs: PKCS#8 in DER. Nothing else proves who the
        /// client is.
        case grantKey(Secret)
        /// `private_key_jwt` at one provider.
        case assertion(ClientAssertion)
    }

    package let identifier: String
    package let authentication: Authentication

    package init(_ identifier: String, _ authentication: Authentication = .none) {
        self.identifier = identifier
        self.authentication = authentication
    }

    /// A client that sends its secret by a method that the provider supports: `client_secret_basic` if it does not say
    /// (RFC 8414 §2). Throws `unsupportedProvider` if it supports neither way, or no signature of the client's key.
    package func resolved(for metadata: ProviderMetadata) throws(OAuthError) -> Client {
        if case .key(let key) = authentication {
            return Client(identifier, .assertion(try ClientAssertion(identifier, key, at: metadata)))
        }
        if let client = resolved(among: metadata.tokenEndpointAuthenticationMethods) { return client }
        throw OAuthError(
            .unsupportedProvider, .provider,
            "the provider accepts a client secret neither as client_secret_basic nor as client_secret_post")
    }

    /// The same for the revocation endpoint, which may have methods of its own (RFC 8414 §2). If the provider supports
    /// neither method, its refusal shows that.
    func resolvedForRevocation(_ metadata: ProviderMetadata) throws(OAuthError) -> Client {
        if case .key = authentication { return try resolved(for: metadata) }
        let methods =
            metadata.revocationEndpointAuthenticationMethods ?? metadata.tokenEndpointAuthenticationMethods
        return resolved(among: methods) ?? resolved(among: nil) ?? self
    }

    /// Nil if the methods are others.
    private func resolved(among methods: [String]?) -> Client? {
        guard case .secret(let secret) = authentication else { return self }
        let methods = methods ?? ["client_secret_basic"]
        if methods.containsExactly("client_secret_basic") { return Client(identifier, .basic(secret)) }
        if methods.containsExactly("client_secret_post") { return Client(identifier, .post(secret)) }
        return nil
    }

    /// A request with this client's authentication added. The client must be resolved.
    func request(
        _ purpose: ProviderRequest.Purpose, _ url: EndpointURL, _ parameters: FormParameters,
        proofKey: ES256Key? = nil
    ) -> ProviderRequest {
        var parameters = parameters
        var authorization: Secret?
        var secrets = parameters.secrets
        var assertion: ClientAssertion?
        switch authentication {
        case .none:
            // Some grants need no client (RFC 7523 §3.1, RFC 8693 §2.1).
            if !identifier.isEmpty { parameters.set("client_id", identifier) }
        case .grantKey: break
        case .post(let secret):
            parameters.set("client_id", identifier)
            parameters.append("client_secret", secret)
            secrets.append(secret)
        case .basic(let secret):
            authorization = basicField(secret)
            secrets.append(secret)
        case .assertion(let made):
            // Optional in RFC 7521 §4.2; providers find the client by it.
            parameters.set("client_id", identifier)
            assertion = made
        case .secret, .key:
            // Every exchange resolves its client when it has the provider's metadata, and fails if it cannot.
            preconditionFailure("the provider's way to authenticate the client is not chosen")
        }
        return ProviderRequest(
            purpose, url, body: parameters.encoded, authorization: authorization, secrets: secrets,
            assertion: assertion, proofKey: proofKey)
    }

    /// RFC 6749 §2.3.1: identifier and secret are form-encoded before the colon joins them.
    private func basicField(_ secret: Secret) -> Secret {
        let name = FormEncoding.encode(identifier.utf8)
        let password = FormEncoding.encodeSecret(secret)
        let pair = password.withBytes { password in
            Secret(count: name.utf8.count + 1 + password.count) { output in
                var position = 0
                for byte in name.utf8 + [UInt8(ascii: ":")] {
                    output[position] = byte
                    position += 1
                }
                for byte in password {
                    output[position] = byte
                    position += 1
                }
            }
        }
        let encoded = pair.withBytes { Base64.encodeSecret($0) }
        return encoded.withBytes { encoded in
            let scheme = Array("Basic ".utf8)
            return Secret(count: scheme.count + encoded.count) { output in
                output.copyBytes(from: scheme)
                UnsafeMutableRawBufferPointer(rebasing: output[scheme.count...]).copyMemory(from: encoded)
            }
        }
    }
}
