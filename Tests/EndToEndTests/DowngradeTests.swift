// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// A site that has accepted Digest offers only Basic, as an attacker on the network path would.
@Suite(.waiting) struct DowngradeTests {
    private let user: Countersign
    private let origin: DigestOrigin

    init() throws {
        origin = try DigestOrigin(
            ["others": ["/weak": ["algorithms": [String](), "basic": true] as [String: any Sendable]]],
            user: Countersign.user, password: Countersign.password)
        user = try Countersign()
        try user.enroll(Countersign.user, password: Countersign.password)
    }

    /// The schemes of the answers to the weak offer.
    private var weakAnswers: [String] {
        origin.log.requests.filter { $0.path?.hasPrefix("/weak") == true }.compactMap(\.authorization).map {
            String($0.prefix { $0 != " " })
        }
    }

    @Test func aWeakerOfferIsHandedBackUntilThePersonPermitsIt() throws {
        try user.allow("\(origin.url) answer=digest,basic")
        let first = try user.serve()
        #expect(try first.get(origin.url + "/a").status == 200)
        // The answer that is sent ahead is Digest's, and the next process remembers the scheme.
        for proxy in [first, try user.serve()] {
            for _ in 0..<2 {
                let seen = try proxy.get(origin.url + "/weak")
                #expect(seen.status == 401 && seen.values("WWW-Authenticate") == ["Basic realm=\"weaker\""])
                #expect(
                    seen.proxyStatus.contains("has accepted digest before, and now offers nothing stronger than basic"))
                #expect(seen.proxyStatus.contains("`countersign credential retry enrollment`"), "\(seen.proxyStatus)")
            }
        }
        #expect(!weakAnswers.contains("Basic"), "\(weakAnswers)")
        #expect(try user.succeed("credential", "retry", "enrollment").contains("may be tried once more"))
        _ = try user.serve().get(origin.url + "/weak")
        #expect(weakAnswers.last == "Basic", "\(weakAnswers)")
    }

    /// The person has decided that, not an attacker on the network path.
    @Test func aLineThatPermitsNothingStrongerIsFollowed() throws {
        try user.allow("\(origin.url) answer=digest,basic")
        #expect(try user.serve().get(origin.url + "/a").status == 200)
        try user.folder.write("home/AllowedSites/test.sites", "\(origin.url) answer=basic\n")
        _ = try user.serve().get(origin.url + "/weak")
        #expect(weakAnswers == ["Basic"])
    }
}
