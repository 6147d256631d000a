// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCryptography

/// Decodes a PrivateKeyInfo (RFC 5208 §5) with an ECPrivateKey (RFC 5915 §3) on P-256, in exactly the form that OpenSSL
/// writes: a named curve, no attributes, an uncompressed public key.
///
/// Builds the key from its parts. OpenSSL's generic decoding tries the decoders of all formats and takes about fifteen
/// times as long: a third of a millisecond for each key at the start of the process.
struct P256KeyDecoder {
    /// The bytes before the scalar: PrivateKeyInfo, version 0, id-ecPublicKey, prime256v1; ECPrivateKey, version 1.
    private static let beforeScalar: [UInt8] = [
        0x30, 0x81, 0x87, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86,
        0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D,
        0x03, 0x01, 0x07, 0x04, 0x6D, 0x30, 0x6B, 0x02, 0x01, 0x01, 0x04, 0x20,
    ]
    private static let scalarBytes = 32
    /// `[1]`, a bit string without unused bits.
    private static let beforePoint: [UInt8] = [0xA1, 0x44, 0x03, 0x42, 0x00]
    private static let uncompressed: UInt8 = 0x04
    private static let pointBytes = 65

    private let scalar: UnsafeRawBufferPointer
    private let point: UnsafeRawBufferPointer

    /// Nil for any other form. Keeps a reference to the bytes.
    init?(_ pkcs8: UnsafeRawBufferPointer) {
        let scalar = Self.beforeScalar.count..<Self.beforeScalar.count + Self.scalarBytes
        guard pkcs8.count == scalar.upperBound + Self.beforePoint.count + Self.pointBytes,
            pkcs8.starts(with: Self.beforeScalar),
            pkcs8[scalar.upperBound...].starts(with: Self.beforePoint + [Self.uncompressed])
        else { return nil }
        self.scalar = UnsafeRawBufferPointer(rebasing: pkcs8[scalar])
        point = UnsafeRawBufferPointer(rebasing: pkcs8.suffix(Self.pointBytes))
    }

    /// A new EVP_PKEY, owned by the caller. Nil if the point is not on the curve, or if OpenSSL is configured to use an
    /// engine for such keys, which only the generic decoders support.
    func read() -> OpaquePointer? {
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        guard let number = BN_bin2bn(scalar.baseAddress, Int32(scalar.count), BN_secure_new()) else { return nil }
        defer { BN_clear_free(number) }
        // Integers in an OSSL_PARAM have native byte order.
        let native = Secret(count: scalar.count) { room in
            BN_bn2nativepad(number, room.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(room.count))
        }
        return native.withBytes { native in
            csn_EVP_PKEY_from_P256(context, native.baseAddress, native.count, point.baseAddress, point.count)
        }
    }
}
