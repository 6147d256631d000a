// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignCertificates

/// Chains that are made to be expensive.
struct HostileChainTests {
    private let anchor: Certificate
    private let verifier: ChainVerifier

    init() throws {
        anchor = try TestPKI.leaf("origin-root")
        verifier = ChainVerifier(anchors: try TrustAnchors(system: false, additional: [anchor]))
    }

    private func reasons(_ chain: [Certificate]) -> [ServerTrust.Reason] {
        verifier.evaluate(chain: chain, host: "localhost", at: TestPKI.now).reasons
    }

    @Test(arguments: HostileChain.Key.allCases)
    func theWorkIsLimited(key: HostileChain.Key) throws {
        let chain = try HostileChain(anchor: anchor, key: key).make()
        let cost = chain[1].signatureCost
        let requirements = PathRequirements()
        var search = PathSearch(
            chain.filter { $0.signatureCost != nil || $0 == chain[0] }, leaf: chain[0],
            anchors: try TrustAnchors(system: false, additional: [anchor]), at: TestPKI.now, requirements: requirements)
        var work = 0
        while let path = search.next() {
            let links = path.chain.count - 1
            work += links * (try #require(cost))
        }
        #expect(work <= VerificationBudget.total)
        #expect((work > 0) == (cost != nil))
        #expect(!reasons(chain).isEmpty)
    }

    /// Keys that are far more expensive than those in use are not used at all, and the reasons say so.
    @Test(arguments: [
        (HostileChain.Key.rsa16384, "RSA 16384"), (.rsa3072LargeExponent, "RSA 3072"), (.binary571, "EC sect571r1"),
        (.dsa, "DSA 10000"),
    ])
    func unusualKeysAreNotUsed(key: HostileChain.Key, name: String) throws {
        let chain = try HostileChain(anchor: anchor, key: key, layers: 1, width: 1).make()
        let text = "issuer not accepted: checking signatures by its key (\(name)) takes too long"
        #expect(reasons(chain).contains(.other(text)), "\(reasons(chain))")
        #expect(reasons(chain).contains(.unknownIssuer))
    }

    @Test func usualKeysHaveACost() throws {
        for name in ["origin-root", "origin-intermediate-leaf"] {
            #expect(try TestPKI.leaf(name).signatureCost == 80)
        }
        let costs = try HostileChain.Key.allCases.map { key in
            try HostileChain(anchor: anchor, key: key, layers: 1, width: 1).make()[1].signatureCost
        }
        #expect(costs == [nil, nil, 320, 80, 800, 800, 1200, nil, nil])
    }

    /// A mesh with many certificates under one name needs few signatures, but many comparisons.
    @Test func manyCertificatesOfOneNameAreLimited() throws {
        let chain = try HostileChain(anchor: anchor, key: .rsa4096, layers: 3, width: 80).make()
        #expect(!reasons(chain).isEmpty)
        let requirements = PathRequirements()
        var search = PathSearch(
            chain, leaf: chain[0], anchors: try TrustAnchors(system: false, additional: []), at: TestPKI.now,
            requirements: requirements)
        #expect(search.next() == nil)
        #expect(requirements.budget.remaining < 81 * VerificationBudget.examination)
    }

    /// An unusable certificate in the chain does not prevent another path.
    @Test func anUnusualKeyIsIgnoredBesideAGoodPath() throws {
        let good = try TestPKI.chain("origin-intermediate-leaf")
        let hostile = try HostileChain(anchor: anchor, key: .rsa16384, layers: 1, width: 1).make()
        #expect(reasons(good + hostile.dropFirst()) == [])
    }

    /// Reasons that no other path lacks do not cause a search.
    @Test func reasonsOfTheLeafAloneDoNotDependOnThePath() {
        let findings = ChainFindings()
        findings.add(.other("extended key usage is critical"), depth: 0, isOfLeaf: true)
        findings.add(.hostMismatch, depth: 0)
        #expect(!findings.dependOnPath)
        findings.add(.weakKey, depth: 1)
        #expect(findings.dependOnPath)
        findings.add(.weakKey, depth: 0)
        #expect(!findings.dependOnPath)
        findings.add(.revoked, depth: 2)
        #expect(findings.dependOnPath)
        findings.add(.revoked, depth: 0)
        findings.add(.unknownIssuer, depth: 0)
        #expect(!findings.dependOnPath)
    }
}
