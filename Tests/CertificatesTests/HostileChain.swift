// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

@testable import CountersignCertificates

/// A chain whose verification is as expensive as its sender can make it: several layers of intermediate certificates,
/// each with several keys under one name, so that there are many paths to the anchor. No signature is genuine, because
/// a wrong one takes as long to check.
struct HostileChain {
    /// The keys of the intermediate certificates.
    enum Key: CaseIterable, Sendable {
        /// The largest modulus that OpenSSL accepts, with the largest exponent that it accepts for it.
        case rsa16384
        /// The largest modulus for which OpenSSL accepts an exponent of the same size.
        case rsa3072LargeExponent
        case rsa8192, rsa4096, p521, p384, brainpool512, binary571, dsa
    }

    /// The anchor's certificate, with an elliptic-curve key, by whose name the top layer is issued.
    let anchor: Certificate
    let key: Key
    var layers = 10
    var width = 2

    /// The leaf first.
    func make() throws -> [Certificate] {
        let keys = try (0..<width).map(publicKey)
        var chain = [try certificate("leaf", issuer: Self.name("layer 0"), keys[0], isAuthority: false)]
        for layer in 0..<layers {
            let issuer = layer == layers - 1 ? anchor.subjectDER : Self.name("layer \(layer + 1)")
            let isTop = layer == layers - 1
            chain += try keys.map {
                try certificate("layer \(layer)", issuer: issuer, $0, isAuthority: true, isSignedByAnchor: isTop)
            }
        }
        return chain
    }

    private static func name(_ text: String) -> [UInt8] {
        let value = DEREncoding.sequence([[0x06, 3, 0x55, 4, 3], DEREncoding.string(tag: 0x0C, text)])
        return DEREncoding.sequence([DEREncoding.set([value])])
    }

    // MARK: Keys

    /// SubjectPublicKeyInfo (RFC 5280 §4.1) of a key that differs with `number`.
    private func publicKey(_ number: Int) throws -> [UInt8] {
        switch key {
        case .rsa16384: rsa(bytes: 2048, exponent: [UInt8](repeating: 0xFF, count: 8), number)
        case .rsa3072LargeExponent: rsa(bytes: 384, exponent: [0x7F] + [UInt8](repeating: 0xFF, count: 383), number)
        case .rsa8192: rsa(bytes: 1024, exponent: [1, 0, 1], number)
        case .rsa4096: rsa(bytes: 512, exponent: [1, 0, 1], number)
        case .p521: try curve("P-521")
        case .p384: try curve("P-384")
        case .brainpool512: try curve("brainpoolP512r1")
        case .binary571: try curve("sect571r1")
        case .dsa: dsa(number)
        }
    }

    /// An odd modulus is all that verification needs.
    private func rsa(bytes: Int, exponent: [UInt8], _ number: Int) -> [UInt8] {
        let modulus = Self.bytes(bytes, number)
        let key = DEREncoding.sequence([Self.integer(modulus), Self.integer(exponent)])
        return Self.publicKeyInfo([0x06, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 1], [5, 0], key)
    }

    private func dsa(_ number: Int) -> [UInt8] {
        let parameters = DEREncoding.sequence([
            Self.integer(Self.bytes(1250, 1)), Self.integer(Self.bytes(32, 2)), Self.integer(Self.bytes(1249, 3)),
        ])
        return Self.publicKeyInfo(
            [0x06, 7, 0x2A, 0x86, 0x48, 0xCE, 0x38, 4, 1], parameters, Self.integer(Self.bytes(1249, number + 4)))
    }

    private func curve(_ name: String) throws -> [UInt8] {
        let folder = try TemporaryFolder()
        try openssl(
            "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:\(name)", "-out", folder.path("key"))
        try openssl("pkey", "-in", folder.path("key"), "-pubout", "-outform", "DER", "-out", folder.path("public"))
        return try folder.bytes("public")
    }

    private static func publicKeyInfo(_ algorithm: [UInt8], _ parameters: [UInt8], _ key: [UInt8]) -> [UInt8] {
        DEREncoding.sequence([
            DEREncoding.sequence([algorithm, parameters]), DEREncoding.value(tag: 0x03, [0] + key),
        ])
    }

    /// Pseudo-random bytes. The first and the last are odd and have the highest bit.
    private static func bytes(_ count: Int, _ seed: Int) -> [UInt8] {
        var state = UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 | 1
        return (0..<count).map { place in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return place == 0 || place == count - 1 ? 0xC1 : UInt8(truncatingIfNeeded: state >> 33)
        }
    }

    private static func integer(_ bytes: [UInt8]) -> [UInt8] {
        DEREncoding.value(tag: 0x02, bytes[0] & 0x80 == 0 ? bytes : [0] + bytes)
    }

    // MARK: Certificates

    private func certificate(
        _ subject: String, issuer: [UInt8], _ publicKey: [UInt8], isAuthority: Bool,
        isSignedByAnchor: Bool = false
    ) throws -> Certificate {
        let extensions =
            isAuthority
            ? CertificateTemplate.Extension.certificationAuthority(pathLength: 20)
            : CertificateTemplate.Extension.server + [.alternativeName("localhost")]
        let algorithm = isSignedByAnchor ? Self.ecdsa : signatureAlgorithm
        let dates = ["250101000000Z", "440101000000Z"].map { DEREncoding.string(tag: 0x17, $0) }
        let signed = DEREncoding.sequence([
            DEREncoding.tagged(0, constructed: true, DEREncoding.integer(2)), DEREncoding.integer(1),
            algorithm, issuer, DEREncoding.sequence(dates), Self.name(subject), publicKey,
            DEREncoding.tagged(
                3, constructed: true, DEREncoding.sequence(extensions.map(Self.encoded))),
        ])
        return try Certificate(
            der: DEREncoding.sequence([signed, algorithm, DEREncoding.value(tag: 0x03, [0] + signature)]))
    }

    private static func encoded(_ item: CertificateTemplate.Extension) -> [UInt8] {
        var identifier = [UInt8](repeating: 0, count: 32)
        let object = OBJ_nid2obj(item.identifier)
        let count = identifier.withUnsafeMutableBufferPointer { buffer in
            var position = buffer.baseAddress
            return i2d_ASN1_OBJECT(object, &position)
        }
        return DEREncoding.sequence(
            [Array(identifier.prefix(Int(count)))] + (item.isCritical ? [DEREncoding.isTrue] : [])
                + [DEREncoding.octets(item.value)])
    }

    private var signatureAlgorithm: [UInt8] {
        switch key {
        case .rsa16384, .rsa3072LargeExponent, .rsa8192, .rsa4096:
            DEREncoding.sequence([[0x06, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 11], [5, 0]])
        case .p521, .p384, .brainpool512, .binary571:
            Self.ecdsa
        case .dsa: DEREncoding.sequence([[0x06, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 3, 2]])
        }
    }

    /// ecdsa-with-SHA256.
    private static let ecdsa = DEREncoding.sequence([[0x06, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 3, 2]])

    /// As long as the key requires.
    private var signature: [UInt8] {
        switch key {
        case .rsa16384: [0x40] + Self.bytes(2047, 99)
        case .rsa3072LargeExponent: [0x40] + Self.bytes(383, 99)
        case .rsa8192: [0x40] + Self.bytes(1023, 99)
        case .rsa4096: [0x40] + Self.bytes(511, 99)
        case .p521: pair(of: 65)
        case .p384: pair(of: 47)
        case .brainpool512: pair(of: 63)
        case .binary571: pair(of: 70)
        case .dsa: pair(of: 31)
        }
    }

    private func pair(of count: Int) -> [UInt8] {
        DEREncoding.sequence([Self.integer(Self.bytes(count, 98)), Self.integer(Self.bytes(count, 99))])
    }
}
