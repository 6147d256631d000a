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

    @Test func theSameMirroredLeafIsShownUntilSomethingChanges() async throws {
        let authority = try Self.authority()
        let leaves = LeafCache()
        let loop = MultiThreadedEventLoopGroup.singleton.any()
        let key = try PrivateKey.generateP256()
        func leaf() throws -> Certificate {
            try InterceptionAuthority.throwaway(
                mirroring: nil, host: "a.example", key: key, issuerName: "x", at: Self.now)[0]
        }
        func ask(
            _ trust: ServerTrust, host: String = "a.example", port: UInt16 = 443,
            issuer: InterceptionAuthority = authority, now: Int64 = Self.now
        ) async throws -> TLSServerContext {
            try await leaves.mirror(of: trust, host: host, port: port, issuer: issuer, now: now, loop: loop).get()
        }
        let (one, other) = try (leaf(), leaf())
        for reasons in [[ServerTrust.Reason.unknownIssuer], [.hostMismatch]] {
            let trust = ServerTrust(chain: [one], reasons: reasons)
            async let concurrent = [ask(trust), ask(trust)]
            let first = try await ask(trust)
            for again in try await concurrent { #expect(again === first) }
            #expect(try await ask(trust, now: Self.now + 3600) === first)
            #expect(try await ask(ServerTrust(chain: [other], reasons: reasons)) !== first)
            #expect(try await ask(ServerTrust(chain: [one], reasons: reasons + [.weakKey])) !== first)
            #expect(try await ask(trust, host: "b.example") !== first)
            #expect(try await ask(trust, port: 8443) !== first)
            #expect(try await ask(trust, issuer: Self.authority()) !== first)
            // A client would reject an expired leaf for another reason.
            #expect(try await ask(trust, now: one.notAfter + 1) !== first)
        }
        // The host's own leaf is another one.
        let own = try await leaves.mint(host: "a.example", issuer: authority, now: Self.now, loop: loop).get()
        #expect(try await ask(ServerTrust(chain: [one], reasons: [.unknownIssuer])) !== own)
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
