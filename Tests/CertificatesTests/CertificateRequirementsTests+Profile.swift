// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import Foundation
import Testing

@testable import CountersignCertificates

/// The rules of the certificate profile that OpenSSL accepts violations of. The reason names the rule.
extension CertificateRequirementsTests {
    private static let start = Array(leaf.prefix(3))
    private static let noHostName = "a DNS name in it is not a host name (RFC 5280, section 4.2.1.6)"

    @Test(
        arguments: [
            (["subjectAltName=DNS:localhost,DNS:*.localhost,DNS:a_b.localhost,DNS:*"], nil),
            (["subjectAltName=DNS:localhost,DNS:.localhost"], noHostName),
            (["subjectAltName=DNS:localhost,DNS:a..localhost"], noHostName),
            (["subjectAltName=DNS:localhost,DNS:a.localhost."], noHostName),
            (["subjectAltName=DNS:localhost,DNS:a b.localhost"], noHostName),
            // localhost and an empty name.
            (["subjectAltName=DER:30:0D:82:09:6C:6F:63:61:6C:68:6F:73:74:82:00"], noHostName),
            (["subjectAltName=DNS:localhost,DNS:" + String(repeating: "a", count: 64)], noHostName),
            // localhost and 8 bytes of an IP address.
            (
                ["subjectAltName=DER:30:15:82:09:6C:6F:63:61:6C:68:6F:73:74:87:08:7F:00:00:00:FF:00:00:00"],
                "an IP address in it is not 4 or 16 bytes long (RFC 5280, section 4.2.1.6)"
            ),
            (
                ["subjectAltName=critical,DNS:localhost"],
                "subject alternative name is critical beside a subject (RFC 5280, section 4.2.1.6)"
            ),
            (
                ["extendedKeyUsage=critical,serverAuth", "subjectAltName=DNS:localhost"],
                "extended key usage is critical (CA/Browser Forum Baseline Requirements, section 7.1.2.7.6)"
            ),
            (["authorityInfoAccess=caIssuers;URI:http://ca.example/", leaf[3]], nil),
            (
                ["authorityInfoAccess=DER:6D:61:6C:66", leaf[3]],
                "authority information access is malformed (RFC 5280, section 4.2.2.1)"
            ),
            (
                ["authorityInfoAccess=DER:30:00", leaf[3]],
                "authority information access is malformed (RFC 5280, section 4.2.2.1)"
            ),
            (
                ["certificatePolicies=DER:30:00", leaf[3]],
                "certificate policies are malformed (RFC 5280, section 4.2.1.4)"
            ),
            (
                ["subjectInfoAccess=DER:05:00", leaf[3]],
                "subject information access is malformed (RFC 5280, section 4.2.2.2)"
            ),
        ] as [([String], String?)])
    func aLeafKeepsTheProfile(extensions: [String], fault: String?) throws {
        let names = Set(extensions.map { $0.prefix { $0 != "=" } })
        let others = Self.start.filter { !names.contains($0.prefix { $0 != "=" }) }
        let leaf = try make("leaf", extensions: others + extensions)
        #expect(reasons(leaf) == (fault.map { [.other("\(Self.refused): \($0)")] } ?? []))
    }

    @Test func anEmptySubjectNeedsCriticalNames() throws {
        let key = try PrivateKey.generateP256()
        let name = CertificateTemplate.Extension.alternativeName("localhost")
        var template = CertificateTemplate(
            subject: .parts(organization: nil, commonName: nil), serial: [3], notBefore: TestPKI.today - 10,
            notAfter: TestPKI.today + 10, extensions: CertificateTemplate.Extension.server)
        template.extensions.append(.init(identifier: name.identifier, isCritical: true, value: name.value))
        let leaf = try template.signed(
            for: key, issuer: TestPKI.leaf("origin-root"), signer: TestPKI.key("origin-root"))
        #expect(reasons(leaf) == [])
    }

    @Test func anExtensionOccursOnce() throws {
        let key = try PrivateKey.generateP256()
        let access = DEREncoding.sequence([
            DEREncoding.sequence([
                [0x06, 0x08, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x02],
                DEREncoding.tagged(6, Array("http://ca.example/".utf8)),
            ])
        ])
        func leaf(_ accesses: [[UInt8]]) throws -> Certificate {
            let template = CertificateTemplate(
                subject: .site("localhost"), serial: [3], notBefore: TestPKI.today - 10,
                notAfter: TestPKI.today + 10,
                extensions: CertificateTemplate.Extension.server + [.alternativeName("localhost")]
                    + accesses.map { .init(identifier: NID_info_access, value: $0) })
            return try template.signed(
                for: key, issuer: TestPKI.leaf("origin-root"), signer: TestPKI.key("origin-root"))
        }
        #expect(try reasons(leaf([access])) == [])
        let twice = ServerTrust.Reason.other("\(Self.refused): it has an extension twice (RFC 5280, section 4.2)")
        #expect(try reasons(leaf([access, access])) == [twice])
        let malformed = ServerTrust.Reason.other(
            "\(Self.refused): authority information access is malformed (RFC 5280, section 4.2.2.1)")
        #expect(try reasons(leaf([access + [0x05, 0x00]])) == [malformed])
    }

    private static let rule = "(RFC 5280, section 4.2.1.10)"
    private static let constraints =
        [
            ("critical,permitted;DNS:localhost,permitted;IP:127.0.0.0/255.0.0.0", nil),
            ("critical,permitted;DNS:localhost,excluded;email:.example.com,excluded;URI:.example.com", nil),
            ("critical,permitted;DNS:localhost,excluded;DNS:a_b.localhost", nil),
            ("permitted;DNS:localhost", nil),
            ("critical,permitted;DNS:localhost,permitted;DNS:.localhost", "a DNS name constraint begins with a period"),
            ("critical,excluded;DNS:.example.com", "a DNS name constraint begins with a period"),
            ("critical,excluded;DNS:*.example.com", "a DNS name constraint is not a host name"),
            ("critical,excluded;DNS:example.com.", "a DNS name constraint is not a host name"),
            ("critical,DER:30:00", "name constraints are empty"),
            ("critical,DER:30:04:A0:00:A1:00", "name constraints are empty"),
            ("critical,DER:30:02:A1:00", "name constraints are empty"),
            ("critical,DER:30:0A:A1:08:30:06:87:04:0A:00:00:01", "an IP address constraint has no mask"),
        ] as [(String, String?)]

    @Test(arguments: constraints)
    func anIssuersNameConstraintsKeepTheProfile(value: String, fault: String?) throws {
        let issuer = try make("issuer", extensions: Self.issuer + ["nameConstraints=\(value)"])
        let leaf = try make("leaf", below: "issuer", extensions: Self.leaf)
        let expected = fault.map { "issuer not accepted: \($0.hasSuffix(")") ? $0 : "\($0) \(Self.rule)")" }
        #expect(reasons(leaf, issuer) == (expected.map { [.other($0)] } ?? []))
    }

    @Test(arguments: constraints)
    func anAnchorsNameConstraintsKeepTheProfile(value: String, fault: String?) throws {
        let key = folder.path("anchor.key")
        try openssl("genpkey", "-quiet", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
        let extensions = (Self.issuer + ["nameConstraints=\(value)"]).flatMap { ["-addext", $0] }
        let made = try run(
            "openssl",
            ["req", "-x509", "-key", key, "-subj", "/CN=anchor", "-days", "10", "-out", folder.path("anchor.pem")]
                + extensions)
        try #require(made.status == 0, "\(made.output)")
        let anchor = try #require(try Certificate.readPEM(folder.bytes("anchor.pem")).first)
        let verifier = ChainVerifier(anchors: try TrustAnchors(system: false, additional: [anchor]))
        let leaf = try make("leaf", below: "anchor", extensions: Self.leaf)
        let expected = fault.map { "trust anchor not accepted: \($0.hasSuffix(")") ? $0 : "\($0) \(Self.rule)")" }
        let found = verifier.evaluate(chain: [leaf], host: "localhost", at: TestPKI.today).reasons
        #expect(found == (expected.map { [.other($0)] } ?? []))
    }

    @Test(arguments: ["", "critical,"])
    func nameConstraintsApplyWhetherCriticalOrNot(prefix: String) throws {
        for value in ["permitted;DNS:other.example", "excluded;DNS:localhost"] {
            let issuer = try make("issuer", extensions: Self.issuer + ["nameConstraints=\(prefix)\(value)"])
            let leaf = try make("leaf", below: "issuer", extensions: Self.leaf)
            #expect(reasons(leaf, issuer) == [.nameConstraint])
        }
    }

    /// The authority that this package creates keeps the rules.
    @Test func theInterceptionAuthorityKeepsTheProfile() throws {
        let authority = try InterceptionAuthority.create(permitting: ["a.example", "10.0.0.1"], at: TestPKI.today)
        let chain = try authority.mintLeaf(host: "a.example", key: authority.issuingKey, at: TestPKI.today)
        let verifier = ChainVerifier(anchors: try TrustAnchors(system: false, additional: [authority.root]))
        #expect(verifier.evaluate(chain: chain, host: "a.example", at: TestPKI.today).reasons == [])
    }
}
