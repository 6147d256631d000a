// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// An access token that is of use only together with a key (RFC 9449 §5), as one secret: `DPoP`, the key and the token,
/// separated by spaces. No bearer token has this form, so that nothing can send it as one.
package struct BoundToken: Sendable, Equatable {
    package let key: ES256Key
    package let token: Secret

    private static let prefix = Array("DPoP ".utf8)
    /// Of the key in base64url.
    private static let keyBytes = 43

    package init(_ token: Secret, _ key: ES256Key) {
        self.token = token
        self.key = key
    }

    /// Nil for anything else, such as a bearer token.
    package init?(decoding secret: Secret) {
        let length = Self.prefix.count + Self.keyBytes
        let parts = secret.withBytes { bytes -> (key: Secret, token: Secret)? in
            guard bytes.count > length + 1, bytes.starts(with: Self.prefix), bytes[length] == UInt8(ascii: " "),
                let scalar = Base64URL.decodeSecret(bytes[Self.prefix.count..<length])
            else { return nil }
            return (scalar, Secret(bytes[(length + 1)...]))
        }
        guard let parts, let key = ES256Key(scalar: parts.key), TokenCredential.isToken(parts.token) else {
            return nil
        }
        self.init(parts.token, key)
    }

    package var encoded: Secret {
        let text = key.scalar.withBytes { Base64URL.encodeSecret($0) }
        return text.withBytes { key in
            token.withBytes { token in
                Secret(count: Self.prefix.count + key.count + 1 + token.count) { output in
                    output.copyBytes(from: Self.prefix)
                    UnsafeMutableRawBufferPointer(rebasing: output[Self.prefix.count...]).copyMemory(from: key)
                    output[Self.prefix.count + key.count] = UInt8(ascii: " ")
                    UnsafeMutableRawBufferPointer(rebasing: output[(Self.prefix.count + key.count + 1)...])
                        .copyMemory(from: token)
                }
            }
        }
    }
}
