// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignParents
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignProxy
@testable import CountersignUpstream

/// Requests without TLS inside a CONNECT to a listed http site.
@Suite struct AcceptedConnectTests {
    static let established = "HTTP/1.1 200 Connection established\r\n\r\n"
    static let connect = "CONNECT a.example:80 HTTP/1.1\r\nHost: a.example:80\r\n\r\n"
    private static let get = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n"
    private static let basic = "Authorization: Basic amRvZTpzZWNyZXQ="
    private static let challenge =
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"a\"\r\nContent-Length: 0\r\n\r\n"
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    /// A client of a listed http site, and an idle connection for requests that may be answered.
    private static func stage(
        _ options: String = "plaintext=yes answer=basic", withCredential: Bool = true
    ) throws -> (Bench, EmbeddedChannel) {
        let bench = try Bench(sites: "http://a.example \(options)", password: "secret")
        return (bench, try bench.idleOrigin(withCredential: withCredential))
    }

    // MARK: Requests

    @Test func aChallengeIsAnsweredAsForAnAbsoluteTarget() throws {
        for isInside in [true, false] {
            let (bench, origin) = try Self.stage()
            if isInside {
                try bench.send(Self.connect)
                #expect(try bench.answer() == Self.established)
                #expect(try origin.sent() == "")
            }
            try bench.send(isInside ? Self.get : "GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n")
            #expect(try origin.sent() == "GET /x HTTP/1.1\r\nHost: a.example\r\nVia: 1.1 csn-test\r\n\r\n")
            try origin.receive(Self.challenge)
            let answer = "GET /x HTTP/1.1\r\nHost: a.example\r\n\(Self.basic)\r\nVia: 1.1 csn-test\r\n\r\n"
            #expect(Set(try origin.sent().split(separator: "\r\n")) == Set(answer.split(separator: "\r\n")))
            try origin.receive(Self.ok)
            let response = try bench.answer()
            #expect(response.hasPrefix("HTTP/1.1 200 OK\r\n") && response.hasSuffix("ok"), "\(response)")
            // The next request of the connection.
            try bench.send(isInside ? Self.get : "GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n")
            #expect(try origin.sent().contains(Self.basic))
        }
    }

    @Test func theRequestMayComeWithTheConnectOrByteByByte() throws {
        for step in [1, 2, 3, 7, 1000] {
            let (bench, origin) = try Self.stage()
            var rest = (Self.connect + Self.get)[...]
            while !rest.isEmpty {
                try bench.send(String(rest.prefix(step)))
                bench.loop.advanceTime(by: .milliseconds(150))
                rest = rest.dropFirst(step)
            }
            #expect(try origin.sent().hasPrefix("GET /x HTTP/1.1\r\n"), "\(step)")
            try origin.receive(Self.ok)
            let answer = try bench.answer()
            #expect(answer.hasPrefix(Self.established + "HTTP/1.1 200 OK\r\n") && answer.hasSuffix("ok"), "\(step)")
        }
    }

    @Test func pipelinedRequestsAreAnsweredInOrder() throws {
        let (bench, origin) = try Self.stage()
        let post = "POST /y HTTP/1.1\r\nHost: a.example:80\r\nContent-Length: 3\r\n\r\nabc"
        try bench.send(Self.connect + Self.get + post)
        #expect(try origin.sent().components(of: "HTTP/1.1\r\n") == 1)
        try origin.receive(Self.challenge)
        _ = try origin.sent()
        try origin.receive(Self.ok)
        let second = try origin.sent()
        #expect(second.hasPrefix("POST /y HTTP/1.1\r\n") && second.hasSuffix("\r\n\r\nabc"), "\(second)")
        try origin.receive(Self.ok)
        #expect(try bench.answer().components(of: "HTTP/1.1 200 OK") == 2)
        #expect(bench.client.isActive)
    }

    @Test func aWebSocketIsUpgradedAfterAnAnsweredChallenge() throws {
        let (bench, origin) = try Self.stage()
        try bench.send(
            Self.connect + "GET /chat HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Origin: http://a.example\r\n\r\n")
        #expect(try origin.sent().contains("Upgrade: websocket\r\n"))
        try origin.receive(Self.challenge)
        let answer = try origin.sent()
        #expect(answer.contains("Upgrade: websocket\r\n") && answer.contains(Self.basic))
        try origin.receive("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhi")
        let response = try bench.answer()
        #expect(response.contains("HTTP/1.1 101 ") && response.hasSuffix("\r\n\r\nhi"), "\(response)")
        try bench.send("frame")
        #expect(try origin.sent() == "frame")
        try origin.receive("back")
        #expect(try bench.answer() == "back")
    }

    @Test func aClientThatHalfClosesStillGetsItsResponse() throws {
        let (bench, origin) = try Self.stage()
        try bench.send(Self.connect + Self.get)
        bench.clientEndsInput()
        try origin.receive(Self.challenge)
        try origin.receive(Self.ok)
        #expect(try bench.answer().hasSuffix("ok"))
        #expect(!bench.client.isActive)
    }

    @Test func theLinesRulesApply() throws {
        // Without plaintext=yes.
        let (plain, first) = try Self.stage("answer=basic")
        try plain.send(Self.connect + Self.get)
        try first.receive(Self.challenge)
        let refused = try plain.answer()
        #expect(refused.contains("HTTP/1.1 401 ") && refused.contains("Proxy-Status: "), "\(refused)")
        // A page of another origin.
        let (foreign, second) = try Self.stage(withCredential: false)
        try foreign.send(Self.connect + "GET /x HTTP/1.1\r\nHost: a.example\r\nOrigin: https://other.example\r\n\r\n")
        try second.receive(Self.challenge)
        let handedBack = try foreign.answer()
        #expect(handedBack.contains("HTTP/1.1 401 ") && handedBack.contains("https://other.example"), "\(handedBack)")
        #expect(!(try second.sent()).contains("Authorization"))
        // A client with credentials of its own.
        let (own, third) = try Self.stage(withCredential: false)
        try own.send(Self.connect + "GET /x HTTP/1.1\r\nHost: a.example\r\nAuthorization: Basic eDp5\r\n\r\n")
        try third.receive(Self.challenge)
        #expect(try own.answer().contains("HTTP/1.1 401 "))
    }

    @Test(arguments: [
        "GET / HTTP/1.1\r\nHost: b.example\r\n\r\n", "GET / HTTP/1.1\r\nHost: a.example:81\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.example:443\r\n\r\n", "GET http://b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET https://a.example:80/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n",
        "CONNECT a.example:80 HTTP/1.1\r\nHost: a.example:80\r\n\r\n", "GET x HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\nHost: a.example\n\n", "GET /\r\n\r\n", "GET\t/ HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.example\r\nCountersign-Trust: yes\r\n\r\n",
    ]) func aRequestForElsewhereOrAMalformedOneIsRefused(_ request: String) throws {
        let (bench, origin) = try Self.stage()
        try bench.send(Self.connect + request)
        let answer = try bench.answer()
        #expect(answer.hasPrefix(Self.established + "HTTP/1.1 400 Bad Request\r\n"), "\(answer)")
        #expect(try origin.sent() == "")
        #expect(answer.components(of: "\r\n\r\n") == 2)
    }

    /// The target of an earlier request of the connection says nothing about those in the CONNECT.
    @Test func theHostOfAnEarlierRequestIsElsewhere() throws {
        let (bench, origin) = try Self.stage()
        let other = Origin(scheme: .http, host: "b.example", port: 80)
        let before = try bench.idleConnection(to: other)
        bench.services.route(to: other, for: RouteClient(principal: Bench.uid)).hostSpelling = Array("b.example".utf8)
        try bench.send("GET http://b.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n")
        #expect(try before.sent() != "")
        try before.receive(Self.ok)
        _ = try bench.answer()
        try bench.send(Self.connect + "GET / HTTP/1.1\r\nHost: b.example\r\n\r\n")
        #expect(try bench.answer().hasPrefix(Self.established + "HTTP/1.1 400 "))
        #expect(try before.sent() == "" && origin.sent() == "")
    }

    @Test(arguments: [
        ("TRACE / HTTP/1.1\r\nHost: a.example\r\n\r\n", "405"), ("GET / HTTP/2.0\r\nHost: a.example\r\n\r\n", "505"),
        ("GET / HTTP/1.1\r\nHost: a.example\r\nVia: 1.1 csn-test\r\n\r\n", "508"),
        ("GET /" + String(repeating: "a", count: 17_000), "414"),
    ]) func otherRefusalsAreThoseOfAPlainRequest(_ request: String, _ status: String) throws {
        let (bench, _) = try Self.stage()
        try bench.send(Self.connect + request)
        #expect(try bench.answer().hasPrefix(Self.established + "HTTP/1.1 \(status) "))
    }

    @Test(arguments: [
        "GET / HTTP/1.1\r\nHost: A.EXAMPLE\r\n\r\n", "GET / HTTP/1.1\r\nHost: a.example:80\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n", "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "PROPFIND / HTTP/1.1\r\nHost: a.example\r\n\r\n",
    ]) func theSameSiteInOtherWordsIsServed(_ request: String) throws {
        let (bench, origin) = try Self.stage()
        try bench.send(Self.connect + request)
        #expect(try origin.sent().contains(" / HTTP/1.1\r\nHost: a.example\r\n"))
    }

    @Test func onlyTheConnectNeedsTheToken() throws {
        for (field, isServed) in [("", false), ("Proxy-Authorization: Bearer t0ken\r\n", true)] {
            let bench = try Bench(sites: "http://a.example plaintext=yes", token: "t0ken")
            let origin = try bench.idleOrigin()
            try bench.send("CONNECT a.example:80 HTTP/1.1\r\nHost: a.example:80\r\n\(field)\r\n" + Self.get)
            #expect(try origin.sent().hasPrefix("GET /x ") == isServed)
            #expect(try bench.answer().hasPrefix(isServed ? Self.established : "HTTP/1.1 407 "))
        }
    }

    /// The client means its Proxy-Authorization for the parent that the CONNECT would reach, if there is one.
    @Test(arguments: [true, false]) func theConnectsAuthorizationIsForTheParent(_ hasParent: Bool) throws {
        let host = try HostName(canonicalizing: "p.example", for: .forwarded)
        let parent = ParentProxy(.http, host, 3128)
        let bench = try Bench(
            Bench.policy(sites: "http://a.example plaintext=yes", password: "secret"),
            routes: ParentStage.OneRoute(parent))
        let origin = try bench.idleOrigin(withCredential: true, forwarder: hasParent ? parent.site : nil)
        let field = "Proxy-Authorization: Basic eDp5\r\n"
        try bench.send("CONNECT a.example:80 HTTP/1.1\r\nHost: a.example:80\r\n\(field)\r\n" + Self.get)
        let sent = try origin.sent()
        #expect(sent.hasPrefix(hasParent ? "GET http://a.example/x HTTP/1.1\r\n" : "GET /x HTTP/1.1\r\n"), "\(sent)")
        #expect(sent.contains("eDp5") == hasParent, "\(sent)")
    }
}
