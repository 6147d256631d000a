// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// A private key on P-256 given by its number, which signs with ES256 (RFC 7518 §3.4).
///
/// Unchecked because of the pointer: an EVP_PKEY is not modified after it is read, and OpenSSL locks its caches.
package final class ES256Key: @unchecked Sendable {
    /// The private number: ``scalarBytes`` bytes in network order.
    package let scalar: Secret
    /// The coordinates of the public key, 32 bytes each.
    package let x: [UInt8]
    package let y: [UInt8]
    private let key: OpaquePointer

    package static let scalarBytes = 32

    /// The order of the curve (SEC 2 §2.4.2). OpenSSL reads numbers beyond it.
    private static let order: [UInt8] = [
        0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xBC, 0xE6,
        0xFA,
        0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51,
    ]

    /// Nil for another length, 0, and a number that is not below the order of the curve: one of 2³² random ones.
    package init?(scalar: Secret) {
        guard scalar.count == Self.scalarBytes,
            scalar.withBytes({ bytes in bytes.contains { $0 != 0 } && bytes.lexicographicallyPrecedes(Self.order) })
        else { return nil }
        ERR_clear_error()
        defer { ERR_clear_error() }
        // PrivateKeyInfo (RFC 5208 §5) with id-ecPublicKey, P-256, and an ECPrivateKey (RFC 5915 §3) without the public
        // key, which OpenSSL computes.
        let prefix: [UInt8] = [
            0x30, 0x41, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08,
            0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0x04, 0x27, 0x30, 0x25, 0x02, 0x01, 0x01, 0x04, 0x20,
        ]
        let encoded = scalar.withBytes { scalar in
            Secret(count: prefix.count + scalar.count) { output in
                output.copyBytes(from: prefix)
                UnsafeMutableRawBufferPointer(rebasing: output[prefix.count...]).copyMemory(from: scalar)
            }
        }
        let key = encoded.withBytes { bytes -> OpaquePointer? in
            var position = bytes.assumingMemoryBound(to: UInt8.self).baseAddress
            return d2i_AutoPrivateKey(nil, &position, bytes.count)
        }
        guard let key else { return nil }
        guard let point = Self.publicPoint(of: key) else {
            EVP_PKEY_free(key)
            return nil
        }
        self.key = key
        self.scalar = scalar
        (x, y) = (Array(point.prefix(32)), Array(point.suffix(32)))
    }

    deinit { EVP_PKEY_free(key) }

    package static func random() -> ES256Key {
        while true {
            if let key = ES256Key(scalar: Randomness.secret(scalarBytes)) { return key }
        }
    }

    /// Both coordinates: the end of a SubjectPublicKeyInfo (RFC 5480 §2.2).
    private static func publicPoint(of key: OpaquePointer) -> [UInt8]? {
        let length = i2d_PUBKEY(key, nil)
        guard length == 91 else { return nil }
        var encoded = [UInt8](repeating: 0, count: Int(length))
        let written = encoded.withUnsafeMutableBufferPointer { buffer -> Int32 in
            var position = buffer.baseAddress
            return i2d_PUBKEY(key, &position)
        }
        return written == length ? Array(encoded.suffix(64)) : nil
    }

    /// 64 bytes: both numbers in network order. Nil if OpenSSL cannot sign.
    package func signature(of message: [UInt8]) -> [UInt8]? {
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard let context = EVP_MD_CTX_new() else { return nil }
        defer { EVP_MD_CTX_free(context) }
        var length = 72
        var der = [UInt8](repeating: 0, count: length)
        guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1,
            EVP_DigestSign(context, &der, &length, message, message.count) == 1
        else { return nil }
        return Self.numbers(of: der.prefix(length))
    }

    /// Those of an ECDSA-Sig-Value (RFC 3279 §2.2.3), 32 bytes each. All of its lengths are below 128.
    private static func numbers(of der: ArraySlice<UInt8>) -> [UInt8]? {
        var rest = der.dropFirst(2)
        var numbers: [UInt8] = []
        for _ in 0..<2 {
            guard rest.count > 2, rest.removeFirst() == 0x02 else { return nil }
            let length = Int(rest.removeFirst())
            let digits = rest.prefix(length).drop { $0 == 0 }
            guard digits.count <= 32 else { return nil }
            numbers += [UInt8](repeating: 0, count: 32 - digits.count) + digits
            rest = rest.dropFirst(length)
        }
        return numbers
    }
}

extension ES256Key: Equatable {
    package static func == (left: ES256Key, right: ES256Key) -> Bool { left === right || left.scalar == right.scalar }
}
