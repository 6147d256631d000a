// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// A hash function of OpenSSL. ``MD4`` (RFC 1320) is not one of them. Callers of ``md5`` check ``isAvailable`` first: a
/// library that is restricted to FIPS 140 does not have it.
package enum Digest: String, CaseIterable, Sendable {
    case md5
    case sha1
    case sha256
    case sha384
    case sha512
    /// SHA-512/256 (FIPS 180-4 §5.3.6.2).
    case sha512_256

    var evp: OpaquePointer {
        switch self {
        case .md5: Fetched.md5
        case .sha1: EVP_sha1()
        case .sha256: Fetched.sha256
        case .sha384: EVP_sha384()
        case .sha512: EVP_sha512()
        case .sha512_256: Fetched.sha512_256
        }
    }

    /// The functions that sign requests, fetched once. OpenSSL looks up the others in its providers for each digest.
    /// Unsafe because of the pointers: an EVP_MD does not change after it is fetched, and these are never released.
    private enum Fetched {
        /// Nil if OpenSSL's configuration has no provider with MD5.
        nonisolated(unsafe) static let availableMD5: OpaquePointer? = EVP_MD_fetch(nil, "MD5", nil)
        nonisolated(unsafe) static let md5: OpaquePointer = availableMD5 ?? EVP_md5()
        nonisolated(unsafe) static let sha256: OpaquePointer = EVP_MD_fetch(nil, "SHA256", nil) ?? EVP_sha256()
        nonisolated(unsafe) static let sha512_256: OpaquePointer =
            EVP_MD_fetch(nil, "SHA512-256", nil) ?? EVP_sha512_256()
    }

    /// Whether OpenSSL can compute the function. Only MD5 may be missing (FIPS 140); all else depends on the others.
    package var isAvailable: Bool {
        self == .md5 ? Fetched.availableMD5 != nil : true
    }

    /// The digest's length.
    package var lengthBytes: Int {
        switch self {
        case .md5: 16
        case .sha1: 20
        case .sha256, .sha512_256: 32
        case .sha384: 48
        case .sha512: 64
        }
    }

    /// The digest of `bytes`.
    package func hash(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        hash(Array(bytes))
    }

    /// The digest of `bytes`.
    package func hash(_ bytes: [UInt8]) -> [UInt8] {
        bytes.withUnsafeBytes { hash($0) }
    }

    /// The digest of `bytes`.
    package func hash(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: lengthBytes) { output, count in
            var length: UInt32 = 0
            let done = EVP_Digest(bytes.baseAddress, bytes.count, output.baseAddress, &length, evp, nil)
            precondition(done == 1, "OpenSSL does not have \(self), which is part of its default provider")
            count = Int(length)
        }
    }

    /// HMAC (RFC 2104) of `bytes` under `key`.
    package func hmac(_ bytes: [UInt8], key: UnsafeRawBufferPointer) -> [UInt8] {
        bytes.withUnsafeBufferPointer { message in
            [UInt8](unsafeUninitializedCapacity: lengthBytes) { output, count in
                var length: UInt32 = 0
                let done = HMAC(
                    evp, key.baseAddress ?? UnsafeRawPointer(output.baseAddress), Int32(key.count),
                    message.baseAddress, message.count, output.baseAddress, &length)
                precondition(done != nil, "OpenSSL does not have HMAC-\(self), which is part of its default provider")
                count = Int(length)
            }
        }
    }

    /// HMAC (RFC 2104) of `bytes` under `key`.
    package func hmac(_ bytes: [UInt8], key: [UInt8]) -> [UInt8] {
        key.withUnsafeBytes { hmac(bytes, key: $0) }
    }
}
