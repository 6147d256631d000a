// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Bearer against an origin that answers as RFC 6750 describes, and against nginx.
@Suite(.waiting) struct BearerTests {
    private static let token = "kanarie.b3a7-Rr~9_x/+=="
    private static let other = "kanarie.other"

    /// A user with an enrolled token, at a listed origin.
    private struct Bench {
        let user: Countersign
        let origin: BearerOrigin
        let proxy: RunningProxy

        init(
            _ control: [String: any Sendable] = ["tokens": [BearerTests.token: "valid"]], isTLS: Bool = true,
            options: String = "answer=bearer credential=api", hasToken: Bool = true, hasPassword: Bool = false
        ) throws {
            origin = try BearerOrigin(control, isTLS: isTLS)
            user = try Countersign()
            if hasToken { try user.enroll(token: BearerTests.token) }
            if hasPassword { try user.enroll() }
            try user.allow("\(origin.url) \(options)")
            proxy = try user.serve()
        }

        func get(_ path: String = "/a/x") throws -> HTTPClient.Response { try proxy.get(origin.url + path) }

        /// The `Authorization` of each request that the origin has received.
        var sent: [String?] { origin.log.requests.map(\.authorization) }
        /// How often the token was sent.
        var uses: Int { sent.filter { $0 == "Bearer \(BearerTests.token)" }.count }
    }

    /// The origin is right: other clients agree with it, and the field is the one that curl sends.
    @Test func otherClientsAgreeWithTheOrigin() throws {
        let origin = try BearerOrigin(["tokens": [Self.token: "valid"]])
        func status(_ token: String) throws -> Int {
            try HTTPClient.curl.send(
                HTTPClient.Request(url: origin.url + "/a", flags: ["--oauth2-bearer", token]), proxy: nil,
                anchors: TestPKI.shared.originAnchor
            ).status
        }
        #expect(try status(Self.token) == 200)
        #expect(try status("wrong") == 401)
        let script = """
            import requests, sys
            class Bearer(requests.auth.AuthBase):
                def __call__(self, request):
                    request.headers["Authorization"] = "Bearer " + sys.argv[2]
                    return request
            print(requests.get(sys.argv[1], auth=Bearer(), verify=False).status_code)
            """
        let done = try Command.run(
            Tool.python(), ["-W", "ignore", "-c", script, "https://127.0.0.1:\(origin.port)/a", Self.token],
            in: TemporaryFolder())
        #expect(done.output == "200\n", "\(done.said)")
        let bench = try Bench()
        #expect(try bench.get().status == 200)
        #expect(bench.sent.last == origin.log.requests.first?.authorization)
    }

    @Test(arguments: [HTTPClient.curl, .requests])
    func aTokenIsSentAfterAChallengeAndThenAheadInItsSpace(client: HTTPClient) throws {
        let bench = try Bench()
        for path in ["/a/x", "/a/y", "/a/b/z", "/c/x"] {
            let seen = try bench.proxy.send(client, HTTPClient.Request(url: bench.origin.url + path))
            #expect(seen.status == 200 && seen.text == "welcome to \(path)\n", "\(seen.said)")
        }
        let answer = "Bearer \(Self.token)"
        #expect(bench.sent == [nil, answer, answer, answer, nil, answer])
        let logged = try bench.proxy.logged(site: bench.origin.url, atLeast: 8).filter { $0.method == "GET" }
        #expect(logged.map(\.challenge) == ["bearer", "bearer", "bearer", "bearer"])
        #expect(logged.allSatisfy { $0.credential == "api" })
    }

    @Test func nginxAcceptsTheTokenAfterAChallengeOfTheSchemeAlone() throws {
        let origin = try Origins.shared.nginx
        let url = "https://bearer.test.localhost:\(origin.httpsPort)"
        let user = try Countersign()
        try user.enroll(token: NginxOrigin.token)
        try user.allow("\(url) answer=bearer credential=api")
        let seen = try user.serve().get("\(url)/bearer/one")
        #expect(seen.status == 200 && seen.text == "bearer /bearer/one\n", "\(seen.said)")
        let sent = origin.log.requests(path: "/bearer/one").map(\.authorization)
        #expect(sent == ["", "Bearer \(NginxOrigin.token)"])
    }

    // MARK: Errors

    /// With the error code, and from a server that only challenges again.
    @Test(arguments: [false, true]) func aTokenThatIsNotAcceptedIsSentOnce(isBare: Bool) throws {
        let bench = try Bench(["tokens": [Self.token: "expired"], "bare": isBare])
        for number in 1...3 {
            let seen = try bench.get()
            let errors = seen.values("WWW-Authenticate")
            #expect(seen.status == 401 && errors.count == 1, "\(seen.said)")
            #expect(errors[0].contains("invalid_token") == (number == 1 && !isBare))
            #expect(seen.proxyStatus.contains("credential \\\"api\\\" was rejected"), "\(seen.proxyStatus)")
        }
        #expect(bench.uses == 1)
        #expect(try bench.user.succeed("credential", "list").contains("rejected at \(bench.origin.url) (bearer"))
        #expect(try bench.user.succeed("explain", bench.origin.url).contains("was rejected here"))
        // Another token is another credential.
        try bench.origin.change(["tokens": [Self.other: "valid"]])
        try bench.user.enroll(token: Self.other)
        let seen = try poll {
            let seen = try bench.get()
            return seen.status == 200 ? seen : nil
        }
        #expect(seen?.text == "welcome to /a/x\n")
        #expect(bench.uses == 1)
    }

    /// The server's word is about the token, so it does not matter that the request is a new one.
    @Test func aTokenThatExpiresIsSentOnceMore() throws {
        let bench = try Bench()
        #expect(try bench.get("/a/x").status == 200)
        try bench.origin.change(["tokens": [Self.token: "expired"]])
        for path in ["/a/new", "/a/x", "/c/x"] {
            let seen = try bench.get(path)
            #expect(seen.status == 401, "\(seen.said)")
            #expect(seen.proxyStatus.contains("credential \\\"api\\\" was rejected"), "\(seen.proxyStatus)")
        }
        #expect(bench.uses == 2)
    }

    /// RFC 6750 §3.1: status 403. Some servers send 401.
    @Test(arguments: [403, 401]) func anInsufficientScopeIsNamedAndIsNoRejection(status: Int) throws {
        let bench = try Bench(["tokens": [Self.token: "read"], "unauthorized": status == 401])
        for path in ["/admin/1", "/a/x", "/admin/2", "/a/y", "/admin/3"] {
            let seen = try bench.get(path)
            guard path.hasPrefix("/admin") else {
                #expect(seen.status == 200, "\(seen.said)")
                continue
            }
            #expect(seen.status == status && seen.text == "origin says: insufficient_scope\n", "\(seen.said)")
            #expect(
                seen.values("WWW-Authenticate") == [
                    "Bearer realm=\"Test Bearer\", error=\"insufficient_scope\", "
                        + "error_description=\"as RFC 6750 says\", scope=\"admin audit\""
                ])
            #expect(seen.proxyStatus.contains("the origin requires \\\"admin audit\\\""), "\(seen.proxyStatus)")
        }
        #expect(try bench.user.succeed("credential", "list").contains("rejected") == false)
        let logged = try bench.proxy.logged(site: bench.origin.url, atLeast: 10)
        #expect(logged.filter { $0.reason?.contains("requires \"admin audit\"") == true }.count == 3)
    }

    @Test func anInvalidRequestIsDeliveredAndIsNoRejection() throws {
        let bench = try Bench()
        for _ in 1...2 {
            let seen = try bench.get("/malformed")
            #expect(seen.status == 400 && seen.text == "origin says: invalid_request\n", "\(seen.said)")
            #expect(seen.proxyStatus.contains("(invalid_request)"), "\(seen.proxyStatus)")
        }
        #expect(try bench.get().status == 200)
        #expect(try bench.user.succeed("credential", "list").contains("rejected") == false)
    }

    // MARK: Choosing

    @Test func overHTTPTheChallengeIsHandedBackWithTheReason() throws {
        let bench = try Bench(isTLS: false, options: "answer=bearer credential=api plaintext=yes")
        let seen = try bench.get()
        #expect(seen.status == 401 && seen.values("WWW-Authenticate") == ["Bearer realm=\"Test Bearer\""])
        #expect(seen.proxyStatus.contains("Bearer is answered over https only"), "\(seen.proxyStatus)")
        #expect(bench.sent == [nil])
    }

    @Test func withoutATokenTheNextPermittedSchemeIsAnswered() throws {
        let account = "\(Countersign.user):\(Countersign.password)"
        let control: [String: any Sendable] = ["schemes": ["Bearer", "Basic"], "user": account]
        let basic = "Basic \(Data(account.utf8).base64EncodedString())"
        let bench = try Bench(control, options: "answer=bearer,basic", hasToken: false, hasPassword: true)
        for path in ["/a/x", "/a/y"] { #expect(try bench.get(path).status == 200) }
        #expect(bench.sent == [nil, basic, basic])
        // The line permits no other.
        let alone = try Bench(control, options: "answer=bearer", hasToken: false, hasPassword: true)
        let seen = try alone.get()
        #expect(seen.status == 401 && seen.values("WWW-Authenticate").count == 2, "\(seen.said)")
        #expect(seen.proxyStatus.contains("is a user name and password, not a token"), "\(seen.proxyStatus)")
        #expect(alone.sent == [nil])
    }

    @Test func aTokenIsUsedWhereAPasswordIsAskedForFirst() throws {
        let bench = try Bench(
            ["schemes": ["Digest", "Basic", "Bearer"], "tokens": [Self.token: "valid"]],
            options: "answer=digest,bearer,basic credential=api", hasPassword: true)
        #expect(try bench.get().status == 200)
        #expect(bench.sent == [nil, "Bearer \(Self.token)"])
    }

    /// A password for the same site is not tried instead, neither at once nor later.
    @Test func aRejectedTokenIsNotReplacedByAnotherScheme() throws {
        let origin = try BearerOrigin([
            "schemes": ["Bearer", "Basic"], "tokens": [Self.token: "expired"],
            "user": "\(Countersign.user):\(Countersign.password)",
        ])
        let user = try Countersign()
        try user.enroll()
        try user.succeed(
            "credential", "set", "https_bearer.test.localhost_\(origin.port)", "--token-stdin", input: Self.token)
        try user.allow("\(origin.url) answer=bearer,basic")
        let proxy = try user.serve()
        for _ in 1...2 { #expect(try proxy.get("\(origin.url)/a/x").status == 401) }
        #expect(origin.log.requests.map(\.authorization) == [nil, "Bearer \(Self.token)", nil])
    }

    @Test func theTokenIsNowhereButAtTheOrigin() throws {
        let bench = try Bench(["tokens": [Self.token: "read"]])
        for path in ["/a/x", "/admin"] { _ = try bench.get(path) }
        let listed = try bench.user.run("credential", "list", "--json")
        let explained = try bench.user.run("explain", bench.origin.url)
        let texts = [
            TextFile.text(bench.proxy.accessLog), bench.proxy.process.output, bench.proxy.process.errorOutput,
            listed.said, explained.said,
        ]
        #expect(bench.uses > 1)
        for text in texts { #expect(!text.contains("kanarie")) }
        let vault = TextFile.bytes("\(bench.user.home)/vault")
        #expect(!vault.isEmpty && !String(decoding: vault, as: UTF8.self).contains("kanarie"))
    }
}

extension Countersign {
    func enroll(token: String) throws {
        try succeed("credential", "set", "api", "--token-stdin", input: token)
    }
}
