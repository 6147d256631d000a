// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Proof Key for Code Exchange (RFC 7636), with S256 only.
package struct PKCE: Sendable, Equatable {
    /// 43 characters (RFC 7636 §4.1).
    package let verifier: Secret
    /// base64url of the verifier's SHA-256 (RFC 7636 §4.2).
    package let challenge: String

    /// `randomBytes` are 32 unpredictable bytes.
    package init(randomBytes: Secret) {
        precondition(randomBytes.count == 32)
        verifier = randomBytes.withBytes { Base64URL.encodeSecret($0) }
        challenge = verifier.withBytes { Base64URL.encode(Digest.sha256.hash($0)) }
    }
}

/// The secret values of one sign-in, which must not be guessable.
package struct SignInSecrets: Sendable, Equatable {
    package let pkce: PKCE
    /// Ties the redirect to this sign-in (RFC 6749 §10.12). 43 characters.
    package let state: String
    /// Ties the ID token to this sign-in (OpenID Connect Core §3.1.2.1). 43 characters.
    package let nonce: String

    /// The random bytes that ``init(randomBytes:)`` needs.
    package static let randomByteCount = 96

    /// `randomBytes` are ``randomByteCount`` unpredictable bytes.
    package init(randomBytes: Secret) {
        precondition(randomBytes.count == Self.randomByteCount)
        pkce = PKCE(randomBytes: randomBytes.withBytes { Secret($0[0..<32]) })
        state = randomBytes.withBytes { Base64URL.encode($0[32..<64]) }
        nonce = randomBytes.withBytes { Base64URL.encode($0[64..<96]) }
    }
}
