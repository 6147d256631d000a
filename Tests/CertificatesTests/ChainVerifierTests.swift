// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import Testing

@testable import CountersignCertificates

struct ChainVerifierTests {
    private let now = TestPKI.now

    private func verifier() throws -> ChainVerifier {
        ChainVerifier(anchors: try TrustAnchors(system: false, additional: TestPKI.chain("origin-root")))
    }

    private func reasons(_ name: String, host: String = "localhost", at time: Int64? = nil) throws -> [ServerTrust
        .Reason]
    {
        try verifier().evaluate(chain: TestPKI.chain(name), host: host, at: time ?? now).reasons
    }

    @Test(arguments: ["origin-ec", "origin-rsa", "origin-sha384", "origin-intermediate-leaf"])
    func whatIsInOrderIsTrusted(name: String) throws {
        for host in ["localhost", "a.test.localhost", "127.0.0.1", "::1"] {
            let trust = try verifier().evaluate(chain: TestPKI.chain(name), host: host, at: now)
            #expect(trust.isTrusted, "\(host): \(trust)")
            #expect(trust.chain == (try TestPKI.chain(name)))
        }
    }

    @Test(
        arguments: [
            ("origin-expired", [.expired(notAfter: 1_609_459_200)]),
            ("origin-not-yet-valid", [.notYetValid(notBefore: 2_303_683_200)]),
            ("origin-wrong-host", [.hostMismatch]),
            ("origin-cn-only", [.hostMismatch]),
            ("origin-self-signed", [.selfSigned]),
            ("origin-unknown-root", [.unknownIssuer]),
            ("origin-rsa1024", [.weakKey]),
            ("origin-sha1", [.weakSignature]),
            ("origin-ca-as-leaf", [.caAsLeaf]),
            ("origin-wrong-eku", [.wrongPurpose]),
            ("origin-incomplete", [.incompleteChain]),
        ] as [(String, [ServerTrust.Reason])])
    func eachFaultIsNamedAndNoOther(name: String, expected: [ServerTrust.Reason]) throws {
        #expect(try reasons(name) == expected)
    }

    @Test func everyFaultOfAChainIsNamed() throws {
        #expect(
            try reasons("origin-expired", host: "other.example") == [.hostMismatch, .expired(notAfter: 1_609_459_200)])
        #expect(
            try reasons("origin-unknown-root", host: "10.0.0.1", at: 2_400_000_000)
                == [.unknownIssuer, .hostMismatch, .expired(notAfter: 2_335_219_200)])
    }

    @Test func hostsOutsideTheNamesAreRefused() throws {
        for host in ["test.localhost", "a.b.test.localhost", "127.0.0.2", "::2", "example.com", "", ".test.localhost"] {
            #expect(try reasons("origin-ec", host: host).contains(.hostMismatch), "\(host)")
            #expect(
                try !verifier().evaluate(chain: TestPKI.chain("origin-ec"), host: host, at: now).isTrusted, "\(host)")
        }
    }

    @Test func withoutACertificateNothingIsTrusted() throws {
        #expect(try !verifier().evaluate(chain: [], host: "localhost", at: now).isTrusted)
    }

    @Test func aTrustedRootInTheChainIsNotAFault() throws {
        let chain = try TestPKI.chain("origin-ec") + TestPKI.chain("origin-root")
        #expect(try verifier().evaluate(chain: chain, host: "localhost", at: now).isTrusted)
        let shuffled = try [
            TestPKI.leaf("origin-incomplete"), TestPKI.leaf("client-a-root"), TestPKI.leaf("origin-intermediate"),
        ]
        #expect(try verifier().evaluate(chain: shuffled, host: "localhost", at: now).isTrusted)
    }

    @Test func anUnknownRootThatIsSentStaysUnknown() throws {
        let chain = try TestPKI.chain("origin-unknown-root") + TestPKI.chain("unknown-root")
        #expect(try verifier().evaluate(chain: chain, host: "localhost", at: now).reasons == [.unknownIssuer])
    }

    @Test func anIntermediateIsNotAnAnchor() throws {
        let anchors = try TrustAnchors(system: false, additional: TestPKI.chain("origin-intermediate"))
        let trust = try ChainVerifier(anchors: anchors).evaluate(
            chain: TestPKI.chain("origin-incomplete"), host: "localhost", at: now)
        #expect(trust.reasons == [.unknownIssuer])
    }

    @Test func anAlteredSignatureIsFound() throws {
        var der = try TestPKI.leaf("origin-ec").der
        der[der.count - 1] ^= 1
        let trust = try verifier().evaluate(chain: [Certificate(der: der)], host: "localhost", at: now)
        #expect(trust.reasons == [.other("certificate not accepted: certificate signature failure")])
    }

    @Test func theProxysOwnCAIsRefusedEvenIfTrusted() throws {
        let root = try TestPKI.leaf("origin-root")
        let verifier = ChainVerifier(anchors: try TrustAnchors(system: false, additional: [root]), refusing: [root])
        let trust = try verifier.evaluate(chain: TestPKI.chain("origin-ec"), host: "localhost", at: now)
        #expect(trust.reasons == [.other("certificate issued by this proxy's interception CA")])
    }

    @Test func aWildcardBelowAPublicSuffixIsRefused() throws {
        let anchors = try TrustAnchors(system: false, additional: TestPKI.chain("origin-root"))
        let verifier = ChainVerifier(anchors: anchors, isPublicSuffix: { $0 == "test.localhost" })
        let chain = try TestPKI.chain("origin-ec")
        #expect(verifier.evaluate(chain: chain, host: "a.test.localhost", at: now).reasons == [.hostMismatch])
        #expect(verifier.evaluate(chain: chain, host: "localhost", at: now).isTrusted)
    }

    /// The faults of a template; a good leaf has none.
    @Test(arguments: [
        ("serial zero", "serial number is not positive (RFC 5280, section 4.1.2.2)"),
        ("constraints", "name constraints on a certificate that is not a CA's (RFC 5280, section 4.2.1.10)"),
        ("critical access", "authority information access is critical (RFC 5280, section 4.2.2.1)"),
        ("plain policy", "policy constraints are not critical (RFC 5280, section 4.2.1.11)"),
    ])
    func faultsThatOpenSSLAcceptsAreReported(fault: String, text: String) throws {
        let rootKey = try TestPKI.key("origin-root")
        let root = try TestPKI.leaf("origin-root")
        let key = try PrivateKey.generateP256()
        var template = CertificateTemplate(
            subject: .site("localhost"), serial: [1], notBefore: now - 10, notAfter: now + 10,
            extensions: CertificateTemplate.Extension.server + [.alternativeName("localhost")])
        let good = try template.signed(for: key, issuer: root, signer: rootKey)
        #expect(try verifier().evaluate(chain: [good], host: "localhost", at: now).isTrusted)
        let subtree = DEREncoding.sequence([DEREncoding.tagged(2, Array("localhost".utf8))])
        let url = DEREncoding.tagged(6, Array("http://ca.example/".utf8))
        switch fault {
        case "serial zero": template.serial = [0]
        case "constraints":
            template.extensions.append(
                .init(
                    identifier: NID_name_constraints, isCritical: true,
                    value: DEREncoding.sequence([DEREncoding.tagged(0, constructed: true, subtree)])))
        case "critical access":
            template.extensions.append(
                .init(
                    identifier: NID_info_access, isCritical: true,
                    value: DEREncoding.sequence([
                        DEREncoding.sequence([[0x06, 0x08, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x02], url])
                    ])))
        default:
            template.extensions.append(
                .init(
                    identifier: NID_policy_constraints, value: DEREncoding.sequence([DEREncoding.tagged(0, [0])])))
        }
        let bad = try template.signed(for: key, issuer: root, signer: rootKey)
        let reasons = try verifier().evaluate(chain: [bad], host: "localhost", at: now).reasons
        #expect(reasons.contains(.other("certificate not accepted: \(text)")), "\(reasons)")
    }

    @Test func moreIssuersThanAllowedAreRefused() throws {
        let key = try PrivateKey.generateP256()
        func issuer(_ name: String, of issuer: Certificate, signer: PrivateKey) throws -> Certificate {
            let template = CertificateTemplate(
                subject: .parts(organization: nil, commonName: name), serial: [2], notBefore: now - 10,
                notAfter: now + 10, extensions: CertificateTemplate.Extension.certificationAuthority(pathLength: 0))
            return try template.signed(for: key, issuer: issuer, signer: signer)
        }
        let upper = try issuer("upper", of: TestPKI.leaf("origin-root"), signer: TestPKI.key("origin-root"))
        let lower = try issuer("lower", of: upper, signer: key)
        let template = CertificateTemplate(
            subject: .site("localhost"), serial: [3], notBefore: now - 10, notAfter: now + 10,
            extensions: CertificateTemplate.Extension.server + [.alternativeName("localhost")])
        let leaf = try template.signed(for: key, issuer: lower, signer: key)
        let trust = try verifier().evaluate(chain: [leaf, lower, upper], host: "localhost", at: now)
        #expect(trust.reasons == [.pathLength])
    }

    /// A good leaf below an issuer with these extensions, which is below the origin root.
    private func reasons(issuerExtensions: [CertificateTemplate.Extension]) throws -> [ServerTrust.Reason] {
        let key = try PrivateKey.generateP256()
        let issuerTemplate = CertificateTemplate(
            subject: .parts(organization: nil, commonName: "issuer"), serial: [2], notBefore: now - 10,
            notAfter: now + 10,
            extensions: issuerExtensions)
        let issuer = try issuerTemplate.signed(
            for: key, issuer: TestPKI.leaf("origin-root"), signer: TestPKI.key("origin-root"))
        let template = CertificateTemplate(
            subject: .site("localhost"), serial: [3], notBefore: now - 10, notAfter: now + 10,
            extensions: CertificateTemplate.Extension.server + [.alternativeName("localhost")])
        let leaf = try template.signed(for: key, issuer: issuer, signer: key)
        return try verifier().evaluate(chain: [leaf, issuer], host: "localhost", at: now).reasons
    }

    @Test func issuersAreHeldToTheStrictForm() throws {
        let good = CertificateTemplate.Extension.certificationAuthority(pathLength: 0)
        #expect(try reasons(issuerExtensions: good) == [])
        let plain = good.map { CertificateTemplate.Extension(identifier: $0.identifier, value: $0.value) }
        let expected = "certificate not accepted: basic Constraints of CA cert not marked critical"
        #expect(try reasons(issuerExtensions: plain).map { "\($0)".lowercased() } == [expected.lowercased()])
    }

    @Test(
        arguments: [
            ("none", [], [.wrongPurpose]), ("server", [server], []), ("client", [client], [.wrongPurpose]),
            ("any", [any], [.wrongPurpose]), ("server and client", [client, server], []),
            ("server and any", [server, any], [.wrongPurpose]), ("Netscape's step-up", [stepUp], [.wrongPurpose]),
        ] as [(String, [[UInt8]], [ServerTrust.Reason])])
    func aLeafHasToBeForServers(name: String, usages: [[UInt8]], expected: [ServerTrust.Reason]) throws {
        var extensions = Array(CertificateTemplate.Extension.server.prefix(2)) + [.alternativeName("localhost")]
        if !usages.isEmpty {
            extensions.append(.init(identifier: NID_ext_key_usage, value: DEREncoding.sequence(usages)))
        }
        let key = try PrivateKey.generateP256()
        let template = CertificateTemplate(
            subject: .site("localhost"), serial: [3], notBefore: now - 10, notAfter: now + 10, extensions: extensions)
        let leaf = try template.signed(
            for: key, issuer: TestPKI.leaf("origin-root"), signer: TestPKI.key("origin-root"))
        #expect(try verifier().evaluate(chain: [leaf], host: "localhost", at: now).reasons == expected)
    }

    // Object identifiers in DER: id-kp-serverAuth, id-kp-clientAuth, anyExtendedKeyUsage, Netscape's server gated
    // crypto.
    private static let server: [UInt8] = [0x06, 0x08, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01]
    private static let client: [UInt8] = [0x06, 0x08, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02]
    private static let any: [UInt8] = [0x06, 0x04, 0x55, 0x1D, 0x25, 0x00]
    private static let stepUp: [UInt8] = [0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x86, 0xF8, 0x42, 0x04, 0x01]

    @Test func anIssuerForAnotherPurposeIsRefused() throws {
        let usage = CertificateTemplate.Extension(
            identifier: NID_ext_key_usage, value: DEREncoding.sequence([Self.client]))
        let good = CertificateTemplate.Extension.certificationAuthority(pathLength: 0)
        #expect(try reasons(issuerExtensions: good + [usage]) == [.wrongPurpose])
        #expect(try reasons(issuerExtensions: good + [.serverAuthentication]) == [])
    }

    @Test func aLeafIsNoIssuer() throws {
        let key = try TestPKI.key("origin-ec")
        let template = CertificateTemplate(
            subject: .site("bank.example"), serial: [3], notBefore: now - 10, notAfter: now + 10,
            extensions: CertificateTemplate.Extension.server + [.alternativeName("bank.example")])
        let forged = try template.signed(for: key, issuer: TestPKI.leaf("origin-ec"), signer: key)
        let trust = try verifier().evaluate(
            chain: [forged, TestPKI.leaf("origin-ec")], host: "bank.example", at: now)
        #expect(!trust.isTrusted)
    }
}

/// An unknown root and an incomplete chain have different reasons.
struct MissingIssuerTests {
    private let now = TestPKI.now
    private let key = Result { try PrivateKey.generateP256() }

    // Access descriptions: the issuer's certificate and its OCSP responder.
    private static let issuerURL = DEREncoding.sequence([
        [0x06, 0x08, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x02],
        DEREncoding.tagged(6, Array("http://ca.example/ca.der".utf8)),
    ])
    private static let responder = DEREncoding.sequence([
        [0x06, 0x08, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01],
        DEREncoding.tagged(6, Array("http://ocsp.example/".utf8)),
    ])

    private func access(_ descriptions: [[UInt8]]) -> CertificateTemplate.Extension {
        .init(identifier: NID_info_access, value: DEREncoding.sequence(descriptions))
    }

    private func authority(
        _ name: String, below issuer: Certificate? = nil, with extra: [CertificateTemplate.Extension] = []
    ) throws -> Certificate {
        try CertificateTemplate(
            subject: .parts(organization: nil, commonName: name), serial: [2], notBefore: now - 10,
            notAfter: now + 10, extensions: CertificateTemplate.Extension.certificationAuthority(pathLength: 2) + extra
        ).signed(for: key.get(), issuer: issuer, signer: key.get())
    }

    private func leaf(
        below issuer: Certificate, with extra: [CertificateTemplate.Extension] = []
    ) throws -> Certificate {
        try CertificateTemplate(
            subject: .site("localhost"), serial: [3], notBefore: now - 10, notAfter: now + 10,
            extensions: CertificateTemplate.Extension.server + [.alternativeName("localhost")] + extra
        ).signed(for: key.get(), issuer: issuer, signer: key.get())
    }

    private func reasons(_ chain: Certificate...) throws -> [ServerTrust.Reason] {
        ChainVerifier(anchors: try TrustAnchors(system: false, additional: TestPKI.chain("origin-root")))
            .evaluate(chain: chain, host: "localhost", at: now).reasons
    }

    @Test func aCompleteChainBelowAnUnknownRootHasAnUnknownIssuer() throws {
        let root = try authority("root")
        let upper = try authority("upper", below: root, with: [access([Self.issuerURL, Self.responder])])
        let lower = try authority("lower", below: upper, with: [access([Self.issuerURL])])
        let leaf = try leaf(below: lower, with: [access([Self.responder, Self.issuerURL])])
        #expect(try reasons(leaf, lower, upper) == [.unknownIssuer])
        #expect(try reasons(leaf, upper, lower) == [.unknownIssuer])
        #expect(try reasons(leaf, lower, upper, root) == [.unknownIssuer])
        #expect(try reasons(leaf) == [.incompleteChain])
        #expect(try reasons(leaf, root) == [.incompleteChain])
    }

    @Test func aLeafThatNamesNoURLOfItsIssuerHasAnUnknownIssuer() throws {
        let root = try authority("root")
        #expect(try reasons(leaf(below: root)) == [.unknownIssuer])
        #expect(try reasons(leaf(below: root, with: [access([Self.responder])])) == [.unknownIssuer])
    }

    /// The authority key identifier names the issuer's issuer and serial number. openssl writes it.
    @Test(arguments: [true, false])
    func aLeafOfAnUnknownRootHasAnUnknownIssuer(isIssuedByRoot: Bool) throws {
        let folder = try TemporaryFolder()
        func make(_ name: String, below issuer: String?, _ extensions: [String]) throws -> Certificate {
            try openssl(
                "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                "/CN=\(name)", "-keyout", folder.path("\(name).key"), "-out", folder.path("\(name).csr"))
            let file = try folder.write("\(name).ext", extensions.joined(separator: "\n"))
            let signer =
                issuer.map { ["-CA", folder.path("\($0).pem"), "-CAkey", folder.path("\($0).key")] }
                ?? ["-key", folder.path("\(name).key")]
            let made = try run(
                "openssl",
                [
                    "x509", "-req", "-in", folder.path("\(name).csr"), "-days", "10", "-extfile", file, "-out",
                    folder.path("\(name).pem"),
                ] + signer)
            try #require(made.status == 0, "\(made.output)")
            return try #require(try Certificate.readPEM(folder.bytes("\(name).pem")).first)
        }
        let authority = [
            "basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign", "subjectKeyIdentifier=hash",
        ]
        _ = try make("root", below: nil, authority)
        if !isIssuedByRoot { _ = try make("issuer", below: "root", authority) }
        let leaf = try make(
            "leaf", below: isIssuedByRoot ? "root" : "issuer",
            [
                "basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature",
                "extendedKeyUsage=serverAuth", "subjectAltName=DNS:localhost", "subjectKeyIdentifier=hash",
                "authorityKeyIdentifier=keyid:always,issuer:always", "authorityInfoAccess=caIssuers;URI:http://ca/",
            ])
        let found = ChainVerifier(anchors: try TrustAnchors(system: false, additional: TestPKI.chain("origin-root")))
            .evaluate(chain: [leaf], host: "localhost", at: TestPKI.today).reasons
        #expect(found == [isIssuedByRoot ? .unknownIssuer : .incompleteChain])
    }
}
