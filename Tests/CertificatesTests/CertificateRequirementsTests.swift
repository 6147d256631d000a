// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import Foundation
import Testing

@testable import CountersignCertificates

/// The requirements for a server's chain, each with a certificate from the openssl command that violates it.
struct CertificateRequirementsTests {
    let folder: TemporaryFolder
    private let verifier: ChainVerifier

    init() throws {
        folder = try TemporaryFolder()
        verifier = ChainVerifier(anchors: try TrustAnchors(system: false, additional: TestPKI.chain("origin-root")))
    }

    static let leaf = [
        "basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature", "extendedKeyUsage=serverAuth",
        "subjectAltName=DNS:localhost",
    ]
    static let issuer = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign"]
    static let p256 = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]

    /// A certificate `name`, valid for ten days, for a key from `openssl genpkey` with these flags.
    @discardableResult
    func make(
        _ name: String, below issuer: String? = nil, key: [String] = p256, extensions: [String],
        signing: [String] = ["-sha256"]
    ) throws -> Certificate {
        let keyPath = folder.path(name + ".key")
        let generated = try run("openssl", ["genpkey", "-quiet"] + key + ["-out", keyPath])
        try #require(generated.status == 0, "\(generated.output)")
        let identifiers = ["subjectKeyIdentifier=hash", "authorityKeyIdentifier=keyid"]
        let extensionFile = try folder.write(name + ".ext", (extensions + identifiers).joined(separator: "\n"))
        try openssl("req", "-new", "-key", keyPath, "-subj", "/CN=\(name)", "-out", folder.path(name + ".csr"))
        let authority =
            issuer.map { (folder.path($0 + ".pem"), folder.path($0 + ".key")) }
            ?? (TestPKI.path("origin-root.pem"), TestPKI.path("origin-root.key.pem"))
        let signed = try run(
            "openssl",
            [
                "x509", "-req", "-in", folder.path(name + ".csr"), "-CA", authority.0, "-CAkey", authority.1, "-days",
                "10", "-extfile", extensionFile, "-out", folder.path(name + ".pem"),
            ] + signing)
        try #require(signed.status == 0, "\(signed.output)")
        return try #require(try Certificate.readPEM(folder.bytes(name + ".pem")).first)
    }

    func reasons(_ chain: Certificate..., host: String = "localhost") -> [ServerTrust.Reason] {
        verifier.evaluate(chain: chain, host: host, at: TestPKI.today).reasons
    }

    @Test(
        arguments: [
            (["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], []),
            (["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2052"], [.weakKey]),
            (["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2040"], [.weakKey]),
            (["-algorithm", "RSA-PSS", "-pkeyopt", "rsa_keygen_bits:2048"], []),
            (["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"], []),
            (["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-224"], [.weakKey]),
            (["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:secp256k1"], [.weakKey]),
            (["-algorithm", "ED25519"], []), (["-algorithm", "ED448"], []),
        ] as [([String], [ServerTrust.Reason])])
    func keysAreHeldToTheFloor(key: [String], expected: [ServerTrust.Reason]) throws {
        let found = try reasons(make("leaf", key: key, extensions: Self.leaf))
        #expect(found == expected, "\(found)")
    }

    @Test func aDSAKeyIsTooWeak() throws {
        let parameters = folder.path("parameters")
        try openssl(
            "genpkey", "-quiet", "-genparam", "-algorithm", "DSA", "-pkeyopt", "dsa_paramgen_bits:1024", "-out",
            parameters)
        #expect(try reasons(make("leaf", key: ["-paramfile", parameters], extensions: Self.leaf)) == [.weakKey])
    }

    @Test func aCurveHasToBeNamed() throws {
        let key = Self.p256 + ["-pkeyopt", "ec_param_enc:explicit"]
        let expected = ServerTrust.Reason.other("\(Self.refused): certificate public key has explicit ECC parameters")
        #expect(try reasons(make("leaf", key: key, extensions: Self.leaf)) == [expected])
    }

    @Test(
        arguments: [
            ("-sha256", []), ("-sha512", []), ("-sha1", [.weakSignature]), ("-sha224", [.weakSignature]),
        ] as [(String, [ServerTrust.Reason])])
    func signaturesMeetTheMinimumStrength(hash: String, expected: [ServerTrust.Reason]) throws {
        #expect(try reasons(make("leaf", extensions: Self.leaf, signing: [hash])) == expected)
        let issuer = try make("issuer", extensions: Self.issuer, signing: [hash])
        #expect(try reasons(make("below", below: "issuer", extensions: Self.leaf), issuer) == expected)
    }

    @Test(
        arguments: [
            ("1", nil), ("-1", "is not positive"), ("0", "is not positive"),
            ("0x7F" + String(repeating: "00", count: 19), nil),
            ("0x01" + String(repeating: "00", count: 20), "is longer than 20 bytes"),
        ] as [(String, String?)])
    func serialNumbersArePositiveAndShort(serial: String, fault: String?) throws {
        let leaf = try make("leaf", extensions: Self.leaf, signing: ["-set_serial", serial])
        let rule = "(RFC 5280, section 4.1.2.2)"
        #expect(reasons(leaf) == (fault.map { [.other("\(Self.refused): serial number \($0) \(rule)")] } ?? []))
    }

    /// The extensions of a leaf and the expected reason.
    @Test(
        arguments: [
            (leaf + ["1.2.3.4=ASN1:UTF8String:x"], []),
            (leaf + ["1.2.3.4=critical,ASN1:UTF8String:x"], [.other("\(refused): unhandled critical extension")]),
            ([leaf[0], "keyUsage=critical,cRLSign", leaf[2], leaf[3]], [.wrongPurpose]),
            ([leaf[0], "keyUsage=critical,keyEncipherment", leaf[2], leaf[3]], []),
            ([leaf[0], leaf[2], leaf[3]], []),
            ([leaf[0], leaf[1], "extendedKeyUsage=clientAuth", leaf[3]], [.wrongPurpose]),
            ([leaf[0], leaf[1], "extendedKeyUsage=serverAuth,anyExtendedKeyUsage", leaf[3]], [.wrongPurpose]),
            ([leaf[0], leaf[1], leaf[3]], [.wrongPurpose]),
            (
                ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,digitalSignature"] + leaf[2...],
                [.caAsLeaf]
            ),
            (Array(leaf.prefix(3)), [.hostMismatch]),
            (leaf.prefix(3) + ["subjectAltName=DNS:*.localhost"], [.hostMismatch]),
            (leaf.prefix(3) + ["subjectAltName=IP:127.0.0.1"], [.hostMismatch]),
            (leaf.prefix(3) + ["subjectAltName=email:a@localhost,URI:https://localhost/"], [.hostMismatch]),
        ] as [([String], [ServerTrust.Reason])])
    func aLeafIsOneOfAServer(extensions: [String], expected: [ServerTrust.Reason]) throws {
        #expect(try reasons(make("localhost", extensions: extensions)) == expected)
    }

    static let refused = "certificate not accepted"

    @Test(
        arguments: [
            ("DNS:127.0.0.1", "127.0.0.1", false), ("IP:127.0.0.1", "127.0.0.1", true),
            ("IP:127.0.0.2", "127.0.0.1", false),
            ("IP:::1", "::1", true), ("DNS:*.0.0.1", "127.0.0.1", false),
        ])
    func anAddressIsComparedWithAddressesOnly(name: String, host: String, isAccepted: Bool) throws {
        let leaf = try make("leaf", extensions: Self.leaf.prefix(3) + ["subjectAltName=\(name)"])
        #expect(reasons(leaf, host: host) == (isAccepted ? [] : [.hostMismatch]))
    }

    @Test(
        arguments: [
            (issuer, []),
            (["basicConstraints=critical,CA:TRUE,pathlen:0", issuer[1]], []),
            (issuer + ["nameConstraints=critical,permitted;DNS:localhost"], []),
            (issuer + ["nameConstraints=critical,permitted;DNS:example.com"], [.nameConstraint]),
            (issuer + ["nameConstraints=critical,excluded;DNS:localhost"], [.nameConstraint]),
            (issuer + ["extendedKeyUsage=clientAuth"], [.wrongPurpose]),
            (issuer + ["1.2.3.4=critical,ASN1:UTF8String:x"], [.other("\(refused): unhandled critical extension")]),
            (
                [issuer[0], "keyUsage=critical,cRLSign"],
                [.other("\(refused): key usage does not include certificate signing")]
            ),
            (["basicConstraints=critical,CA:FALSE", issuer[1]], [.other("\(refused): invalid CA certificate")]),
        ] as [([String], [ServerTrust.Reason])])
    func anIssuerIsOneOfServers(extensions: [String], expected: [ServerTrust.Reason]) throws {
        let issuer = try make("issuer", extensions: extensions)
        let found = try reasons(make("leaf", below: "issuer", extensions: Self.leaf), issuer)
        #expect(Set(expected).isSubset(of: found) && found.isEmpty == expected.isEmpty, "\(found)")
    }

    /// A verdict for one of a leaf's names is reused for the others.
    @Test func aNameOutsideTheConstraintsInvalidatesTheWholeLeaf() throws {
        let issuer = try make("issuer", extensions: Self.issuer + ["nameConstraints=critical,permitted;DNS:localhost"])
        let leaf = try make(
            "leaf", below: "issuer",
            extensions: Self.leaf.prefix(3) + ["subjectAltName=DNS:localhost,DNS:a.example"])
        for host in ["localhost", "a.example"] {
            #expect(reasons(leaf, issuer, host: host) == [.nameConstraint])
        }
    }

    /// A wildcard that matches an excluded name is invalid for every host, so that a verdict does not depend on the
    /// host.
    @Test(
        arguments: [
            ("DNS:*.corp.example", "DNS:a.corp.example", false), ("DNS:*.Corp.example", "DNS:A.corp.EXAMPLE", false),
            ("DNS:*.corp.example", "DNS:corp.example", false), ("DNS:*.corp.example", "DNS:a.b.corp.example", true),
            ("DNS:*.corp.example", "DNS:a.example", true), ("DNS:www.corp.example", "DNS:a.corp.example", true),
            ("DNS:*.corp.example", "email:a.corp.example", true),
        ])
    func aWildcardMustNotStandForAnExcludedName(name: String, excluded: String, isAccepted: Bool) throws {
        let issuer = try make("issuer", extensions: Self.issuer + ["nameConstraints=critical,excluded;\(excluded)"])
        let leaf = try make("leaf", below: "issuer", extensions: Self.leaf.prefix(3) + ["subjectAltName=\(name)"])
        #expect(reasons(leaf, issuer, host: "www.corp.example") == (isAccepted ? [] : [.nameConstraint]))
    }

    @Test func anAnchorNeedsNoKeyUsage() throws {
        let issuer = try make("issuer", extensions: Array(Self.issuer.prefix(1)))
        let leaf = try make("leaf", below: "issuer", extensions: Self.leaf)
        try openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
            folder.path("root.key"), "-out", folder.path("root.pem"), "-subj", "/CN=root", "-days", "10", "-addext",
            Self.issuer[0])
        let root = try #require(try Certificate.readPEM(folder.bytes("root.pem")).first)
        try #require(root.keyUsageText == nil)
        let trusting = ChainVerifier(anchors: try TrustAnchors(system: false, additional: [root]))
        let below = try make("below", below: "root", extensions: Self.leaf)
        #expect(trusting.evaluate(chain: [below, root], host: "localhost", at: TestPKI.today).reasons == [])
        let refused = ServerTrust.Reason.other("\(Self.refused): CA cert does not include key usage extension")
        #expect(reasons(leaf, issuer) == [refused])
    }

    @Test func theLastSecondIsOneOfTheCertificate() throws {
        let leaf = try make("leaf", extensions: Self.leaf)
        for (time, expected) in [
            (leaf.notAfter - 1, []), (leaf.notAfter, []), (leaf.notAfter + 1, [.expired(notAfter: leaf.notAfter)]),
        ] as [(Int64, [ServerTrust.Reason])] {
            #expect(verifier.evaluate(chain: [leaf], host: "localhost", at: time).reasons == expected)
        }
        let found = verifier.appraise(chain: [leaf], host: "localhost", at: leaf.notAfter, staple: .absent)
        #expect(found.holdsUntil == leaf.notAfter)
    }

    @Test func aWeakIssuerIsNamed() throws {
        let key = ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"]
        let issuer = try make("issuer", key: key, extensions: Self.issuer)
        #expect(try reasons(make("leaf", below: "issuer", extensions: Self.leaf), issuer) == [.weakKey])
    }

    @Test func allIsNamedAtOnce() throws {
        let leaf = try make(
            "leaf", key: ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"],
            extensions: [
                "basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign", "extendedKeyUsage=clientAuth",
                "subjectAltName=DNS:elsewhere.example", "1.2.3.4=critical,ASN1:UTF8String:x",
                "tlsfeature=status_request",
            ], signing: ["-sha1", "-set_serial", "-1"])
        let stranger = ChainVerifier(
            anchors: try TrustAnchors(system: false, additional: TestPKI.chain("unknown-root")))
        let found = stranger.evaluate(chain: [leaf], host: "localhost", at: TestPKI.today + 11 * 86_400).reasons
        let expected: [ServerTrust.Reason] = [
            .unknownIssuer, .expired(notAfter: leaf.notAfter), .hostMismatch, .weakKey, .weakSignature, .caAsLeaf,
            .wrongPurpose, .other("\(Self.refused): unhandled critical extension"),
            .other("\(Self.refused): serial number is not positive (RFC 5280, section 4.1.2.2)"),
            .other("certificate requires a stapled OCSP response, and none that is valid was sent"),
        ]
        #expect(Set(found) == Set(expected) && found.count == expected.count, "\(found)")
    }
}
