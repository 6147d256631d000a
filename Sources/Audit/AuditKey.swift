// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The key that signs an audit: ECDSA on P-256 with SHA-256.
package struct AuditKey: Sendable, Equatable {
    private let key: ES256Key
    package let publicKey: AuditPublicKey

    package init(_ key: ES256Key) {
        self.key = key
        publicKey = AuditPublicKey(x: key.x, y: key.y)
    }

    /// Nil if OpenSSL cannot sign.
    func signature(of message: [UInt8]) -> [UInt8]? { key.signature(of: message).map(ECDSASignature.encode) }
}

/// The public half, which verifies an audit. Anyone may have it.
package struct AuditPublicKey: Sendable, Equatable {
    private let x: [UInt8]
    private let y: [UInt8]

    /// The start of a SubjectPublicKeyInfo (RFC 5480 §2) with id-ecPublicKey, P-256 and an uncompressed point.
    private static let prefix: [UInt8] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48,
        0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
    ]
    private static let label = (begin: "-----BEGIN PUBLIC KEY-----", end: "-----END PUBLIC KEY-----")

    init(x: [UInt8], y: [UInt8]) {
        self.x = x
        self.y = y
    }

    /// Reads ``pem``, with nothing before or after it. Nil for another kind of key.
    package init?(pem: String) {
        let lines = pem.split(whereSeparator: \.isNewline)
        guard lines.count > 2, lines[0] == Self.label.begin, lines[lines.count - 1] == Self.label.end,
            let info = Base64.decode(lines[1..<(lines.count - 1)].joined()), info.starts(with: Self.prefix),
            info.count == Self.prefix.count + 64
        else { return nil }
        self.init(x: Array(info.suffix(64).prefix(32)), y: Array(info.suffix(32)))
        guard (try? VerificationKey(.p256, x: x, y: y)) != nil else { return nil }
    }

    private var info: [UInt8] { Self.prefix + x + y }

    /// `PUBLIC KEY` (RFC 7468 §13), as OpenSSL reads it.
    package var pem: String { "\(Self.label.begin)\n\(Base64.encodeLines(info))\(Self.label.end)\n" }

    /// SHA-256 of the SubjectPublicKeyInfo in hexadecimal digits.
    package var id: String { Hex.encode(Digest.sha256.hash(info)) }

    func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
        guard let numbers = ECDSASignature.decode(signature), let key = try? VerificationKey(.p256, x: x, y: y) else {
            return false
        }
        return key.verifies(numbers, of: message, .ecdsa(.sha256))
    }
}

/// ECDSA-Sig-Value (RFC 3279 §2.2.3) on P-256, which `openssl dgst -verify` reads, unlike the pair of numbers of JWS.
enum ECDSASignature {
    /// `numbers`: both in network order, 32 bytes each.
    static func encode(_ numbers: [UInt8]) -> [UInt8] {
        let content = [numbers.prefix(32), numbers.suffix(32)].flatMap { number in
            var digits = Array(number.drop { $0 == 0 })
            if digits.first.map({ $0 >= 0x80 }) ?? true { digits.insert(0, at: 0) }
            return [0x02, UInt8(digits.count)] + digits
        }
        return [0x30, UInt8(content.count)] + content
    }

    /// Nil unless it is what ``encode(_:)`` writes.
    static func decode(_ signature: [UInt8]) -> [UInt8]? {
        var numbers: [UInt8] = []
        var rest = signature.dropFirst(2)
        for _ in 0..<2 {
            guard rest.count > 2 else { return nil }
            let digits = rest.dropFirst(2).prefix(Int(rest[rest.startIndex + 1])).drop { $0 == 0 }
            guard digits.count <= 32 else { return nil }
            numbers += [UInt8](repeating: 0, count: 32 - digits.count) + digits
            rest = rest.dropFirst(2 + Int(rest[rest.startIndex + 1]))
        }
        return encode(numbers) == signature ? numbers : nil
    }
}
