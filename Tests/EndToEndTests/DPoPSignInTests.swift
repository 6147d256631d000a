// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Tokens that are bound to a key (RFC 9449), from the sign-in to the site. Provider and origin verify each proof with
/// Python's `cryptography`: signature, method, URL, token, time, nonce; and accept none twice.
@Suite(.waiting) struct DPoPSignInTests {
    struct Bench {
        let provider: SignInProvider
        let origin: BearerOrigin
        let user: Countersign
        let proxy: RunningProxy

        init(
            provider dpop: [String: any Sendable] = [:], origin site: [String: any Sendable] = [:],
            schemes: [String] = ["DPoP"], lifetime: Int = 3600
        ) throws {
            provider = try SignInProvider(["lifetime": lifetime, "token": ["t1", "t2", "t3"], "dpop": dpop])
            origin = try BearerOrigin([
                "tokens": ["t1": "bound", "t2": "bound", "plain": "valid"], "schemes": schemes, "dpop": site,
            ])
            user = try Countersign()
            let done = try Self.enroll(user, provider, origin)
            guard done.status == 0 else { throw HarnessError("enroll: \(done.said)") }
            proxy = try user.serve()
        }

        static func enroll(
            _ user: Countersign, _ provider: SignInProvider, _ origin: BearerOrigin
        ) throws -> CommandResult {
            let profile = try user.folder.write(
                "profile.json", try provider.profile(["name": "work", "sites": [origin.url], "dpop": true]))
            let browser = try user.folder.write(
                program: "browser", "#!/bin/sh\nexec curl -sSL --noproxy '*' -o /dev/null \"$1\"\n")
            return try user.run(["enroll", profile, "--yes"], environment: ["BROWSER": browser])
        }

        func get(_ path: String = "/a/x?q=1") throws -> HTTPClient.Response { try proxy.get(origin.url + path) }

        /// The `Authorization` of each request that the origin has received.
        var sent: [String?] { origin.log.requests.map(\.authorization) }

        static func entries(_ log: String) -> [[String: Any]] {
            TextFile.lines(log).compactMap {
                try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
            }
        }

        /// The thumbprints of the keys whose proofs a server has accepted.
        var keysAtProvider: [String] { Self.entries(provider.log).compactMap { $0["key"] as? String } }
        var keysAtOrigin: [String] { Self.entries(origin.log.path).compactMap { $0["key"] as? String } }
        var refusals: [String] {
            (Self.entries(provider.log) + Self.entries(origin.log.path)).compactMap { $0["refusal"] as? String }
        }
        var proofs: [String] { Self.entries(origin.log.path).compactMap { $0["proof"] as? String } }
    }

    @Test func eachRequestHasAProofOfItsOwn() throws {
        let bench = try Bench()
        #expect(try bench.get().status == 200 && bench.get("/a/y").status == 200 && bench.get("/a/y").status == 200)
        #expect(bench.sent == [nil, "DPoP t1", "DPoP t1", "DPoP t1"], "\(bench.refusals)")
        #expect(Set(bench.proofs).count == 3 && bench.refusals.isEmpty)
        #expect(bench.keysAtProvider.count == 1 && Set(bench.keysAtOrigin) == Set(bench.keysAtProvider))
        let logged = try bench.proxy.logged(site: bench.origin.url, atLeast: 4).filter { $0.method == "GET" }
        #expect(logged.allSatisfy { $0.credential == "work" && $0.challenge == "bearer" })
    }

    /// §8 and §9: one more request, at the provider and at the origin, and none after that.
    @Test func noncesAreTakenFromResponses() throws {
        let bench = try Bench(provider: ["nonce": "as-1"], origin: ["nonce": "rs-1"])
        #expect(bench.refusals == ["use_dpop_nonce"])
        #expect(try bench.get().status == 200 && bench.get("/a/y").status == 200)
        // The challenge has the nonce already.
        #expect(bench.sent == [nil, "DPoP t1", "DPoP t1"] && bench.refusals == ["use_dpop_nonce"])
        try bench.origin.change([
            "tokens": ["t1": "bound"], "schemes": ["DPoP"], "dpop": ["nonce": "rs-2"],
        ])
        #expect(try bench.get("/a/z").status == 200)
        #expect(bench.refusals == ["use_dpop_nonce", "use_dpop_nonce"] && bench.sent.count == 5)
    }

    @Test func anOriginThatAsksForeverGetsTwoRequests() throws {
        let bench = try Bench(origin: ["endless": true])
        let seen = try bench.get()
        #expect(seen.status == 401 && seen.proxyStatus.contains("called a new answer stale"), "\(seen.said)")
        #expect(bench.sent == [nil, "DPoP t1", "DPoP t1"])
        // The token is not at fault.
        try bench.origin.change(["tokens": ["t1": "bound"], "schemes": ["DPoP"], "dpop": [:] as [String: String]])
        #expect(try bench.get().status == 200)
    }

    @Test func aProviderThatAsksForeverGetsTwoRequests() throws {
        let provider = try SignInProvider(["dpop": ["endless": true]])
        let origin = try BearerOrigin([:])
        let done = try Bench.enroll(try Countersign(), provider, origin)
        #expect(done.status == 1 && done.error.contains("use_dpop_nonce"), "\(done.said)")
        #expect(provider.requests.filter { $0.hasPrefix("POST /token") }.count == 2, "\(provider.requests)")
    }

    /// §5.
    @Test func aBearerTokenInItsPlaceIsRefused() throws {
        let provider = try SignInProvider(["dpop": ["type": "Bearer"]])
        let done = try Bench.enroll(try Countersign(), provider, try BearerOrigin([:]))
        #expect(done.status == 1 && done.error.contains("not bound to a key"), "\(done.said)")
        // The refresh token and the access token.
        #expect(provider.revokedResponses == [1, 1] && !done.error.contains("warning"), "\(provider.requests)")
    }

    /// The origin reads all of the content before it asks for the nonce.
    @Test(arguments: [true, false]) func aLargeUploadArrivesWhereTheFirstNonceFollowsAProof(spools: Bool) throws {
        let bench = try Bench(origin: ["nonce": "rs-1", "late": true, "unread": !spools])
        let count = 3_000_000
        let file = bench.user.folder.file("upload")
        try Data(repeating: 7, count: count).write(to: URL(fileURLWithPath: file))
        let seen = try bench.proxy.get(bench.origin.url + "/a/x", flags: ["-T", file, "-H", "Expect:"])
        #expect(seen.status == 200, "\(seen.said)")
        #expect(bench.sent == [nil, "DPoP t1", "DPoP t1"] && bench.refusals == ["use_dpop_nonce"])
        let counts = Bench.entries(bench.origin.log.path).compactMap { $0["count"] as? Int }
        #expect(counts == (spools ? [count, count, count] : [0, 0, count]))
    }

    @Test func aBoundTokenIsNeverSentAsABearerToken() throws {
        let bench = try Bench(schemes: ["Bearer"])
        let seen = try bench.get()
        #expect(seen.status == 401 && seen.proxyStatus.contains("is bound to a key (DPoP)"), "\(seen.proxyStatus)")
        #expect(bench.sent == [nil])
        try bench.user.succeed("token", "allow", "work", "--yes")
        let told = try bench.user.run("token", "work")
        #expect(told.status == 1 && !told.said.contains("t1\n"), "\(told.said)")
    }

    /// §7.2: a site may accept both forms.
    @Test func theFormOfTheTokenDecides() throws {
        let bench = try Bench(schemes: ["Bearer", "DPoP"])
        #expect(try bench.get().status == 200 && bench.sent == [nil, "DPoP t1"])
        let plain = try Countersign()
        try plain.succeed("credential", "set", "plain", "--token-stdin", input: "plain")
        try plain.writeSites("\(bench.origin.url) answer=bearer credential=plain\n")
        let proxy = try plain.serve()
        #expect(try proxy.get(bench.origin.url + "/b/x").status == 200 && bench.sent.last == "Bearer plain")
    }

    @Test func theRefreshTokenIsUsedWithTheSameKey() throws {
        let bench = try Bench(provider: ["nonce": "as-1"], lifetime: 0)
        #expect(try bench.get().status == 200)
        #expect(bench.sent == [nil, "DPoP t2"], "\(bench.refusals) \(bench.provider.requests)")
        #expect(bench.keysAtProvider.count >= 2 && Set(bench.keysAtProvider).count == 1)
        #expect(Set(bench.keysAtOrigin) == Set(bench.keysAtProvider))
    }

    /// The client's own field would make two of them (§4.3).
    @Test func theClientsOwnProofIsReplaced() throws {
        let bench = try Bench()
        let seen = try bench.proxy.get(bench.origin.url + "/a/x", flags: ["-H", "DPoP: mine"])
        #expect(seen.status == 200 && bench.refusals.isEmpty, "\(bench.refusals)")
        let own = try bench.proxy.get(
            bench.origin.url + "/a/x", flags: ["-H", "DPoP: mine", "-H", "Authorization: DPoP theirs"])
        #expect(own.status == 401 && bench.sent.last == "DPoP theirs" && bench.proofs.last == "mine")
    }
}
