// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignCryptography
import Testing
import CountersignUpstream

@testable import CountersignProxy

@Suite struct ProtectionSpaceCacheTests {
    private static func key(
        host: String = "a.example", trust: UpstreamKey.Trust = .verified, credential: String = "enrollment",
        generation: UInt64 = 1, principal: UInt32? = 1
    ) -> ProtectionSpaceCache.Key {
        .init(
            origin: Origin(scheme: .https, host: host, port: 443), trust: trust,
            credential: CredentialReference(name: credential, source: .vault(generation: generation)),
            principal: principal)
    }

    private static func space(_ path: String, realm: String) throws -> ProtectionSpaceCache.Space {
        .init(
            .basic(realm, realm: realm, at: Origin(scheme: .https, host: "a.example", port: 443)),
            scope: try #require(PathScope(challengedPath: path)))
    }

    @Test func aSnapshotIsCurrentOnlyUntilAChange() throws {
        let cache = ProtectionSpaceCache()
        cache.add(try Self.space("/a", realm: "first"), key: Self.key())
        let first = cache.snapshot(of: Self.key())
        #expect(cache.isCurrent(first))
        cache.add(try Self.space("/a", realm: "second"), key: Self.key())
        #expect(first.space(for: Array("/a".utf8)[...])?.realm == "first")
        #expect(!cache.isCurrent(first))
        let second = cache.snapshot(of: Self.key())
        #expect(second.space(for: Array("/a".utf8)[...])?.realm == "second")
        cache.removeAll(of: Self.key())
        #expect(!cache.isCurrent(second))
        #expect(cache.snapshot(of: Self.key()).space(for: Array("/a".utf8)[...]) == nil)
    }

    @Test func onlyPathsInTheScopeAreFound() throws {
        let cache = ProtectionSpaceCache()
        cache.add(try Self.space("/docs/a", realm: "r"), key: Self.key())
        #expect(cache.space(for: "/docs/b?c", key: Self.key())?.realm == "r")
        #expect(cache.space(for: "/other", key: Self.key()) == nil)
        #expect(cache.space(for: "/docs/../other", key: Self.key()) == nil)
    }

    @Test func everyPartOfTheKeyCounts() throws {
        let cache = ProtectionSpaceCache()
        cache.add(try Self.space("/a", realm: "r"), key: Self.key())
        #expect(cache.space(for: "/a", key: Self.key()) != nil)
        for other in [
            Self.key(host: "b.example"), Self.key(credential: "other"), Self.key(generation: 2),
            Self.key(principal: nil),
            Self.key(principal: 2), Self.key(trust: .accepted(leaf: [1], answering: true)),
        ] {
            #expect(cache.space(for: "/a", key: other) == nil)
        }
    }

    @Test func theLatestEntryForAScopeCountsAndForgettingRemovesAll() throws {
        let cache = ProtectionSpaceCache()
        cache.add(try Self.space("/a", realm: "old"), key: Self.key())
        cache.add(try Self.space("/b", realm: "new"), key: Self.key())
        #expect(cache.space(for: "/a", key: Self.key())?.realm == "new")
        cache.removeAll(of: Self.key())
        #expect(cache.space(for: "/a", key: Self.key()) == nil)
    }

    @Test func theNarrowerSpaceIsPreferredAndOfTwoAsWideTheLater() throws {
        let root = try Self.space("/a", realm: "root")
        let docs = try Self.space("/docs/a", realm: "docs")
        let later = try Self.space("/b", realm: "later")
        #expect(docs.isPreferred(to: root) && docs.isPreferred(to: later))
        #expect(!root.isPreferred(to: docs) && !later.isPreferred(to: docs))
        #expect(later.isPreferred(to: root) && !root.isPreferred(to: later))
    }

    @Test func theNumberOfSpacesPerKeyIsLimited() throws {
        let cache = ProtectionSpaceCache()
        for number in 0..<33 { cache.add(try Self.space("/\(number)/x", realm: "\(number)"), key: Self.key()) }
        #expect(cache.space(for: "/0/x", key: Self.key()) == nil)
        #expect(cache.space(for: "/1/x", key: Self.key())?.realm == "1")
        #expect(cache.space(for: "/32/x", key: Self.key())?.realm == "32")
    }
}

extension ProtectionSpaceCache {
    func space(for path: String, key: Key) -> Space? {
        snapshot(of: key).space(for: Array(path.utf8)[...])
    }
}

extension ProtectionSpaceCache.Space {
    fileprivate var realm: String? { accepted.space.realm }
}

extension AcceptedAnswer {
    /// A Basic answer with the text `credentials`.
    static func basic(_ credentials: String, realm: String, at origin: Origin) -> AcceptedAnswer {
        AcceptedAnswer(
            Offer(
                BasicAuthenticator.shared,
                Challenge(scheme: "Basic", parameters: [AuthParameter("realm", realm)])),
            at: origin,
            credential: CredentialReference(name: "enrollment", source: .vault(generation: 1)),
            preemption: .answer(.fixed(AuthorizationField(scheme: "Basic", credentials: Array(credentials.utf8)))))
    }
}

extension ProtectionSpaceCache.Snapshot {
    func space(for path: ArraySlice<UInt8>) -> ProtectionSpaceCache.Space? {
        index(for: path).map { spaces[$0] }
    }
}
