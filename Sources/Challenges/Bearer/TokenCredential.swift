// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A bearer token (RFC 6750): a secret that is sent unchanged, without a user name.
package struct TokenCredential: Equatable, Sendable {
    /// The name under which it was enrolled: `enrollment` unless the user chose another.
    package let name: String
    /// A `b64token`; see ``isToken(_:)``.
    package let token: Secret
    package let source: CredentialSource
    /// As in ``CredentialReference``.
    package let tag: CredentialTag?

    package init(name: String, token: Secret, source: CredentialSource, tag: CredentialTag? = nil) {
        self.name = name
        self.token = token
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
        TokenCredential(name: name, token: token, source: source, tag: CredentialTag(token: token, key: key))
    }

    /// The vault's generation, if the token comes from the vault.
    package var generation: UInt64? { if case .vault(let generation) = source { generation } else { nil } }

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
