// SPDX-License-Identifier: Apache-2.0

/// Writes a trust store for Java runtimes: a PKCS#12 file with certificates only (RFC 7292 §4), without encryption and
/// MAC, because it contains no secrets and should not need a password.
///
/// A runtime only accepts a certificate without a key as a trust anchor if its bag has the attribute `trustedKeyUsage`,
/// 2.16.840.1.113894.746875.1.1, with a purpose (sun.security.pkcs12.PKCS12KeyStore).
package enum JavaTrustStore {
    private static let data: [UInt8] = [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x01]
    private static let certificateBag: [UInt8] = [
        0x06, 0x0B, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x0C, 0x0A, 0x01, 0x03,
    ]
    private static let x509Certificate: [UInt8] = [
        0x06, 0x0A, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x16, 0x01,
    ]
    private static let trustedKeyUsage: [UInt8] = [
        0x06, 0x0C, 0x60, 0x86, 0x48, 0x01, 0x86, 0xF9, 0x66, 0xAD, 0xCA, 0x7B, 0x01, 0x01,
    ]
    private static let anyExtendedKeyUsage: [UInt8] = [0x06, 0x04, 0x55, 0x1D, 0x25, 0x00]

    /// The file with all `anchors` in their order, without duplicates.
    package static func pkcs12(of anchors: [Certificate]) -> [UInt8] { pkcs12(ofDER: anchors.map(\.der)) }

    /// The same for certificates in DER.
    package static func pkcs12(ofDER anchors: [[UInt8]]) -> [UInt8] {
        var seen: Set<Encoding> = []
        let attributes = set(DEREncoding.sequence([trustedKeyUsage, set(anyExtendedKeyUsage)]))
        let bags = anchors.filter { seen.insert(Encoding(bytes: $0)).inserted }.map { anchor in
            let certificate = DEREncoding.sequence([x509Certificate, explicit(DEREncoding.octets(anchor))])
            return DEREncoding.sequence([certificateBag, explicit(certificate), attributes])
        }
        let safe = DEREncoding.sequence([content(DEREncoding.sequence(bags))])
        return DEREncoding.sequence([DEREncoding.integer(3), content(safe)])
    }

    /// A certificate as a set element. Hashes the end of its signature only, which differs between certificates.
    private struct Encoding: Hashable {
        let bytes: [UInt8]

        func hash(into hasher: inout Hasher) {
            for byte in bytes.suffix(8) { hasher.combine(byte) }
        }
    }

    /// A ContentInfo of type data (RFC 2315 §7, §8).
    private static func content(_ bytes: [UInt8]) -> [UInt8] {
        DEREncoding.sequence([data, explicit(DEREncoding.octets(bytes))])
    }

    /// A SET of one element.
    private static func set(_ element: [UInt8]) -> [UInt8] { DEREncoding.value(tag: 0x31, element) }

    private static func explicit(_ value: [UInt8]) -> [UInt8] { DEREncoding.tagged(0, constructed: true, value) }
}
