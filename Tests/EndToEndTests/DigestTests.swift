// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Digest against an origin that verifies every parameter with Python's hashlib. Apache is in `Rows`.
@Suite(.waiting) struct DigestTests {
    /// A user with an enrolled password, at a listed origin.
    private struct Bench {
        let user: Countersign
        let origin: DigestOrigin
        let proxy: RunningProxy

        init(
            _ control: [String: any Sendable] = [:], name: String = Countersign.user,
            password: String = Countersign.password, options: String = "answer=digest"
        ) throws {
            origin = try DigestOrigin(control, user: name, password: Countersign.password)
            user = try Countersign()
            try user.enroll(name, password: password)
            try user.allow("\(origin.url) \(options)")
            proxy = try user.serve()
        }

        func get(_ path: String = "/echo") throws -> HTTPClient.Response { try proxy.get(origin.url + path) }

        /// The fault that the origin found, per request; nil for accepted ones.
        var verdicts: [String?] { origin.log.requests.map(\.why) }
    }

    /// JSON's null.
    private static var null: any Sendable { NSNull() }

    /// The origin is right: other clients agree with it.
    @Test(arguments: ["MD5", "SHA-256"]) func otherClientsAgreeWithTheOrigin(algorithm: String) throws {
        let origin = try DigestOrigin(
            // requests does not escape quotation marks.
            ["realm": "Test Digest", "algorithms": [algorithm], "rspauth": "right"], user: Countersign.user,
            password: Countersign.password)
        func status(_ password: String) throws -> Int {
            let flags = ["--digest", "-u", "\(Countersign.user):\(password)"]
            return try HTTPClient.curl.send(
                HTTPClient.Request(url: origin.url + "/echo", flags: flags), proxy: nil,
                anchors: TestPKI.shared.originAnchor
            ).status
        }
        #expect(try status(Countersign.password) == 200)
        #expect(try status("wrong") == 401)
        let script = """
            import requests, sys
            from requests.auth import HTTPDigestAuth
            url, user, password = sys.argv[1:]
            session = requests.Session()
            session.verify = False
            print([session.get(url, auth=HTTPDigestAuth(user, password)).status_code for _ in (1, 2)])
            """
        let done = try Command.run(
            Tool.python(),
            [
                "-W", "ignore", "-c", script, "https://127.0.0.1:\(origin.port)/echo", Countersign.user,
                Countersign.password,
            ], in: TemporaryFolder())
        #expect(done.output == "[200, 200]\n", "\(done.said)")
        #expect(origin.log.requests.last?.why == nil)
    }

    @Test(arguments: [
        ("MD5", "auth"), ("SHA-256", "auth,auth-int"), ("SHA-512-256", "auth"), ("MD5-sess", "auth"),
        ("SHA-256-sess", "auth"), ("SHA-512-256-sess", "auth"), ("MD5", nil), ("SHA-256", nil),
    ])
    func everyAlgorithmIsAnsweredAndThenSentAheadOfTheChallenge(algorithm: String, protection: String?) throws {
        let bench = try Bench([
            "algorithms": [algorithm], "qop": protection ?? Self.null,
            // A server of RFC 2069 proves nothing.
            "rspauth": protection == nil ? Self.null : "right",
        ])
        for path in ["/echo", "/echo?a=b%20c&d=\"", "/elsewhere/deep"] {
            let seen = try bench.get(path)
            #expect(seen.status == 200, "\(seen.said)")
        }
        #expect(bench.verdicts == ["no answer", nil, nil, nil])
    }

    @Test(arguments: ["SHA-256", "MD5-sess"]) func contentIsProtectedUpToTheReplayLimit(algorithm: String) throws {
        let bench = try Bench(["algorithms": [algorithm], "qop": "auth-int"])
        for size in [0, 1, 70_000] {
            let body = try bench.user.folder.write("body-\(size)", [UInt8](repeating: 0x61, count: size))
            let seen = try bench.proxy.send(
                .curl, HTTPClient.Request(method: "PUT", url: bench.origin.url + "/echo", body: body))
            #expect(seen.status == 200 && seen.text.contains("\"length\": \(size),"), "\(seen.said)")
        }
        // Each answer covers its content, which has to be here first.
        #expect(bench.verdicts == ["no answer", nil, "no answer", nil, "no answer", nil])
    }

    /// The nonce expires between two requests, so the answer sent ahead of the challenge is stale.
    @Test func largeContentIsSentAgainIfTheNonceHasExpired() throws {
        let bench = try Bench(["uses": 2])
        for _ in 1...2 { #expect(try bench.get().status == 200) }
        let body = try bench.user.folder.write("body", [UInt8](repeating: 0x61, count: 5_000_000))
        let seen = try bench.proxy.send(
            .curl,
            HTTPClient.Request(
                method: "PUT", url: bench.origin.url + "/echo", body: body, flags: ["-H", "Expect:"]))
        #expect(seen.status == 200 && seen.text.contains("\"length\": 5000000,"), "\(seen.said)")
        #expect(bench.verdicts == ["no answer", nil, nil, "stale", nil])
    }

    @Test func theStrongestAlgorithmIsAnsweredAndNotAWeakerScheme() throws {
        let bench = try Bench(
            ["algorithms": ["MD5", "SHA-256", "SHA-512-256"], "basic": true], options: "answer=basic,digest")
        #expect(try bench.get().status == 200)
        let sent = bench.origin.log.requests.compactMap(\.authorization)
        #expect(sent.count == 1 && sent.allSatisfy { $0.contains("algorithm=SHA-512-256") }, "\(sent)")
    }

    @Test(arguments: [
        (["userhash": true], "jdoe"), (["userhash": true, "charset": true], "j\u{F6}rg"),
        (["charset": true], "j\u{F6}rg \"the\" \\ user"), ([:], "j\u{F6}rg"),
    ])
    func theUserIsNamedAsTheServerAsks(control: [String: Bool], name: String) throws {
        let bench = try Bench(control, name: name)
        let seen = try bench.get()
        #expect(seen.status == 200, "\(bench.verdicts) \(seen.said)")
    }

    @Test func aStaleNonceIsRenewedAndNoRejection() throws {
        let bench = try Bench(["uses": 3])
        for _ in 0..<8 { #expect(try bench.get().status == 200) }
        #expect(bench.verdicts.filter { $0 == "stale" }.count == 2)
        #expect(bench.verdicts.filter { $0 == nil }.count == 8)
        #expect(try bench.user.succeed("credential", "list").contains("rejected") == false)
    }

    // MARK: A challenge to an answer that was sent ahead (RFC 7616 §3.6)

    @Test func oneTimeNoncesNeedNoStale() throws {
        let bench = try Bench(["uses": 1, "stale": false])
        for path in ["/a", "/a", "/b", "/b"] { #expect(try bench.get(path).status == 200) }
        // The second request shows that no nonce is good twice, so that the following ones wait for a challenge.
        #expect(bench.verdicts == ["no answer", nil, "stale", nil, "no answer", nil, "no answer", nil])
        #expect(try bench.user.succeed("credential", "list").contains("rejected") == false)
    }

    /// Two servers behind one name, or one that treats paths differently: the realm is the same, and each knows its own
    /// nonces only.
    static let differences: [[String: any Sendable]] = [
        [:], ["opaque": "other"], ["opaque": NSNull()], ["algorithms": ["MD5"]], ["algorithms": ["SHA-512-256"]],
        ["algorithms": ["SHA-256-sess"]], ["qop": NSNull()], ["qop": "auth-int"], ["userhash": true],
        ["charset": true], ["charset_of_account": "latin1"], ["rspauth": "right"],
    ]

    @Test(arguments: differences.indices, [false, true])
    func anotherChallengeInTheRealmIsAnswered(index: Int, isFirst: Bool) throws {
        let other = Self.differences[index]
        let isCharset = other["charset_of_account"] != nil
        let bench = try Bench(
            [
                "stale": false, "charset": isCharset,
                "others": ["/two": other.merging(["charset": false]) { one, _ in one }],
            ],
            name: isCharset ? "j\u{F6}rg" : Countersign.user,
            options: "answer=digest" + (isCharset ? " charset=latin1" : ""))
        let paths = isFirst ? ["/two/a", "/one/a"] : ["/one/a", "/two/a"]
        for path in paths + paths + paths {
            let seen = try bench.get(path)
            #expect(seen.status == 200, "\(path): \(bench.verdicts) \(seen.said)")
        }
        #expect(try bench.user.succeed("credential", "list").contains("rejected") == false)
    }

    /// The answer to the new challenge decides.
    @Test func aPasswordThatHasChangedIsSentTwice() throws {
        let bench = try Bench(["others": ["/changed": ["password": "another"]]])
        #expect(try bench.get().status == 200)
        for path in ["/changed/a", "/changed/b", "/changed/a", "/changed/c"] {
            #expect(try bench.get(path).status == 401)
        }
        #expect(bench.verdicts.filter { $0 == "wrong response" }.count == 2, "\(bench.verdicts)")
    }

    // MARK: The server's proof

    /// An unreadable proof is not a wrong one (RFC 7616 §3.5).
    @Test(arguments: [
        ["info": "qop=auth, =00000001"], ["info": "rspauth=\""], ["info": "rspauth=\"00\", rspauth=\"00\""],
        ["rspauth": "0123456789abcdef"], ["rspauth": String(repeating: "x", count: 64)],
    ])
    func aProofThatCannotBeReadIsNotWrong(control: [String: String]) throws {
        let bench = try Bench(control)
        for _ in 0..<2 {
            let seen = try bench.get()
            #expect(seen.status == 200, "\(seen.said)")
            #expect(seen.proxyStatus.contains("did not prove that it knows the secret, too"), "\(seen.proxyStatus)")
        }
    }

    @Test func theNextNonceIsUsed() throws {
        let bench = try Bench(["nextnonce": true, "uses": 1])
        for _ in 0..<5 { #expect(try bench.get().status == 200) }
        #expect(bench.verdicts == ["no answer", nil, nil, nil, nil, nil])
    }

    @Test func aServerThatDoesNotKnowThePasswordIsNotBelieved() throws {
        let bench = try Bench(["rspauth": "wrong"])
        let seen = try bench.get()
        #expect(seen.status == 502, "\(seen.said)")
        #expect(seen.proxyStatus.contains("rspauth"), "\(seen.proxyStatus)")
    }

    @Test func aWrongPasswordIsSentOnce() throws {
        let bench = try Bench(password: Countersign.wrongPassword)
        for _ in 0..<3 {
            let seen = try bench.get()
            #expect(seen.status == 401 && seen.values("WWW-Authenticate").count == 1, "\(seen.said)")
        }
        #expect(bench.verdicts.filter { $0 == "wrong response" }.count == 1, "\(bench.verdicts)")
        #expect(try bench.user.succeed("explain", bench.origin.url).contains("rejected"))
    }

    /// Concurrent requests share one nonce, and none uses a count of another. In HTTP/1.1: with HTTP/2, curl 7.88 may
    /// put a request on a connection whose CONNECT has no answer yet, through any proxy, and then fails all of them.
    @Test func concurrentRequestsShareANonce() throws {
        let bench = try Bench()
        #expect(try bench.get().status == 200)
        let done = try Command.run(
            Tool.path("curl"),
            [
                "-q", "-sS", "-Z", "--http1.1", "--parallel-max", "20", "--parallel-immediate", "-x", bench.proxy.url,
                "--cacert", bench.proxy.anchor, "-o", "/dev/null", "-w", "%{http_code}\n",
                "\(bench.origin.url)/echo?[1-60]",
            ], in: bench.user.folder)
        #expect(done.output == String(repeating: "200\n", count: 60), "\(done.said)")
        #expect(bench.verdicts.filter { $0 != nil } == ["no answer"], "\(bench.verdicts)")
    }

    /// RFC 7616 §3.3: an answer is sent ahead only to the paths that `domain` lists.
    @Test func theDomainLimitsWhereAnAnswerIsSentAhead() throws {
        let bench = try Bench(["domain": "/private https://other.example/"])
        for path in ["/private/a", "/private/b", "/echo", "/privateer"] { #expect(try bench.get(path).status == 200) }
        #expect(bench.verdicts == ["no answer", nil, nil, "no answer", nil, "no answer", nil])
    }
}
