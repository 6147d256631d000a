// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCryptography
import Testing

@testable import CountersignCertificates

/// An interception CA for more hosts than fit into one certificate.
struct ManyHostsTests {
    private let now = TestPKI.now
    private static let count = 10_000
    private static let special = ["*.wild.example", "10.1.2.3", "10.1.2.4", "fd00::1"]
    private static let hosts = (0..<count).map(Self.name) + special
    /// A CA for all ``hosts``, created once.
    private static let shared = Result { try InterceptionAuthority.create(permitting: hosts, at: TestPKI.now) }

    private static func name(_ number: Int) -> String { "host\(number).dept\(number % 97).corp.example" }

    // MARK: Parts

    @Test(arguments: [281, 1_000, 10_000, 100_000])
    func everyCertificateIsBelowEightKibibytesAndTogetherTheyAreForTheHosts(count: Int) throws {
        let hosts = (0..<count).map(Self.name)
        let authority = try InterceptionAuthority.create(permitting: hosts.shuffled(), at: now)
        let sizes = authority.issuing.map(\.der.count)
        #expect(sizes.count > 1 && sizes.count <= count / 200 + 1)
        #expect(sizes.allSatisfy { $0 < 8 << 10 })
        #expect(sizes.dropLast().allSatisfy { $0 > 7 << 10 }, "all but the last are full")
        let parts = try authority.issuing.map { try #require(NameConstraints(of: $0)) }
        #expect(parts.flatMap(\.names) == hosts.sorted())
        #expect(parts.allSatisfy { $0.addresses.isEmpty })
        #expect(authority.serves(hosts.shuffled(), at: now))
        #expect(!authority.serves(Array(hosts.dropFirst()), at: now))
    }

    @Test func oneKeyHasAllCertificatesAndNoTwoShareANameOrANumber() throws {
        let authority = try Self.shared.get()
        #expect(authority.issuing.allSatisfy { authority.issuingKey.matches($0) })
        #expect(Set(authority.issuing.map(\.subject)).count == authority.issuing.count)
        #expect(Set(authority.issuing.map(\.serialNumberHex)).count == authority.issuing.count)
        #expect(authority.issuing[0].subject.hasSuffix(" part 1,O=Countersign"))
        #expect(authority.issuing.allSatisfy { $0.notAfter == authority.notAfter })
    }

    /// The unchanged extension for these hosts.
    @Test func fewHostsFitIntoOneUnchangedCertificate() throws {
        let few = try InterceptionAuthority.create(permitting: ["a.example", "*.corp.example", "10.1.2.3"], at: now)
        #expect(few.issuing.count == 1)
        #expect(
            few.issuing[0].extensionValue(NID_name_constraints)?.bytes
                == Hex.decode(
                    "3051a029300b8209612e6578616d706c65300e820c636f72702e6578616d706c65300a87080a010203ffffffff"
                        + "a12430228720" + String(repeating: "00", count: 32)))
        let number = few.issuing[0].serialNumberHex.prefix(8)
        #expect(few.issuing[0].subject == "CN=Countersign interception issuer \(number),O=Countersign")
    }

    @Test func theLimitItselfIsWithinOnePart() throws {
        // 28 bytes each, including 4 bytes of tags and lengths.
        let names = (0..<256).map { "host-\($0 + 100).corp.example.org".prefix(24) }.map(String.init)
        let all = NameConstraints.partLimitBytes / 28
        #expect(Set(names).count == all && all * 28 == NameConstraints.partLimitBytes)
        #expect(try NameConstraints.parts(permitting: names).count == 1)
        let parts = try NameConstraints.parts(permitting: names + ["10.1.2.3"])
        #expect(parts.map(\.names.count) == [all, 0] && parts.map(\.addresses.count) == [0, 1])
    }

    @Test func theLongestNamesAreWithinTheLimitToo() throws {
        let label = String(repeating: "a", count: 60)
        let names = (0..<100).map { "\($0 + 100).\(label).\(label).\(label).example" }
        let authority = try InterceptionAuthority.create(permitting: names, at: now)
        #expect(authority.issuing.count > 2 && authority.issuing.allSatisfy { $0.der.count < 8 << 10 })
    }

    // MARK: Leaves

    @Test func everyLeafIsIssuedUnderACertificateThatPermitsIt() throws {
        let authority = try Self.shared.get()
        let parts = try authority.issuing.map { try #require(NameConstraints(of: $0)) }
        let key = try PrivateKey.generateP256()
        for host in Self.hosts.enumerated().filter({ $0.offset % 101 == 0 }).map(\.element) {
            let chain = try authority.mintLeaf(host: host, key: key, at: now)
            let place = try #require(authority.issuing.firstIndex(of: chain[1]))
            #expect(parts[place].names.contains(host), "\(host)")
            #expect(chain[0].issuer == chain[1].subject)
        }
    }

    @Test(arguments: [
        ("x.wild.example", "wild.example"), ("y.x.wild.example", "wild.example"),
        ("below.\(name(77))", name(77)), ("10.1.2.3", "10.1.2.3"), ("10.1.2.4", "10.1.2.4"), ("fd00::1", "fd00::1"),
    ])
    func aWildcardAndAnAddressAreInTheirPart(host: String, named: String) throws {
        let authority = try Self.shared.get()
        let issuer = try authority.mintLeaf(host: host, key: authority.issuingKey, at: now)[1]
        let part = try #require(NameConstraints(of: issuer))
        #expect(part.names.contains(named) || part.addresses.map(\.description).contains(named))
        #expect(issuer.der.count < 8 << 10)
    }

    @Test(arguments: [
        "bank.example", "corp.example", "dept7.corp.example", "host10000.dept9.corp.example", "10.1.2.5", "fd00::2",
        "xhost77.dept77.corp.example", "", ".", "wild.example.", "*.wild.example",
    ])
    func noOtherHostIsMintedFor(host: String) throws {
        let authority = try Self.shared.get()
        #expect(!authority.permits(host))
        #expect(
            code { _ = try authority.mintLeaf(host: host, key: authority.issuingKey, at: now) } == .notPermitted)
    }

    /// Only a host's own certificate permits it; none permits a host that is not listed.
    @Test(arguments: [
        (name(0), 1), (name(count / 2), 1), (name(count - 1), 1), ("x.wild.example", 1), ("10.1.2.3", 1),
        ("fd00::1", 1), ("bank.example", 0), ("dept7.corp.example", 0), ("10.1.2.5", 0), ("fd00::2", 0),
    ])
    func ownVerifierTakesAHostUnderItsOwnCertificateAlone(host: String, expected: Int) throws {
        let authority = try Self.shared.get()
        let verifier = ChainVerifier(anchors: try TrustAnchors(system: false, additional: [authority.root]))
        let key = try PrivateKey.generateP256()
        var trusted: [Certificate] = []
        for issuer in authority.issuing {
            let chain = [try authority.leaf(host: host, key: key, by: issuer, at: now), issuer]
            let trust = verifier.evaluate(chain: chain, host: host, at: now)
            if trust.isTrusted { trusted.append(issuer) } else { #expect(trust.reasons == [.nameConstraint]) }
        }
        #expect(trusted.count == expected)
        if expected == 1 { #expect(try authority.mintLeaf(host: host, key: key, at: now)[1] == trusted[0]) }
    }

    // MARK: Stored authorities

    @Test func aMissingOrForeignPartIsNotFitForTheHosts() throws {
        let authority = try Self.shared.get()
        let (root, issuing, key) = (authority.root, authority.issuing, authority.issuingKey)
        let again = try InterceptionAuthority(root: root, issuing: issuing, issuingKey: key)
        #expect(again.serves(Self.hosts, at: now))
        #expect(again.issuingFingerprint == authority.issuingFingerprint)
        let less = try InterceptionAuthority(root: root, issuing: issuing.dropLast(), issuingKey: key)
        #expect(!less.serves(Self.hosts, at: now) && !less.permits("fd00::1"))
        #expect(less.issuingFingerprint != authority.issuingFingerprint)
        let stranger = try InterceptionAuthority.create(permitting: Self.hosts, at: now)
        #expect(
            code {
                _ = try InterceptionAuthority(
                    root: root, issuing: issuing.dropLast() + stranger.issuing.suffix(1), issuingKey: key)
            } == .keyMismatch)
    }

    @Test func theEarliestEndAndTheLatestBeginningCount() throws {
        let (root, rootKey) = try InterceptionAuthority.newRoot(at: now)
        let hosts = (0..<300).map(Self.name)
        let (issuing, key) = try InterceptionAuthority.makeIssuing(
            root: root, rootKey: rootKey, permitting: hosts, at: now)
        let part = try #require(NameConstraints(of: issuing[1]))
        let day: Int64 = 86_400
        let late = try part.signed(for: key, by: root, rootKey, from: now + day)
        for certificates in [[issuing[0], late], [late, issuing[0]]] {
            let both = try InterceptionAuthority(root: root, issuing: certificates, issuingKey: key)
            #expect(both.notAfter == issuing[0].notAfter)
            #expect(both.permits(hosts[0]) && both.permits(hosts[299]))
        }
        let both = try InterceptionAuthority(root: root, issuing: [issuing[0], late], issuingKey: key)
        #expect(!both.serves(hosts, at: now) && both.serves(hosts, at: now + day))
        let lastWeek = both.notAfter - InterceptionAuthority.leafLifetime
        #expect(both.serves(hosts, at: lastWeek) && !both.serves(hosts, at: lastWeek + 1))
        let host = try #require(part.names.first)
        #expect(code { _ = try both.mintLeaf(host: host, key: key, at: now) } == .notPermitted)
        #expect(try both.mintLeaf(host: host, key: key, at: now + day)[1] == late)
    }
}

extension NameConstraints {
    /// An issuing certificate of `root` for 30 days from `time`.
    fileprivate func signed(
        for key: PrivateKey, by root: Certificate, _ rootKey: PrivateKey, from time: Int64
    ) throws -> Certificate {
        try CertificateTemplate(
            subject: .parts(organization: "Countersign", commonName: "late"),
            serial: InterceptionAuthority.newSerial(),
            notBefore: time, notAfter: time + 30 * 86_400,
            extensions: CertificateTemplate.Extension.certificationAuthority(pathLength: 0) + [
                .init(identifier: NID_name_constraints, isCritical: true, value: der)
            ]
        ).signed(for: key, issuer: root, signer: rootKey)
    }
}
