// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignParents
import CountersignTestOrigin
import Foundation
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignProxy
@testable import CountersignUpstream

/// A CONNECT to a listed http site that carries no request. No origin can be reached, so that a tunnel which is made is
/// closed.
@Suite struct TunnelSilenceTests {
    private static let established = AcceptedConnectTests.established
    private static let connect = AcceptedConnectTests.connect

    /// A client without a way to any origin, and the access log.
    private final class Stage {
        let bench: Bench
        private let log: String
        private let folder = try? TemporaryFolder()

        init(_ sites: String = "http://a.example plaintext=yes", routes: any RouteFinding = NoWay()) throws {
            log = try #require(folder).file("access.log")
            bench = try Bench(
                Bench.policy(sites: sites, password: "secret"), accessLog: AccessLog(path: log) { _ in },
                routes: routes)
        }

        /// Everything that was logged.
        var lines: [String] {
            (try? String(contentsOfFile: log, encoding: .utf8))?.split(separator: "\n").map(String.init) ?? []
        }

        /// The first line.
        var line: String { lines.first ?? "" }

        func wait(_ time: TimeAmount) { bench.loop.advanceTime(by: time) }
    }

    @Test func aSilentClientGetsATunnelAfter200Milliseconds() throws {
        let stage = try Stage()
        try stage.bench.send(Self.connect)
        stage.wait(.milliseconds(199))
        #expect(try stage.bench.answer() == Self.established)
        #expect(stage.bench.isWaiting && stage.lines.isEmpty)
        stage.wait(.milliseconds(1))
        #expect(!stage.bench.isWaiting)
        // The tunnel cannot be made, and ends without a response, which the client would not read.
        #expect(try stage.bench.answer() == "")
        #expect(stage.lines.count == 1)
        let line = stage.line
        #expect(line.contains(#""method":"CONNECT","site":"a.example:80","decision":"tunnel""#), "\(line)")
        #expect(line.contains(#""status":502"#) && line.contains("no setting permits a way"), "\(line)")
        stage.bench.clientEndsInput()
        #expect(!stage.bench.client.isActive)
    }

    @Test(arguments: [
        "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "EHLO a.example\r\n",
        "\u{5}\u{1}\u{0}", "\u{16}\u{3}\u{1}\u{0}\u{5}hello", "\r\nGET / HTTP/1.1\r\n",
    ]) func anotherProtocolGetsATunnelAtOnce(_ bytes: String) throws {
        let stage = try Stage()
        try stage.bench.send(Self.connect + bytes)
        #expect(!stage.bench.isWaiting)
        #expect(try stage.bench.answer() == Self.established)
        // It is https only if it is TLS.
        let isTLS = bytes.hasPrefix("\u{16}")
        let site = isTLS ? #""site":"https://a.example:80""# : #""site":"a.example:80""#
        #expect(stage.lines.count == 1 && stage.line.contains(site), "\(stage.lines)")
        stage.wait(.seconds(1))
        #expect(stage.lines.count == 1)
    }

    @Test(arguments: ["G", "GET", "GET ", "POST /x HTTP/1.1"])
    func theBeginningOfARequestIsNeverForwarded(_ beginning: String) throws {
        let stage = try Stage()
        try stage.bench.send(Self.connect + beginning)
        let now = stage.bench.services.now
        stage.wait(.seconds(5))
        stage.bench.connection.secondPassed(now: now + 10)
        #expect(stage.bench.isWaiting)
        #expect(try stage.bench.answer() == Self.established)
        stage.bench.connection.secondPassed(now: now + 11)
        #expect(try stage.bench.answer().hasPrefix("HTTP/1.1 408 "))
        #expect(stage.lines.count == 1 && stage.line.contains(#""status":408"#), "\(stage.lines)")
        #expect(stage.line.contains(#""site":"a.example:80""#))
    }

    /// Such as that of JDWP, which sends its first 14 bytes without a line end.
    @Test func anUnknownBeginningIsForwardedAfterTheSilence() throws {
        let stage = try Stage()
        try stage.bench.send(Self.connect + "JDWP-Handshake")
        stage.wait(.milliseconds(199))
        #expect(stage.bench.isWaiting)
        stage.wait(.milliseconds(1))
        #expect(!stage.bench.isWaiting && stage.lines.count == 1)
    }

    /// The beginning of a method that turns out to be none.
    @Test func aLateSurpriseIsForwarded() throws {
        let stage = try Stage()
        try stage.bench.send(Self.connect + "HE")
        stage.wait(.milliseconds(300))
        #expect(stage.bench.isWaiting)
        try stage.bench.send("L")
        #expect(!stage.bench.isWaiting)
    }

    @Test(arguments: ["", "HE", "JD"]) func aClientThatGoesIsLogged(_ beginning: String) throws {
        let stage = try Stage()
        try stage.bench.send(Self.connect + beginning)
        stage.bench.client.close(promise: nil)
        stage.bench.loop.run()
        #expect(stage.lines.count == 1 && stage.line.contains(#""status":200"#), "\(stage.lines)")
        #expect(stage.line.contains("the client has gone before it sent a request"))
        stage.wait(.seconds(1))
        #expect(stage.lines.count == 1 && stage.bench.services.isQuiet)
    }

    @Test func aClientThatGoesBeforeTheOriginIsReachedIsLogged() throws {
        let stage = try Stage(routes: EndlessSearch())
        try stage.bench.send(Self.connect + "SSH-2.0-x\r\n")
        #expect(stage.bench.client.isActive && stage.lines.isEmpty)
        stage.bench.client.close(promise: nil)
        stage.bench.loop.run()
        #expect(stage.lines.count == 1 && stage.line.contains(#""site":"a.example:80""#), "\(stage.lines)")
        #expect(stage.line.contains("the client has gone before the origin was reached"))
    }

    /// It still reads the server's first bytes.
    @Test(arguments: ["", "JD"]) func aClientThatHalfClosesGetsATunnelAtOnce(_ beginning: String) throws {
        let stage = try Stage()
        try stage.bench.send(Self.connect + beginning)
        stage.bench.clientEndsInput()
        #expect(!stage.bench.isWaiting)
        #expect(stage.lines.count == 1 && stage.line.contains("no setting permits a way"), "\(stage.lines)")
    }

    @Test func aClientThatHalfClosesInsideARequestLineIsClosed() throws {
        let stage = try Stage()
        try stage.bench.send(Self.connect + "GET /")
        stage.bench.clientEndsInput()
        #expect(!stage.bench.client.isActive)
        #expect(stage.lines.count == 1 && stage.line.contains("the client has sent no request"), "\(stage.lines)")
    }

    @Test func drainingClosesAClientThatHasSentNothing() throws {
        let stage = try Stage()
        try stage.bench.send(Self.connect)
        stage.bench.services.drain()
        #expect(!stage.bench.client.isActive)
        #expect(stage.lines.count == 1 && stage.line.contains("the proxy stops"), "\(stage.lines)")
    }

    @Test func requestsAreLoggedAsHTTP() throws {
        let stage = try Stage()
        try stage.bench.send(Self.connect + "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
        let answer = try stage.bench.answer()
        #expect(answer.hasPrefix(Self.established + "HTTP/1.1 502 "), "\(answer)")
        #expect(stage.lines.count == 2)
        #expect(stage.lines.allSatisfy { $0.contains(#""site":"http://a.example:80","decision":"forward","rule":"#) })
        #expect(stage.line.contains(#""method":"CONNECT""#) && stage.line.contains(#""status":200"#))
        let last = stage.lines.last ?? ""
        #expect(last.contains(#""method":"GET""#) && last.contains(#""status":502"#), "\(last)")
    }

    // MARK: Other lists

    /// As a request in absolute form.
    @Test func aNameThatCannotBeListedIsRefused() throws {
        let stage = try Stage("http://*.corp.example plaintext=yes")
        try stage.bench.send("CONNECT -a.corp.example:80 HTTP/1.1\r\nHost: -a.corp.example:80\r\n\r\n")
        try stage.bench.send("GET / HTTP/1.1\r\nHost: -a.corp.example\r\n\r\n")
        let answer = try stage.bench.answer()
        #expect(answer.hasPrefix(Self.established + "HTTP/1.1 403 "), "\(answer)")
    }

    /// The response to CONNECT waits for the origin, and is a 502.
    @Test(arguments: [
        "", "https://a.example", "http://a.example:81", "http://b.example", "http://a.example intercept=no",
        "https://a.example:80 intercept=no", "proxy://a.example:80 plaintext=yes",
    ]) func withoutAnHTTPLineNothingIsAcceptedEarly(_ sites: String) throws {
        let stage = try Stage(sites)
        try stage.bench.send(Self.connect)
        let answer = try stage.bench.answer()
        #expect(answer.hasPrefix("HTTP/1.1 502 "), "\(answer)")
        #expect(stage.lines.count == 1 && stage.line.contains(#""site":"https://a.example:80""#))
    }

    /// An intercepted site gets TLS or requests, and nothing else.
    @Test(arguments: ["", "SSH-2.0-x\r\n", "JDWP", "\u{16}\u{3}\u{1}"])
    func withBothLinesThereIsNoBlindTunnel(_ bytes: String) throws {
        let stage = try Stage("http://a.example plaintext=yes\nhttps://a.example:80")
        try stage.bench.send(Self.connect + bytes)
        stage.wait(.seconds(5))
        let waits = bytes.isEmpty || bytes == "JDWP"
        #expect(stage.bench.isWaiting == waits)
        stage.bench.connection.secondPassed(now: stage.bench.services.now + 11)
        #expect(try stage.bench.answer() == Self.established)
        #expect(stage.lines.count == 1, "\(stage.lines)")
        #expect(stage.line.contains(waits ? "the client has sent nothing" : "cannot intercept"), "\(stage.lines)")
    }

    @Test func withBothLinesRequestsAreServed() throws {
        let stage = try Stage("http://a.example plaintext=yes\nhttps://a.example:80")
        try stage.bench.send(Self.connect)
        stage.wait(.seconds(5))
        try stage.bench.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
        #expect(try stage.bench.answer().hasPrefix(Self.established + "HTTP/1.1 502 "))
        #expect(stage.lines.allSatisfy { $0.contains(#""site":"http://a.example:80""#) })
    }
}

/// Never finds a way to any origin.
private final class EndlessSearch: RouteFinding {
    let version: UInt64 = 1

    func knownRoute(to origin: Origin, path: String) -> [CountersignParents.Route.Candidate]? { nil }

    func findRoute(
        to origin: Origin, path: String
    ) async throws(ParentsError) -> [CountersignParents.Route.Candidate] {
        await withUnsafeContinuation { _ in }
    }

    func parentFailed(_ parent: ParentProxy) {}
    func parentAnswered(_ parent: ParentProxy) {}
}

extension Bench {
    /// The proxy has accepted a CONNECT and does not know the tunnel's protocol.
    fileprivate var isWaiting: Bool { if case .firstBytes = connection.phase { true } else { false } }
}
