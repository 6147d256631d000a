// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Tokens for APIs that never challenge: `inject=`, `placeholder=`, `redact=` and `challenge=none`.
@Suite(.waiting) struct InjectionTests {
    private static let token = "kanarie-live-0123456789"

    /// An API that shows what it gets, and a user who has listed it.
    private struct API {
        let origin: HTTP2Origin
        let user: Countersign
        let proxy: RunningProxy
        let log: String

        init(_ line: String, _ options: [String] = []) throws {
            origin = try HTTP2Origin(options)
            user = try Countersign()
            try user.enroll(token: InjectionTests.token)
            try user.allow("\(origin.url) credential=api \(line)")
            log = user.folder.file("log")
            proxy = try RunningProxy(user, ["--access-log", log])
        }

        func get(_ path: String = "/fields", _ fields: [(String, String)] = [], _ flags: [String] = []) throws
            -> HTTPClient.Response
        {
            try proxy.send(.curl, HTTPClient.Request(url: origin.url + path, fields: fields, flags: flags))
        }

        /// Whether the origin has got the token.
        func gets(_ text: String, _ path: String = "/fields", _ fields: [(String, String)] = [], _ flags: [String] = [])
            throws -> Bool
        {
            let seen = try get(path, fields, flags)
            #expect(seen.status == 200, "\(seen.said)")
            return seen.text.contains(text)
        }
    }

    private static let versions = [("h2", "--http2"), ("h2", "--http1.1"), ("http/1.1", "--http2")]

    @Test(arguments: versions)
    func aFieldIsAddedToEachRequest(offered: String, client: String) throws {
        let api = try API("inject=header:X-Api-Key: {secret}", ["--alpn", offered])
        for _ in 0..<2 {
            let seen = try api.get("/fields", [], [client])
            #expect(seen.text.lowercased().contains("x-api-key: \(Self.token)\""), "\(seen.said) \(seen.text)")
        }
        let logged = poll {
            TextFile.lines(api.log).first { $0.contains("\"challenge\":\"injected\",\"credential\":\"api\"") }
        }
        #expect(logged?.contains(Self.token) == false)
        #expect(
            try api.user.run("explain", api.origin.url).output.contains(
                "yes: credential \"api\", in the field X-Api-Key"))
    }

    @Test func thePlaceholderIsReplacedInItsPlaceOnly() throws {
        let api = try API("inject=header:Authorization: Bearer {secret} placeholder=no-key-needed")
        let token = ": Bearer \(Self.token)\""
        #expect(try api.gets(token))
        #expect(try api.gets(token, "/fields", [("Authorization", "bearer no-key-needed")]))
        let elsewhere = try api.get("/fields?key=no-key-needed", [("X-Other", "no-key-needed")])
        #expect(elsewhere.text.contains("/fields?key=no-key-needed\""), "\(elsewhere.text)")
        #expect(elsewhere.text.lowercased().contains("x-other: no-key-needed\""))
        let own = try api.get("/fields", [("Authorization", "Bearer mine")])
        #expect(own.text.contains("Bearer mine\"") && !own.text.contains(Self.token))
        #expect(own.proxyStatus.contains("not injected: the client authenticates itself"), "\(own.proxyStatus)")
    }

    @Test(arguments: versions) func aPasswordIsAddedAsBasic(offered: String, client: String) throws {
        func encoded(_ text: String) -> String { Data(text.utf8).base64EncodedString() }
        let api = try API(
            "inject=basic:x-access-token:{secret} placeholder=no-key-needed", ["--alpn", offered])
        let sent = ": Basic \(encoded("x-access-token:\(Self.token)"))\""
        #expect(try api.gets(sent, "/fields", [], [client]))
        #expect(try api.gets(sent, "/fields", [("Authorization", "Basic no-key-needed")], [client]))
        // As git does with https://x-access-token:no-key-needed@host.
        let placeholder = encoded("x-access-token:no-key-needed")
        #expect(try api.gets(sent, "/fields", [("Authorization", "Basic \(placeholder)")], [client]))
        let own = "Basic \(encoded("other:no-key-needed"))"
        #expect(try api.gets(": \(own)\"", "/fields", [("Authorization", own)], [client]))
    }

    @Test(arguments: ["h2", "http/1.1"]) func aParameterOfTheQueryIsAdded(offered: String) throws {
        let api = try API("inject=query:key={secret} placeholder=no-key-needed", ["--alpn", offered])
        #expect(try api.gets("\"/fields?key=\(Self.token)\""))
        #expect(try api.gets("\"/fields?a=b&key=\(Self.token)&c=d\"", "/fields?a=b&key=no-key-needed&c=d"))
        #expect(try api.gets("\"/fields?key=mine\"", "/fields?key=mine"))
    }

    @Test func aCookieIsAdded() throws {
        let api = try API("inject=cookie:sid={secret}", ["--alpn", "http/1.1"])
        #expect(try api.gets("cookie: a=b; sid=\(Self.token)\"", "/fields", [("Cookie", "a=b")]))
        #expect(try api.gets("cookie: sid=mine\"", "/fields", [("Cookie", "sid=mine")]))
    }

    @Test(arguments: versions)
    func anEchoOfTheTokenIsRedacted(offered: String, client: String) throws {
        let api = try API("inject=header:X-Api-Key: {secret} redact=yes", ["--alpn", offered])
        let seen = try api.get(
            "/fields", [("Range", "bytes=0-3"), ("Accept-Encoding", "gzip")], [client])
        let stars = String(repeating: "*", count: Self.token.utf8.count)
        #expect(seen.status == 200 && seen.text.contains(": \(stars)\""), "\(seen.said) \(seen.text)")
        #expect(!seen.text.contains(Self.token) && seen.values("x-echo") == [stars])
        #expect(
            !seen.text.lowercased().contains("range:") && seen.text.lowercased().contains("accept-encoding: identity"))
    }

    /// The rest of the token may be in another part.
    @Test(arguments: versions) func aPartialResponseIsRefused(offered: String, client: String) throws {
        let api = try API("inject=header:X-Api-Key: {secret} redact=yes", ["--alpn", offered])
        let seen = try api.get("/part/12", [("Range", "bytes=0-16")], [client])
        #expect(seen.status == 502 && !seen.text.contains(Self.token.prefix(4)), "\(seen.said) \(seen.text)")
        #expect(seen.text.contains("the response is partial"), "\(seen.text)")
        let plain = try API("inject=header:X-Api-Key: {secret}", ["--alpn", offered])
        #expect(try plain.get("/part/12", [], [client]).status == 206)
    }

    @Test(arguments: versions) func anEchoThatTheContentEndsInIsRedacted(offered: String, client: String) throws {
        let api = try API("inject=header:X-Api-Key: {secret} redact=yes", ["--alpn", offered])
        for (count, shown) in [(7, "kanarie"), (8, "********"), (22, String(repeating: "*", count: 22))] {
            let seen = try api.get("/cut/\(count)", [], [client])
            #expect(seen.status == 200 && seen.text == "key: \(shown)", "\(seen.said) \(seen.text)")
        }
    }

    /// A server may route by the path as it was sent.
    @Test(arguments: ["--http2", "--http1.1"]) func theOriginGetsThePathThatTheLineHasCompared(client: String) throws {
        let api = try API("inject=header:X-Api-Key: {secret} paths=/fields/** deny=yes")
        let seen = try api.get("/x/../fields/./a?b=/../c", [], [client, "--path-as-is"])
        #expect(
            seen.text.contains("\"/fields/a?b=/../c\"") && seen.text.contains(Self.token), "\(seen.said) \(seen.text)")
        #expect(try api.get("/fields/../x", [], [client, "--path-as-is"]).status == 403)
        // Servers let these fields stand for another request.
        let other = try api.get(
            "/fields/a", [("X-HTTP-Method-Override", "DELETE"), ("X-Original-URL", "/x")], [client])
        #expect(!other.text.lowercased().contains("x-http-method-override") && !other.text.contains("/x\""))
    }

    @Test func nobodyElseGetsTheToken() throws {
        let api = try API("inject=header:X-Api-Key: {secret}")
        // A page of another origin.
        let page = [("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "cors")]
        #expect(try !api.gets(Self.token, "/fields", page))
        let link = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")]
        #expect(try !api.gets(Self.token, "/fields", link))
        // Another host on the same port.
        let other = try api.proxy.get("https://127.0.0.1:\(api.origin.port)/fields", flags: ["-k"])
        #expect(!other.text.contains(Self.token))
        // A certificate that somebody has accepted.
        let untrusting = try Countersign(anchors: [])
        try untrusting.enroll(token: Self.token)
        try untrusting.allow("\(api.origin.url) credential=api inject=header:X-Api-Key: {secret}")
        let proxy = try untrusting.serve()
        let accepted = try proxy.get(api.origin.url + "/fields", flags: ["-k"])
        #expect(accepted.status == 200 && !accepted.text.contains(Self.token), "\(accepted.said)")
        #expect(accepted.proxyStatus.contains("not injected"), "\(accepted.proxyStatus)")
    }

    @Test func aRejectedTokenIsNotSentAgain() throws {
        let api = try API("inject=header:X-Api-Key: {secret}")
        let refused = try api.get("/bare")
        #expect(refused.status == 401 && refused.proxyStatus.contains("has rejected credential"), "\(refused.said)")
        let withheld = try api.get("/bare")
        #expect(withheld.proxyStatus.contains("was rejected here"), "\(withheld.said)")
        #expect(try !api.gets(Self.token))
        try api.user.succeed("credential", "set", "api", "--token-stdin", input: "kanarie-new-0123456789")
        #expect(poll { (try? api.gets("kanarie-new-0123456789")) == true ? true : nil } == true)
    }

    /// A 401 may be about the request alone.
    @Test func aTokenThatTheSiteHasAcceptedStaysInUse() throws {
        let api = try API("inject=header:X-Api-Key: {secret}")
        #expect(try api.gets(Self.token))
        #expect(try api.get("/bare").status == 401)
        #expect(try api.gets(Self.token))
    }

    @Test(arguments: ["h2", "http/1.1"]) func a401WithoutAChallengeIsAnswered(offered: String) throws {
        let api = try API("answer=bearer challenge=none", ["--alpn", offered])
        #expect(try api.get("/bare").status == 200)
        #expect(try api.get("/fields").text.lowercased().contains("authorization: bearer \(Self.token)"))
        let strict = try API("answer=bearer", ["--alpn", offered])
        #expect(try strict.get("/bare").status == 401)
    }
}
