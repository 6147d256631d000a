// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// How a client proves who it is, by the names of `token_endpoint_auth_method` (RFC 7591 §2).
package enum ClientAuthenticationMethod: String, CaseIterable, Sendable {
    /// A public client.
    case none
    /// A secret, by the method of the next two that the provider's metadata has. Not a name of the RFC.
    case secret = "client_secret"
    case basic = "client_secret_basic"
    case post = "client_secret_post"
    /// An assertion that the client's key signs (OpenID Connect Core §9).
    case privateKey = "private_key_jwt"
    /// The key of the client signs the grant. Not a name of the RFC, and never in a profile: the grant implies it.
    case grantKey = "grant_key"

    /// The methods that a profile can name.
    package static let named = allCases.filter { $0 != .grantKey }

    package var needsSecret: Bool { self != .none && self != .privateKey }

    /// Throws `configuration` for a secret that cannot be sent (RFC 6749 appendix A.2).
    package func authentication(with secret: Secret) throws(OAuthError) -> Client.Authentication {
        guard (1...Self.maximumSecretBytes).contains(secret.count),
            secret.withBytes({ $0.allSatisfy { (0x20...0x7E).contains($0) } })
        else {
            throw OAuthError(
                .configuration, .person,
                "the client secret is empty, too long, or has a character that OAuth does not "
                    + "permit", hint: "give it exactly as the provider shows it, on one line")
        }
        return switch self {
        case .none, .privateKey, .grantKey: .none
        case .secret: .secret(secret)
        case .basic: .basic(secret)
        case .post: .post(secret)
        }
    }

    /// The longest client secret, in bytes.
    package static let maximumSecretBytes = 4096
}

extension Client.Authentication {
    /// The client's secret, or the key that signs its grants; nil for a public client.
    package var secret: Secret? {
        switch self {
        case .none, .key, .assertion: nil
        case .secret(let secret), .basic(let secret), .post(let secret), .grantKey(let secret): secret
        }
    }
}
