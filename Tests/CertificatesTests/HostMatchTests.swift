// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import Testing

@testable import CountersignCertificates

struct HostMatchTests {
    /// A leaf with these names, as dNSName or iPAddress.
    private func leaf(_ names: [String]) throws -> Certificate {
        let key = try PrivateKey.generateP256()
        let entries = names.map { name in
            IPAddress(text: name).map { DEREncoding.tagged(7, $0.bytes) } ?? DEREncoding.tagged(2, Array(name.utf8))
        }
        let template = CertificateTemplate(
            subject: .parts(organization: nil, commonName: "cn.example"), serial: [1], notBefore: 0, notAfter: 1,
            extensions: [.init(identifier: NID_subject_alt_name, value: DEREncoding.sequence(entries))])
        return try template.signed(for: key, issuer: nil, signer: key)
    }

    @Test(
        arguments: [
            (["a.example"], "a.example", true), (["A.Example"], "a.example", true),
            (["a.example"], "b.a.example", false),
            (["*.a.example"], "b.a.example", true), (["*.a.example"], "a.example", false),
            (["*.a.example"], "c.b.a.example", false), (["*.A.example"], "b.a.example", true),
            (["b*.a.example"], "bc.a.example", false), (["*b.a.example"], "cb.a.example", false),
            (["b.*.example"], "b.a.example", false), (["*.*.example"], "b.a.example", false), (["*"], "example", false),
            (["*.example"], "a.example", false), (["*.co.test"], "a.co.test", false),
            (["*.a.co.test"], "b.a.co.test", true),
            (["x.example", "*.a.example"], "b.a.example", true), ([], "cn.example", false),
            (["other.example"], "cn.example", false),
            (["10.0.0.1"], "10.0.0.1", true), (["10.0.0.1"], "10.0.0.2", false), (["::1"], "::1", true),
            (["::1"], "0:0:0:0:0:0:0:1", true), (["::ffff:10.0.0.1"], "10.0.0.1", false),
            (["10.0.0.1"], "a.example", false),
            (["a.example"], "", false), (["a.example"], ".example", false), (["*.a.example"], ".a.example", false),
        ] as [([String], String, Bool)])
    func namesAreComparedAsWholeLabels(names: [String], host: String, expected: Bool) throws {
        let match = HostMatch(host: host) { $0 == "co.test" }
        #expect(try match.accepts(leaf(names)) == expected)
    }

    @Test func anAddressInADNSNameDoesNotMatch() throws {
        let key = try PrivateKey.generateP256()
        let template = CertificateTemplate(
            subject: .parts(organization: nil, commonName: "10.0.0.1"), serial: [1], notBefore: 0, notAfter: 1,
            extensions: [
                .init(
                    identifier: NID_subject_alt_name,
                    value: DEREncoding.sequence([DEREncoding.tagged(2, Array("10.0.0.1".utf8))]))
            ])
        let leaf = try template.signed(for: key, issuer: nil, signer: key)
        #expect(leaf.dnsNames == ["10.0.0.1"])
        #expect(!HostMatch(host: "10.0.0.1") { _ in false }.accepts(leaf))
    }

    private static let patterns = [
        "a.example", "*.a.example", "*.example", "a*.example", "*", "*.", ".a.example", "xn--*.a.example", "a.example.",
        "*.co.test", "127.0.0.1",
    ]
    private static let hosts = [
        "a.example", "b.a.example", "c.b.a.example", "example", "a.example.", "xn--b.a.example", "*.a.example",
        "a.co.test", "127.0.0.1", "127.0.0.2", "",
    ]

    @Test func nothingIsAcceptedThatOpenSSLRefuses() throws {
        for pattern in Self.patterns {
            let leaf = try leaf([pattern])
            for host in Self.hosts where HostMatch(host: host, isPublicSuffix: { _ in false }).accepts(leaf) {
                #expect(ChainPath.accepts(host, in: leaf), "\(pattern) for \(host)")
            }
        }
    }

    /// On this basis, a verdict for one host is reused for another.
    @Test func aVerifierSaysOfANameAloneWhatItSaysOfItInAVerdict() throws {
        let verifier = ChainVerifier(
            anchors: try TrustAnchors(system: false, additional: TestPKI.chain("origin-root")),
            isPublicSuffix: { $0 == "co.test" })
        var accepted = 0
        for pattern in Self.patterns {
            let leaf = try leaf([pattern])
            for host in Self.hosts {
                let reasons = verifier.evaluate(chain: [leaf], host: host, at: 0).reasons
                let isNamed = verifier.isNamed(host, in: leaf)
                #expect(isNamed != reasons.contains(.hostMismatch), "\(pattern) for \(host)")
                accepted += isNamed ? 1 : 0
            }
        }
        #expect(accepted == 6)
    }

    /// The rest of a verdict does not depend on the host.
    @Test(arguments: ["origin-ec", "origin-expired", "origin-unknown-root", "origin-wrong-eku", "origin-ca-as-leaf"])
    func nothingElseInAVerdictDependsOnTheHost(name: String) throws {
        let verifier = ChainVerifier(
            anchors: try TrustAnchors(system: false, additional: TestPKI.chain("origin-root")))
        let chain = try TestPKI.chain(name)
        let all = ["localhost", "a.test.localhost", "127.0.0.1", "::1", "other.example"].map {
            verifier.evaluate(chain: chain, host: $0, at: TestPKI.now).reasons.filter { $0 != .hostMismatch }
        }
        #expect(Set(all).count == 1)
    }
}
