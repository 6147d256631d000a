// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// An access token, which is sent unchanged and without a user name: a bearer token (RFC 6750), or one that is bound to
/// a key (RFC 9449).
package struct TokenCredential: Equatable, Sendable {
    /// The name under which it was enrolled: `enrollment` unless the user chose another.
    package let name: String
    /// A `b64token`; see ``isToken(_:)``. Must not be sent as a bearer token if it is ``bound``.
    package let token: Secret
    /// With its key, if it is bound to one.
    package let bound: BoundToken?
    /// The token as it is stored: the token itself, or a ``BoundToken``.
    package let stored: Secret
    package let source: CredentialSource
    /// As in ``CredentialReference``.
    package let tag: CredentialTag?

    /// `token` is as ``stored``.
    package init(name: String, token: Secret, source: CredentialSource, tag: CredentialTag? = nil) {
        let bound = BoundToken(decoding: token)
        self.name = name
        self.bound = bound
        self.token = bound?.token ?? token
        stored = token
        self.source = source
        self.tag = tag
    }

    /// A token from the vault.
    package init(name: String, token: Secret, generation: UInt64) {
        self.init(name: name, token: token, source: .vault(generation: generation))
    }

    package var reference: CredentialReference { CredentialReference(name: name, source: source, tag: tag) }

    /// The same token with the tag for `key`, which all processes that use the same home share.
    package func tagged(with key: Secret) -> TokenCredential {
        TokenCredential(name: name, token: stored, source: source, tag: CredentialTag(token: stored, key: key))
    }

    /// The vault's generation, if the token comes from the vault.
    package var generation: UInt64? { if case .vault(let generation) = source { generation } else { nil } }

    /// Whether `secret` is an access token as it is stored: a `b64token`, or a ``BoundToken``.
    package static func isStorable(_ secret: Secret) -> Bool {
        isToken(secret) || BoundToken(decoding: secret) != nil
    }

    /// Whether `secret` is a `b64token` (RFC 6750 §2.1):
    /// `1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="`.
    package static func isToken(_ secret: Secret) -> Bool {
        secret.withBytes { bytes in
            let end = bytes.lastIndex { $0 != UInt8(ascii: "=") }
            guard let end else { return false }
            return bytes[...end].allSatisfy { octet in
                switch octet {
                case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default: "-._~+/".utf8.contains(octet)
                }
            }
        }
    }
}
