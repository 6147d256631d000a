// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import NIOCore

/// Replaces a secret in content that arrives in pieces by as many asterisks, so that lengths stay as they were
/// announced. Octets at the end of a piece that may begin the secret are held back until the next piece.
///
/// The beginning of a secret alone is replaced at the end of the content only. Elsewhere it is often something that
/// other values begin with, too: `github_pat_`, or the first part of each token that an issuer signs.
///
/// The search is that of Knuth, Morris and Pratt: each octet is read once.
struct SecretRedactor {
    /// Shorter ones occur by chance.
    static let minimumBytes = 8
    private static let asterisk = UInt8(ascii: "*")

    private let secret: Secret
    /// For each number of matched octets, the number that still match if the next one does not.
    private let fallback: [Int]
    /// How many octets of the secret the content read so far ends in. They are held back.
    private var matched = 0

    init(_ secret: Secret) {
        self.secret = secret
        fallback = secret.withBytes { bytes in
            var fallback = [Int](repeating: 0, count: bytes.count + 1)
            var length = 0
            for index in bytes.indices.dropFirst() {
                while length > 0, bytes[index] != bytes[length] { length = fallback[length] }
                if bytes[index] == bytes[length] { length += 1 }
                fallback[index + 1] = length
            }
            return fallback
        }
    }

    /// The octets of `content`, after those held back, that are certain now.
    mutating func redacted(_ content: ByteBuffer) -> ByteBuffer {
        guard secret.count >= Self.minimumBytes else { return content }
        var output = ByteBuffer()
        output.reserveCapacity(content.readableBytes + matched)
        secret.withBytes { bytes in
            for octet in content.readableBytesView {
                while matched > 0, octet != bytes[matched] {
                    let left = fallback[matched]
                    output.writeBytes(bytes[..<(matched - left)])
                    matched = left
                }
                guard octet == bytes[matched] else {
                    output.writeInteger(octet)
                    continue
                }
                matched += 1
                if matched == bytes.count {
                    output.writeRepeatingByte(Self.asterisk, count: matched)
                    matched = 0
                }
            }
        }
        return output
    }

    /// The octets that were held back, at the end of the content: asterisks, if they are the beginning of a secret that
    /// the site has cut short. Fewer octets than ``minimumBytes`` occur by chance.
    mutating func rest() -> ByteBuffer {
        defer { matched = 0 }
        guard matched < Self.minimumBytes else { return ByteBuffer(repeating: Self.asterisk, count: matched) }
        return secret.withBytes { ByteBuffer(bytes: $0[..<matched]) }
    }
}
