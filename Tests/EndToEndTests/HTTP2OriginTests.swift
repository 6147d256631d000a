// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Sites that speak HTTP/2, for clients of both versions. nginx and Apache of the other suites speak it, too.
@Suite(.waiting) struct HTTP2OriginTests {
    /// A listed site, with a password of which its origin may know.
    private struct Site {
        let origin: HTTP2Origin
        let user: Countersign
        let proxy: RunningProxy

        static let basic = ["--basic", "\(Countersign.user):\(Countersign.password)"]

        init(_ options: [String] = [], line: String = "answer=basic", flags: [String] = []) throws {
            origin = try HTTP2Origin(options)
            user = try Countersign()
            try user.enroll()
            try user.allow("\(origin.url) \(line)")
            proxy = try RunningProxy(user, flags)
        }

        func get(_ path: String, _ flags: [String] = []) throws -> HTTPClient.Response {
            try proxy.get(origin.url + path, flags: flags)
        }

        func send(_ method: String, _ path: String, body: String, _ flags: [String] = []) throws -> HTTPClient.Response
        {
            try proxy.send(
                .curl, HTTPClient.Request(method: method, url: origin.url + path, body: body, flags: flags))
        }

        /// The versions of the requests for `path`, in order.
        func versions(_ path: String) -> [String?] { origin.log.requests(path: path).map(\.version) }
    }

    private static let clients = [["--http2"], ["--http1.1"]]

    // MARK: Which version

    @Test(
        arguments: [
            ("h2,http/1.1", "", [], "h2"), ("h2", "", [], "h2"), ("http/1.1", "", [], "http/1.1"),
            ("h2,http/1.1", " http2=no", [], "http/1.1"), ("h2,http/1.1", "", ["--no-http2"], "http/1.1"),
        ] as [(String, String, [String], String)])
    func theVersionIsTheOriginsChoice(offered: String, option: String, flags: [String], version: String) throws {
        let site = try Site(["--alpn", offered] + Site.basic, line: "answer=basic" + option, flags: flags)
        for client in Self.clients {
            let seen = try site.get("/size/10", client)
            #expect(seen.status == 200, "\(seen.said)")
        }
        let seen = site.versions("/size/10")
        #expect(!seen.isEmpty && seen.allSatisfy { $0 == version }, "\(seen)")
    }

    // MARK: Challenges

    @Test(arguments: clients) func aPasswordIsAnsweredOnTheConnection(client: [String]) throws {
        let site = try Site(Site.basic)
        for _ in 1...3 { #expect(try site.get("/size/70000", client).text.utf8.count == 70_000) }
        let requests = site.origin.log.requests
        #expect(requests.map(\.authorized) == [false, true, true, true], "\(requests)")
        // One for each event loop.
        #expect(Set(requests.map(\.connection)).count <= 2)
    }

    @Test(arguments: clients) func contentIsSentAgain(client: [String]) throws {
        for challenge in ["early", "early-rst", "late"] {
            let site = try Site(Site.basic + ["--challenge", challenge])
            for size in [0, 1, 70_000, 3_000_000] {
                let body = try site.user.folder.write("body", [UInt8](repeating: 0x61, count: size))
                let seen = try site.send("PUT", "/echo", body: body, client)
                #expect(
                    seen.status == 200 && seen.text.utf8.count == size, "\(challenge) \(size) \(seen.said.prefix(900))")
            }
        }
    }

    /// NTLM authenticates a connection, which HTTP/2 does not permit. The site is remembered.
    @Test(arguments: clients, ["NTLM", "Negotiate"]) func ntlmIsAnsweredOverHTTP1(client: [String], scheme: String)
        throws
    {
        let acceptor = try ChallengingOrigin.acme(scheme == "NTLM" ? .ntlm : .negotiate, certificate: nil)
        let site = try Site(
            ["--alpn", "h2,http/1.1", "--ask", scheme, "--http1-to", "\(acceptor.port)"],
            line: "answer=ntlm domain=ACME")
        for _ in 1...3 {
            let seen = try site.get("/echo", client)
            #expect(seen.status == 200, "\(seen.said)")
        }
        let body = try site.user.folder.write("body", [UInt8](repeating: 0x61, count: 70_000))
        #expect(try site.send("PUT", "/echo", body: body, client).status == 200)
        let requests = site.origin.log.requests
        #expect(requests.map(\.version) == ["h2"], "\(requests)")
    }

    @Test(arguments: clients) func aRequestIsSentOverHTTP1IfTheOriginWantsThat(client: [String]) throws {
        let site = try Site(["--alpn", "h2,http/1.1"] + Site.basic)
        let body = try site.user.folder.write("body", [UInt8](repeating: 0x61, count: 70_000))
        let seen = try site.send("POST", "/fault/http11/echo", body: body, client)
        #expect(seen.status == 200, "\(seen.said)")
        let versions = site.versions("/fault/http11/echo")
        #expect(versions.contains("h2") && versions.last == "http/1.1", "\(versions)")
        // It is remembered for the site.
        #expect(try site.get("/size/1", client).status == 200)
        #expect(site.versions("/size/1").last == "http/1.1")
    }

    // MARK: Failures

    /// The origin has certainly not processed the request, whatever its method.
    @Test(arguments: ["/fault/refused/1/echo", "/prefault/refused/3/echo", "/fault/goaway/1/echo"], ["GET", "POST"])
    func aRequestThatWasNotProcessedIsSentAgain(path: String, method: String) throws {
        let site = try Site(Site.basic)
        let body = method == "POST" ? try site.user.folder.write("body", "content") : nil
        let seen = try site.proxy.send(
            .curl, HTTPClient.Request(method: method, url: site.origin.url + path, body: body, flags: ["--http2"]))
        #expect(seen.status == 200 && seen.exit == 0, "\(seen.said)")
    }

    /// A request that may have been processed is not sent again.
    @Test(arguments: [("/fault/reset/2/x", 502), ("/fault/drop/x", 502), ("/fault/reset/11/x", 502)])
    func aLostRequestIsAnError(path: String, status: Int) throws {
        let site = try Site(Site.basic)
        let body = try site.user.folder.write("body", "content")
        let seen = try site.send("POST", path, body: body, ["--http2"])
        #expect(seen.status == status, "\(seen.said)")
        #expect(site.versions(path).count <= 2, "\(site.origin.log.requests)")
        #expect(try site.get("/size/1").status == 200)
    }

    @Test(arguments: [
        "uppercase", "connection-field", "transfer-encoding", "no-status", "bad-status", "two-status", "late-pseudo",
        "newline", "space-name", "data-first",
    ])
    func aMalformedResponseIsRefused(fault: String) throws {
        let site = try Site(Site.basic)
        let body = try site.user.folder.write("body", "content")
        for client in Self.clients {
            let seen = try site.send("POST", "/fault/\(fault)/x", body: body, client)
            #expect(seen.status == 502 && seen.proxyStatus.contains("http_protocol_error"), "\(fault): \(seen.said)")
        }
        // A password that gets a response without a readable status twice is held back, as in HTTP/1.1.
        let isReadable = !["no-status", "bad-status", "late-pseudo", "data-first"].contains(fault)
        #expect(try site.get("/size/1").status == (isReadable ? 200 : 401))
    }

    /// Some servers break the rules only in HTTP/2.
    @Test(arguments: ["uppercase", "newline", "no-status"], clients)
    func aRequestWithAMalformedResponseIsRepeatedOverHTTP1(fault: String, client: [String]) throws {
        let site = try Site(["--alpn", "h2,http/1.1"] + Site.basic)
        for _ in 1...2 {
            let seen = try site.get("/prefault/\(fault)/x", client)
            #expect(seen.status == 200, "\(seen.said)")
        }
        #expect(site.versions("/prefault/\(fault)/x").filter { $0 == "h2" }.count == 1)
    }

    @Test(arguments: ["long", "short", "bad-trailers", "reset-late/2", "drop-late"])
    func aResponseThatIsCutIsCutForTheClient(fault: String) throws {
        let site = try Site(Site.basic)
        for client in Self.clients {
            let seen = try site.get("/fault/\(fault)/x", client)
            #expect(seen.exit != 0 || seen.status == 502, "\(fault): \(seen.said)")
        }
    }

    @Test(arguments: clients) func anEarlyResponseArrives(client: [String]) throws {
        let site = try Site(Site.basic)
        #expect(try site.get("/size/1", client).status == 200)
        let body = try site.user.folder.write("body", [UInt8](repeating: 0x61, count: 3_000_000))
        // curl 7.88 stops sending at the 413. Over HTTP/2 it then ends the content, which makes the Content-Length that
        // it has sent wrong, for which nghttp2 ends the stream.
        let flags = client == ["--http2"] ? ["-H", "Transfer-Encoding: chunked"] : []
        let seen = try site.send("POST", "/fault/early413/x", body: body, client + flags + ["-H", "Expect:"])
        #expect(seen.status == 413 && seen.text == "too large\n", "\(seen.said)")
    }

    /// The origin takes one request at a time; further ones get further connections.
    @Test func theOriginsLimitOfStreamsIsKept() throws {
        let site = try Site(Site.basic + ["--max-streams", "1"])
        #expect(try site.get("/size/1").status == 200)
        let done = try Command.run(
            Tool.path("curl"),
            [
                "-q", "-sS", "-Z", "--parallel-max", "20", "-x", site.proxy.url, "--cacert", site.proxy.anchor, "-o",
                "/dev/null", "-w", "%{http_code}\n", "\(site.origin.url)/fault/slow/20/size/100?[1-60]",
            ], in: site.user.folder)
        #expect(done.output == String(repeating: "200\n", count: 60), "\(done.said)")
    }

    // MARK: gRPC

    @Test(arguments: [[], ["--basic", "\(Countersign.user):\(Countersign.password)"]] as [[String]])
    func everyKindOfCallWorks(options: [String]) throws {
        let site = try Site(options)
        // An abandoned call whose credential has no verdict yet is not cancelled at the origin.
        let skipped = options.isEmpty ? [] : ["--skip", "deadline,cancel"]
        let done = try Command.run(
            Tool.python(),
            [
                "\(Tool.repository)/Tests/TestOrigin/Clients/grpc_client.py", site.proxy.url,
                "two.test.localhost:\(site.origin.port)", site.proxy.anchor, "--calls", "1000", "--concurrency", "50",
            ] + skipped, in: site.user.folder, seconds: 600)
        #expect(done.status == 0, "\(done.said)")
        let log = TextFile.lines(site.origin.log.path).filter { $0.contains("\"connected\"") }
        #expect(log.count <= 4, "\(log.count) connections")
    }

    /// The origin challenges the first call, whose content the client sends only bit by bit.
    @Test(arguments: ["bidi_ping_pong", "bidi_parallel", "client_stream_slow"])
    func theFirstCallMayStream(kind: String) throws {
        let site = try Site(Site.basic)
        let done = try Command.run(
            Tool.python(),
            [
                "\(Tool.repository)/Tests/TestOrigin/Clients/grpc_client.py", site.proxy.url,
                "two.test.localhost:\(site.origin.port)", site.proxy.anchor, "--items", kind,
            ], in: site.user.folder, seconds: 600)
        #expect(done.status == 0, "\(done.said)")
    }

    // MARK: Seen

    @Test func theCommandsNameTheVersion() throws {
        let site = try Site(Site.basic)
        let tested = try site.user.succeed("test", "\(site.origin.url)/size/1")
        #expect(tested.contains(/version +HTTP\/2\n/), "\(tested)")
        try site.user.allow("https://one.test.localhost http2=no")
        let explained = try site.user.succeed("explain", "https://one.test.localhost")
        #expect(explained.contains(/version +HTTP\/1.1 only/), "\(explained)")
    }

    @Test func theAccessLogHasBothVersions() throws {
        let site = try Site(Site.basic)
        #expect(try site.get("/size/1", ["--http1.1"]).status == 200)
        #expect(try site.get("/size/1", ["--http2"]).status == 200)
        let lines = TextFile.lines(site.proxy.accessLog).filter { $0.contains("\"GET\"") }
        #expect(lines.contains { $0.contains(#""http":"1.1","origin_http":"2""#) }, "\(lines)")
        #expect(lines.contains { $0.contains(#""http":"2","origin_http":"2""#) }, "\(lines)")
    }
}
