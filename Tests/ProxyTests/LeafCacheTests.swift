// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import NIOCore
import NIOPosix
import CountersignTLS
import Testing

@testable import CountersignProxy

@Suite struct LeafCacheTests {
    private static let now: Int64 = 1_800_000_000

    private static func authority() throws -> InterceptionAuthority {
        let (root, rootKey) = try InterceptionAuthority.newRoot(at: now)
        let (issuing, key) = try InterceptionAuthority.makeIssuing(
            root: root, rootKey: rootKey, permitting: ["a.example", "b.example"], at: now)
        return try InterceptionAuthority(root: root, issuing: issuing, issuingKey: key)
    }

    @Test func concurrentRequestsMintOneLeaf() async throws {
        let authority = try Self.authority()
        let leaves = LeafCache()
        let loop = MultiThreadedEventLoopGroup.singleton.any()
        func ask(_ host: String) -> EventLoopFuture<TLSServerContext> {
            leaves.mint(host: host, issuer: authority, now: Self.now, loop: loop)
        }
        let asked = (0..<20).map { _ in ask("a.example") }
        let first = try await asked[0].get()
        for other in asked.dropFirst() { #expect(try await other.get() === first) }
        #expect(leaves.cached(host: "a.example", issuer: authority, now: Self.now) === first)
        #expect(try await ask("b.example").get() !== first)
    }

    @Test func aHostOutsideTheNameConstraintsIsReported() async throws {
        let authority = try Self.authority()
        let leaves = LeafCache()
        let loop = MultiThreadedEventLoopGroup.singleton.any()
        let asked = (0..<2).map { _ in
            leaves.mint(host: "bank.example", issuer: authority, now: Self.now, loop: loop)
        }
        for answer in asked { await #expect(throws: CertificateError.self) { try await answer.get() } }
        // A failure does not affect later requests.
        await #expect(throws: CertificateError.self) {
            try await leaves.mint(host: "bank.example", issuer: authority, now: Self.now, loop: loop).get()
        }
    }
}
