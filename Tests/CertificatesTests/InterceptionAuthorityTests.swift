// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCryptography
import Testing

@testable import CountersignCertificates

struct InterceptionAuthorityTests {
    private let now = TestPKI.now
    private static let hosts = ["a.example", "*.corp.example", "10.1.2.3"]

    private func authority(_ hosts: [String] = Self.hosts) throws -> InterceptionAuthority {
        try InterceptionAuthority.create(permitting: hosts, at: now)
    }

    @Test func datesAreShortAndNested() throws {
        let authority = try authority()
        let leaf = try authority.mintLeaf(host: "a.example", key: authority.issuingKey, at: now)[0]
        let days: (Certificate) -> (Int64, Int64) = {
            ((now - $0.notBefore) / 86_400, ($0.notAfter + 1 - $0.notBefore) / 86_400)
        }
        #expect(days(authority.root) == (1, 730))
        #expect(days(authority.issuing[0]) == (1, 30))
        #expect(days(leaf) == (1, 7))
        let late = authority.notAfter - 3_600
        let lastLeaf = try authority.mintLeaf(host: "a.example", key: authority.issuingKey, at: late)[0]
        #expect(lastLeaf.notAfter == authority.notAfter)
        let early = authority.issuing[0].notBefore
        let firstLeaf = try authority.mintLeaf(host: "a.example", key: authority.issuingKey, at: early)[0]
        #expect(firstLeaf.notBefore == authority.issuing[0].notBefore)
    }

    @Test func anIssuerOutsideItsDatesIssuesNothing() throws {
        let authority = try authority()
        for time in [authority.issuing[0].notBefore - 1, authority.notAfter + 1] {
            #expect(
                code { _ = try authority.mintLeaf(host: "a.example", key: authority.issuingKey, at: time) }
                    == .notPermitted)
        }
        let (root, key) = try InterceptionAuthority.newRoot(at: now)
        let end = root.notAfter + 1
        #expect(
            code { _ = try InterceptionAuthority.issued(by: root, rootKey: key, permitting: [], at: end) }
                == .notPermitted)
    }

    @Test func aLeafNamesItsHostAndNothingElse() throws {
        let authority = try authority()
        let key = try PrivateKey.generateP256()
        let chain = try authority.mintLeaf(host: "A.example", key: key, at: now)
        #expect(chain.count == 2 && [chain[1]] == authority.issuing)
        #expect(chain[0].dnsNames == ["a.example"] && chain[0].ipAddresses.isEmpty)
        #expect(chain[0].subject == "CN=a.example,O=Countersign")
        #expect(key.matches(chain[0]))
        let address = try authority.mintLeaf(host: "10.1.2.3", key: key, at: now)[0]
        #expect(address.dnsNames.isEmpty && address.ipAddresses == ["10.1.2.3"] && address.subject == "O=Countersign")
        let long = String(repeating: "a", count: 60) + ".corp.example"
        let longLeaf = try authority.mintLeaf(host: long, key: key, at: now)[0]
        #expect(longLeaf.dnsNames == [long] && longLeaf.subject == "O=Countersign")
    }

    /// A key that was read belongs to a provider, a key for leaves is an EC_KEY: OpenSSL encodes them in different
    /// ways.
    @Test func aLeafsKeyIsEncodedLikeAKeyThatWasRead() throws {
        let authority = try authority()
        let key = try PrivateKey.generateP256()
        let read = try PrivateKey(pkcs8: key.pkcs8)
        let leaf = try authority.mintLeaf(host: "a.example", key: key, at: now)[0]
        let other = try authority.mintLeaf(host: "a.example", key: read, at: now)[0]
        #expect(leaf.publicKeyDER == other.publicKeyDER && leaf.publicKeyDER.count == 91)
        #expect(key.kind == .ec(curve: "P-256") && read.kind == key.kind)
        #expect(key.matches(other) && read.matches(leaf))
        let identifiers = [leaf, other].map { $0.extensionValue(NID_subject_key_identifier)?.bytes }
        #expect(identifiers[0] == identifiers[1] && identifiers[0]?.count == 22)
    }

    @Test func serialNumbersAreRandomAndPositive() throws {
        let authority = try authority()
        let key = try PrivateKey.generateP256()
        let serials = try (0..<64).map { _ in
            try authority.mintLeaf(host: "a.example", key: key, at: now)[0].serialNumberHex
        }
        #expect(Set(serials).count == 64)
        #expect(serials.allSatisfy { $0.count <= 32 && $0.count >= 24 && !$0.hasPrefix("-") })
    }

    @Test(arguments: [
        ("a.example", true), ("b.a.example", true), ("x.corp.example", true), ("A.EXAMPLE", true), ("10.1.2.3", true),
        ("example", false), ("ba.example", false), ("a.example.org", false), ("10.1.2.4", false), ("::1", false),
        ("", false),
        ("a.example\0.org", false), ("*.a.example", false), (".a.example", false), ("::ffff:10.1.2.3", false),
    ])
    func leavesAreIssuedForPermittedHostsOnly(host: String, expected: Bool) throws {
        let authority = try authority()
        #expect(authority.permits(host) == expected)
        let refusal = code { _ = try authority.mintLeaf(host: host, key: authority.issuingKey, at: now) }
        #expect(refusal == (expected ? nil : .notPermitted))
    }

    @Test func storedPartsGiveTheSameCA() throws {
        let (root, rootKey) = try InterceptionAuthority.newRoot(at: now)
        let made = try InterceptionAuthority.issued(by: root, rootKey: rootKey, permitting: Self.hosts, at: now)
        let again = try InterceptionAuthority(
            root: Certificate(der: made.root.der), issuing: made.issuing.map { try Certificate(der: $0.der) },
            issuingKey: PrivateKey(pkcs8: made.issuingKey.pkcs8))
        #expect(again.serves(Self.hosts.reversed(), at: now))
        #expect(!again.serves(Array(Self.hosts.dropLast()), at: now))
        #expect(!again.serves(Self.hosts + ["b.example"], at: now))
        let lastWeek = again.notAfter - InterceptionAuthority.leafLifetime
        #expect(again.serves(Self.hosts, at: lastWeek) && !again.serves(Self.hosts, at: lastWeek + 1))
        let renewed = try InterceptionAuthority.issued(by: root, rootKey: rootKey, permitting: ["b.example"], at: now)
        #expect(renewed.root == made.root && renewed.issuing != made.issuing && renewed.serves(["b.example"], at: now))
    }

    @Test func partsThatDoNotBelongTogetherAreRefused() throws {
        let (root, rootKey) = try InterceptionAuthority.newRoot(at: now)
        let one = try InterceptionAuthority.issued(by: root, rootKey: rootKey, permitting: Self.hosts, at: now)
        let two = try authority()
        func made(_ root: Certificate, _ issuing: [Certificate], _ issuingKey: PrivateKey) -> CertificateError.Code? {
            code { _ = try InterceptionAuthority(root: root, issuing: issuing, issuingKey: issuingKey) }
        }
        #expect(made(one.root, one.issuing, one.issuingKey) == nil)
        #expect(made(one.root, [], one.issuingKey) == .malformed)
        #expect(made(one.root, one.issuing + two.issuing, one.issuingKey) == .keyMismatch)
        #expect(made(two.root, one.issuing, one.issuingKey) == .keyMismatch)
        #expect(made(one.root, two.issuing, one.issuingKey) == .keyMismatch)
        #expect(made(one.root, one.issuing, two.issuingKey) == .keyMismatch)
        #expect(made(one.root, [one.root], rootKey) == .malformed)
        #expect(
            code { _ = try InterceptionAuthority.issued(by: two.root, rootKey: rootKey, permitting: [], at: now) }
                == .keyMismatch)
    }

    @Test(arguments: ["a b", "-", "exa_mple!", "a..b", "*", "*.*.example", "10.0.0.0/8", ""])
    func anInvalidHostCannotBePermitted(host: String) {
        #expect(
            code { _ = try InterceptionAuthority.create(permitting: [host], at: now) }
                == (host == "-" ? nil : .unsupported))
    }

    @Test func ownVerifierAgrees() throws {
        let authority = try authority()
        let verifier = ChainVerifier(anchors: try TrustAnchors(system: false, additional: [authority.root]))
        let key = try PrivateKey.generateP256()
        for host in ["a.example", "10.1.2.3", "deep.x.corp.example"] {
            let trust = verifier.evaluate(
                chain: try authority.mintLeaf(host: host, key: key, at: now), host: host, at: now)
            #expect(trust.isTrusted, "\(host): \(trust)")
        }
        for host in ["bank.example", "10.1.2.4", "::1"] {
            let issuer = authority.issuing[0]
            let chain = [try authority.leaf(host: host, key: key, by: issuer, at: now), issuer]
            #expect(verifier.evaluate(chain: chain, host: host, at: now).reasons == [.nameConstraint], "\(host)")
        }
    }
}

/// The chain that is presented for an origin that is not trusted.
struct ThrowawayTests {
    private let now = TestPKI.now

    @Test(arguments: [
        "origin-expired", "origin-not-yet-valid", "origin-wrong-host", "origin-cn-only", "origin-self-signed",
    ])
    func namesAndDatesAreTheOrigins(name: String) throws {
        let origin = try TestPKI.leaf(name)
        let key = try PrivateKey.generateP256()
        let chain = try InterceptionAuthority.throwaway(
            mirroring: origin, host: "localhost", key: key, issuerName: "certificate expired 2021-01-01", at: now)
        let leaf = chain[0]
        #expect(leaf.subjectDER == origin.subjectDER)
        #expect(leaf.dnsNames == origin.dnsNames && leaf.ipAddresses == origin.ipAddresses)
        #expect(leaf.notBefore == origin.notBefore && leaf.notAfter == origin.notAfter)
        #expect(leaf.issuer == "CN=certificate expired 2021-01-01")
        #expect(key.matches(leaf) && leaf.publicKeyDER != origin.publicKeyDER)
    }

    @Test func nobodyTrustsIt() throws {
        let authority = try InterceptionAuthority.create(permitting: ["localhost"], at: now)
        let origin = try TestPKI.leaf("origin-unknown-root")
        let anchors = try TrustAnchors(system: true, additional: [authority.root] + TestPKI.chain("origin-root"))
        let chain = try InterceptionAuthority.throwaway(
            mirroring: origin, host: "localhost", key: authority.issuingKey, issuerName: "certificate issuer unknown",
            at: now)
        let trust = ChainVerifier(anchors: anchors).evaluate(chain: chain, host: "localhost", at: now)
        #expect(trust.reasons == [.unknownIssuer])
    }

    @Test func withoutAnOriginTheHostIsNamed() throws {
        let key = try PrivateKey.generateP256()
        let chain = try InterceptionAuthority.throwaway(
            mirroring: nil, host: "a.example", key: key, issuerName: "no certificate was sent", at: now)
        #expect(chain[0].dnsNames == ["a.example"] && chain[0].isValid(at: now))
    }

    @Test func aLongReasonIsCutToWhatANameMayHold() throws {
        let reason = String(repeating: "ß", count: 64) + "x"
        let chain = try InterceptionAuthority.throwaway(
            mirroring: nil, host: "a.example", key: try PrivateKey.generateP256(), issuerName: reason, at: now)
        #expect(chain[1].subject == "CN=" + String(repeating: "ß", count: 64))
    }
}

/// The chain under the root that is presented for an origin with wrong dates or another name.
struct MirrorTests {
    private let now = TestPKI.now

    private func verdict(on name: String, host: String = "localhost") throws -> ServerTrust {
        let anchors = try TrustAnchors(system: false, additional: TestPKI.chain("origin-root"))
        return ChainVerifier(anchors: anchors).evaluate(chain: try TestPKI.chain(name), host: host, at: now)
    }

    private func authority(_ hosts: String...) throws -> InterceptionAuthority {
        try InterceptionAuthority.create(permitting: hosts, at: now)
    }

    @Test(arguments: [
        ("origin-expired", "localhost"), ("origin-not-yet-valid", "localhost"), ("origin-wrong-host", "localhost"),
        ("origin-cn-only", "localhost"), ("origin-expired", "other.localhost"),
        ("origin-not-yet-valid", "other.localhost"),
    ])
    func clientsRejectItForTheSameReasons(name: String, host: String) throws {
        let trust = try verdict(on: name, host: host)
        #expect(!trust.isTrusted)
        let authority = try authority("localhost")
        let key = try PrivateKey.generateP256()
        let chain = try #require(try authority.mirror(trust, host: host, key: key, at: now))
        let client = ChainVerifier(anchors: try TrustAnchors(system: false, additional: [authority.root]))
        #expect(Set(client.evaluate(chain: chain, host: host, at: now).reasons) == Set(trust.reasons))
        #expect(chain.count == 2 && chain[1] == authority.issuing[0] && key.matches(chain[0]))
        #expect(chain[0].subject.hasPrefix("O=Not trusted by Countersign: "))
        // No name that the origin chose, and never the host together with valid dates.
        #expect(chain[0].dnsNames == [host] || chain[0].dnsNames == ["certificate-is-for-another-host.\(host)"])
    }

    @Test(arguments: [
        "origin-unknown-root", "origin-self-signed", "origin-wrong-eku", "origin-rsa1024", "origin-sha1",
        "origin-ca-as-leaf", "origin-incomplete",
    ])
    func otherReasonsGetNoTrustedChain(name: String) throws {
        let trust = try verdict(on: name)
        #expect(!trust.isTrusted)
        #expect(try authority("localhost").mirror(trust, host: "localhost", key: .generateP256(), at: now) == nil)
    }

    @Test func trustedHostOutsideTheListGetsNoTrustedChain() throws {
        let trust = try verdict(on: "origin-expired")
        #expect(try authority("a.example").mirror(trust, host: "localhost", key: .generateP256(), at: now) == nil)
        let verified = ServerTrust(chain: trust.chain, reasons: [])
        #expect(try authority("localhost").mirror(verified, host: "localhost", key: .generateP256(), at: now) == nil)
    }

    /// The issuer has expired, not the leaf.
    @Test func expiryOfAnIssuerGetsNoTrustedChain() throws {
        let good = try TestPKI.chain("origin-ec")
        let reason = ServerTrust.Reason.expired(notAfter: try #require(good.first).notAfter - 1)
        let trust = ServerTrust(chain: good, reasons: [reason])
        #expect(try authority("localhost").mirror(trust, host: "localhost", key: .generateP256(), at: now) == nil)
        // Neither does a date that is not reached.
        let early = ServerTrust(chain: good, reasons: [.expired(notAfter: try #require(good.first).notAfter)])
        #expect(try authority("localhost").mirror(early, host: "localhost", key: .generateP256(), at: now) == nil)
    }

    @Test func addressOfAnotherHostGetsNoTrustedChain() throws {
        let trust = try verdict(on: "origin-wrong-host", host: "127.0.0.9")
        #expect(trust.reasons == [.hostMismatch])
        #expect(try authority("127.0.0.9").mirror(trust, host: "127.0.0.9", key: .generateP256(), at: now) == nil)
    }
}
