// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignTestOrigin
import Testing

@testable import CountersignCertificates

/// Chains with several paths. Only some end in the trust anchor without a fault (RFC 4158 §2.3 and §2.4).
struct PathSearchTests {
    private static let now = TestPKI.now

    /// A certificate of `subject` issued by `issuer`.
    struct Edge: Hashable, Sendable {
        let issuer: String
        let subject: String

        init(_ issuer: String, _ subject: String) {
            self.issuer = issuer
            self.subject = subject
        }
    }

    /// Why an edge is unusable.
    enum Fault: CaseIterable, Sendable {
        case expired, nameConstraints, purpose, noAuthority, signature
    }

    /// The leaf's subject is `leaf`.
    struct Mesh: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let edges: [Edge]
    }

    private static let twoRoots = Mesh(
        testDescription: "two roots", edges: [Edge("a", "leaf"), Edge("one", "a"), Edge("two", "a")])
    /// RFC 4158, figure 7.
    private static let figure7 = Mesh(
        testDescription: "figure 7",
        edges: [
            Edge("b", "leaf"), Edge("c", "b"), Edge("a", "b"), Edge("c", "a"), Edge("a", "c"), Edge("root", "c"),
            Edge("root", "a"),
        ])
    /// RFC 4158 §2.4: four trust domains, connected by a bridge.
    private static let bridge = Mesh(
        testDescription: "bridge",
        edges: [
            Edge("n", "leaf"), Edge("l", "n"), Edge("x", "l"), Edge("w", "f"), Edge("y", "c"), Edge("z", "o"),
        ] + ["w", "x", "y", "z"].flatMap { [Edge($0, "bridge"), Edge("bridge", $0)] })

    private static let keys = Result { try (0..<16).map { _ in try PrivateKey.generateP256() } }

    /// The reasons against the mesh's leaf if the certificates are sent in this order.
    private func reasons(
        _ edges: [Edge], anchor: String, unusable: Set<Edge> = [], fault: Fault = .expired
    ) throws -> [ServerTrust.Reason] {
        let names = Set(edges.flatMap { [$0.issuer, $0.subject] }).sorted()
        let keys = Dictionary(uniqueKeysWithValues: zip(names, try Self.keys.get()))
        let roots = try Dictionary(uniqueKeysWithValues: names.map { ($0, try root($0, key: try #require(keys[$0]))) })
        let made = try edges.map { edge in
            let isLeaf = edge.subject == "leaf"
            let fault = unusable.contains(edge) ? fault : nil
            var template = CertificateTemplate(
                subject: .parts(organization: nil, commonName: edge.subject), serial: [1],
                notBefore: Self.now - 100, notAfter: fault == .expired ? Self.now - 1 : Self.now + 100,
                extensions: CertificateTemplate.Extension.certificationAuthority(pathLength: 9))
            if isLeaf || fault == .noAuthority {
                template.extensions = CertificateTemplate.Extension.server + [.alternativeName("localhost")]
            }
            if fault == .purpose {
                template.extensions.append(.init(identifier: NID_ext_key_usage, value: Self.mailProtection))
            }
            if fault == .nameConstraints {
                template.extensions.append(
                    .init(
                        identifier: NID_name_constraints, isCritical: true,
                        value: NameConstraints(names: ["other.example"], addresses: []).der))
            }
            let signer = fault == .signature ? try PrivateKey.generateP256() : keys[edge.issuer]
            return try template.signed(
                for: #require(keys[edge.subject]), issuer: roots[edge.issuer], signer: #require(signer))
        }
        let anchors = try TrustAnchors(system: false, additional: [#require(roots[anchor])])
        return ChainVerifier(anchors: anchors).evaluate(chain: made, host: "localhost", at: Self.now).reasons
    }

    private func root(_ name: String, key: PrivateKey) throws -> Certificate {
        try CertificateTemplate(
            subject: .parts(organization: nil, commonName: name), serial: [1], notBefore: Self.now - 100,
            notAfter: Self.now + 100, extensions: CertificateTemplate.Extension.certificationAuthority(pathLength: 9)
        ).signed(for: key, issuer: nil, signer: key)
    }

    /// id-kp-emailProtection.
    private static let mailProtection = DEREncoding.sequence([
        [0x06, 0x08, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x04]
    ])

    private static let passable: [(mesh: Mesh, anchor: String, unusable: Set<Edge>)] = [
        (twoRoots, "one", []), (twoRoots, "two", []),
        (twoRoots, "one", [Edge("two", "a")]), (twoRoots, "two", [Edge("one", "a")]),
        (figure7, "root", []),
        (figure7, "root", [Edge("root", "c"), Edge("a", "b")]),
        (figure7, "root", [Edge("root", "a"), Edge("c", "b")]),
        (bridge, "z", []), (bridge, "w", [Edge("x", "bridge")]), (bridge, "z", [Edge("y", "bridge")]),
    ]

    @Test(arguments: passable.indices, Fault.allCases)
    func theOtherPathIsFound(index: Int, fault: Fault) throws {
        let (mesh, anchor, unusable) = Self.passable[index]
        for edges in [mesh.edges, [mesh.edges[0]] + mesh.edges.dropFirst().reversed()] {
            let found = try reasons(edges, anchor: anchor, unusable: unusable, fault: fault)
            #expect(found == [], "\(mesh.testDescription) to \(anchor) without \(unusable)")
        }
    }

    private static let impassable: [(mesh: Mesh, anchor: String, unusable: Set<Edge>)] = [
        (twoRoots, "one", [Edge("one", "a")]), (twoRoots, "two", [Edge("two", "a")]),
        (figure7, "root", [Edge("root", "c"), Edge("root", "a")]),
        (figure7, "root", [Edge("a", "b"), Edge("c", "b")]),
        (bridge, "z", [Edge("bridge", "x")]), (bridge, "z", [Edge("z", "bridge")]),
    ]

    @Test(arguments: impassable.indices, Fault.allCases)
    func withoutASoundPathNothingIsTrusted(index: Int, fault: Fault) throws {
        let (mesh, anchor, unusable) = Self.impassable[index]
        for edges in [mesh.edges, [mesh.edges[0]] + mesh.edges.dropFirst().reversed()] {
            #expect(try !reasons(edges, anchor: anchor, unusable: unusable, fault: fault).isEmpty)
        }
    }

    /// The reasons are those of a path to an anchor, not of one that ends elsewhere.
    @Test func theReasonsAreThoseOfTheBestPath() throws {
        let expired = ServerTrust.Reason.expired(notAfter: Self.now - 1)
        #expect(try reasons(Self.twoRoots.edges, anchor: "one", unusable: [Edge("one", "a")]) == [expired])
        #expect(try reasons(Self.twoRoots.edges, anchor: "two", unusable: [Edge("two", "a")]) == [expired])
        #expect(
            try reasons(Self.twoRoots.edges, anchor: "two", unusable: [Edge("two", "a")], fault: .nameConstraints)
                == [.nameConstraint])
    }

    /// One of two certificates of the leaf's issuer is revoked.
    @Test(arguments: [true, false]) func aRevokedIntermediateIsAvoided(isFirst: Bool) throws {
        let authority = try OpenSSLAuthority()
        try authority.make("one", of: "one", OpenSSLAuthority.authority)
        try authority.make("two", of: "two", OpenSSLAuthority.authority)
        try authority.make("middle", of: "one", OpenSSLAuthority.authority)
        try authority.make("leaf", of: "middle", OpenSSLAuthority.server)
        try authority.certify("middle", of: "two", as: "bridge", OpenSSLAuthority.authority)
        func certificate(_ name: String) throws -> Certificate {
            try #require(try Certificate.readPEM(authority.bytes("\(name).pem")).first)
        }
        let middles = try [certificate("middle"), certificate("bridge")]
        let chain = try [certificate("leaf")] + (isFirst ? middles : middles.reversed())
        let anchors = try TrustAnchors(system: false, additional: [certificate("one"), certificate("two")])
        func trust(_ lists: [[UInt8]]) throws -> ServerTrust {
            ChainVerifier(anchors: anchors, revocationLists: try lists.flatMap(RevocationList.read)).evaluate(
                chain: chain, host: "localhost", at: Self.now)
        }
        func list(of issuer: String) throws -> [UInt8] {
            try authority.makeList("crl", of: issuer, from: "20251201000000Z", until: "20260201000000Z")
        }
        try authority.revoke("middle", of: "one")
        #expect(try trust([list(of: "one")]).reasons == [])
        try authority.revoke("bridge", of: "two")
        let both = try trust([list(of: "one"), list(of: "two")])
        #expect(both.reasons == [.revoked] && both.revocation == .revoked(by: .revocationList))
    }

    /// A mesh of CAs that have certified each other has more paths than can be tried.
    @Test func theNumberOfPathsIsLimited() throws {
        let names = ["leaf"] + (0..<12).map { "ca \($0)" }
        let keys = Dictionary(uniqueKeysWithValues: zip(names, try Self.keys.get()))
        let roots = try Dictionary(uniqueKeysWithValues: names.map { ($0, try root($0, key: try #require(keys[$0]))) })
        var chain = [try root("leaf", key: try #require(keys["leaf"]))]
        for subject in names {
            for issuer in names.dropFirst() where issuer != subject {
                let template = CertificateTemplate(
                    subject: .parts(organization: nil, commonName: subject), serial: [1], notBefore: Self.now - 100,
                    notAfter: Self.now + 100,
                    extensions: CertificateTemplate.Extension.certificationAuthority(pathLength: 9))
                chain.append(
                    try template.signed(
                        for: #require(keys[subject]), issuer: roots[issuer],
                        signer: #require(keys[issuer])))
            }
        }
        let leaf = chain[1]
        let anchors = try TrustAnchors(system: false, additional: [#require(roots["ca 0"])])
        var search = PathSearch([leaf] + chain.dropFirst(2), leaf: leaf, anchors: anchors, at: Self.now)
        var signatures = 0
        while let material = search.next() { signatures += material.chain.count + (material.trusted?.count ?? 0) - 1 }
        #expect((1...100).contains(signatures), "\(signatures)")
        let stranger = try TrustAnchors(system: false, additional: TestPKI.chain("unknown-root"))
        var fruitless = PathSearch([leaf] + chain.dropFirst(2), leaf: leaf, anchors: stranger, at: Self.now)
        #expect(fruitless.next() == nil)
    }
}
