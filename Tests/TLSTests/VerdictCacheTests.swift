// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import Dispatch
import NIOConcurrencyHelpers
import Testing

@testable import CountersignTLS

struct VerdictCacheTests {
    private let cache = VerdictCache(limit: 3)
    private let finds = NIOLockedValueBox(0)

    /// The verdict of the cache. A new verdict has its number as its revocation. The leaf names the hosts that begin
    /// with "named".
    private func verdict(
        _ name: String = "origin-ec", host: String = "localhost", staple: ChainVerifier.Staple = .absent,
        at time: Int64 = 1000, holdsUntil: Int64 = .max, reasons: [ServerTrust.Reason] = [.unknownIssuer]
    ) throws -> Int {
        let chain = try Fixture.chain(name)
        let found = cache.verdict(
            on: chain, host: host, staple: staple, at: time, isNamed: { host.hasPrefix("named") }
        ) {
            let number = finds.withLockedValue { count in
                count += 1
                return count
            }
            let found = ServerTrust(chain: chain, reasons: reasons, revocation: .unknown("\(number)"))
            return ChainVerifier.Appraisal(trust: found, holdsUntil: holdsUntil)
        }
        #expect(found.trust.chain == chain)
        guard case .unknown(let number) = found.trust.revocation else { return 0 }
        return Int(number) ?? 0
    }

    @Test func verdictIsForOneChainHostAndResponse() throws {
        #expect(try verdict() == 1)
        #expect(try verdict(at: 1600) == 1)
        #expect(try verdict(host: "other") == 2)
        #expect(try verdict(staple: .awaited) == 3)
        #expect(try verdict(staple: .received([])) == 4)
        #expect(try verdict(staple: .received([0])) == 5)
        #expect(try verdict("origin-rsa") == 6)
        #expect(try verdict("origin-intermediate-leaf") == 7)
        #expect(try verdict("origin-incomplete") == 8, "the same leaf without its issuer")
    }

    @Test func positiveVerdictAppliesToEveryHostOfTheLeaf() throws {
        #expect(try verdict(host: "named-a", reasons: []) == 1)
        #expect(try verdict(host: "named-b", reasons: []) == 1)
        #expect(try verdict(host: "named-a", reasons: []) == 1)
        #expect(try verdict(host: "other", reasons: [.hostMismatch]) == 2)
        #expect(try verdict(host: "other", reasons: [.hostMismatch]) == 2)
        #expect(try verdict(host: "named-b", reasons: []) == 1)
        #expect(try verdict(host: "named-b", at: 1601, reasons: []) == 3, "not for longer than the first")
    }

    @Test func negativeVerdictIsFoundForEachHost() throws {
        #expect(try verdict(host: "named-a") == 1)
        #expect(try verdict(host: "named-b") == 2)
        #expect(try verdict(host: "named-a") == 1)
    }

    @Test func verdictIsValidForTenMinutesAndNotBefore() throws {
        #expect(try verdict(at: 1000) == 1)
        #expect(try verdict(at: 1600) == 1)
        #expect(try verdict(at: 1601) == 2)
        #expect(try verdict(at: 1600) == 3, "found for a later time")
    }

    @Test func verdictExpiresWithADate() throws {
        #expect(try verdict(at: 1000, holdsUntil: 1010) == 1)
        #expect(try verdict(at: 1010) == 1)
        #expect(try verdict(at: 1011) == 2)
        #expect(try verdict(at: .max) == 3)
        #expect(try verdict(at: .max) == 4, "no end to count to")
    }

    @Test func leastRecentlyUsedVerdictIsEvicted() throws {
        for (host, number) in [
            ("a", 1), ("b", 2), ("c", 3), ("a", 1), ("d", 4), ("a", 1), ("c", 3), ("b", 5), ("d", 6),
        ] {
            #expect(try verdict(host: host) == number, "\(host)")
        }
    }

    @Test func longChainsAreNotCached() throws {
        let long = ChainVerifier.Staple.received([UInt8](repeating: 0, count: VerdictCache.longestInputBytes))
        #expect(try verdict(staple: long) == 1)
        #expect(try verdict(staple: long) == 2)
    }

    @Test func cacheMayBeSharedByThreads() throws {
        let failures = NIOLockedValueBox(0)
        DispatchQueue.concurrentPerform(iterations: 400) { index in
            let host = "host\(index % 5)"
            if (try? verdict(host: host)) == nil { failures.withLockedValue { $0 += 1 } }
        }
        #expect(failures.withLockedValue { $0 } == 0)
    }

    @Test func contextCachesVerdictsUntilACertificateExpires() throws {
        let time = NIOLockedValueBox(Int64(2_335_219_100))
        let verifier = ChainVerifier(
            anchors: try TrustAnchors(system: false, additional: Fixture.chain("origin-root")))
        let context = try TLSClientContext(verifier: verifier, now: { time.withLockedValue { $0 } })
        func reasons(_ host: String = "localhost") throws -> [ServerTrust.Reason] {
            try context.verdict(on: Fixture.chain("origin-ec"), host: host, staple: .absent).trust.reasons
        }
        #expect(try reasons() == [])
        #expect(try reasons("a.test.localhost") == [])
        #expect(try reasons("other.example") == [.hostMismatch])
        time.withLockedValue { $0 = 2_335_219_200 }
        #expect(try reasons() == [])
        time.withLockedValue { $0 = 2_335_219_201 }
        #expect(try reasons() == [.expired(notAfter: 2_335_219_200)])
    }
}
