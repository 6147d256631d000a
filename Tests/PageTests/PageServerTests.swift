// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignEvents
import CountersignJSON
import Synchronization
import Testing

@testable import CountersignPage

/// A page server whose connections are arrays.
struct PageStage {
    let events = EventBoard()
    let server: PageServer
    let permitted = Shared<[PageServer.TrustRequest]>([])
    let time = Shared<Int64>(1000)

    final class Shared<Value: Sendable>: Sendable {
        private let box: Mutex<Value>
        init(_ value: Value) { box = Mutex(value) }
        var value: Value {
            get { box.withLock { $0 } }
            set { box.withLock { $0 = newValue } }
        }
    }

    static let document = Array("<!doctype html><style>a{}</style><script>let a</script>".utf8)

    init(unreadiness: String? = nil, script: String? = "function FindProxyForURL() {}") {
        let (permitted, time) = (permitted, time)
        let services = PageServer.Services(
            state: { Array(#"{"status":null}"#.utf8) }, metrics: { Array("up 1\n".utf8) },
            browserScript: { script.map { ("application/x-ns-proxy-autoconfig", Array($0.utf8)) } },
            unreadiness: { unreadiness },
            permit: { request in
                permitted.value += [request]
                return nil
            },
            approve: { id, answer in id == 3 && answer == "once" })
        server = PageServer(
            document: Self.document, events: events, services: services, random: { Randomness.bytes($0) },
            now: { time.value })
    }

    /// The response to a request whose lines end with CRLF. `limit`: after so many writes the peer is gone. `isClosed`:
    /// it has gone without being written to.
    func response(to request: String, limit: Int = .max, isClosed: Bool = false) -> String {
        let lines = Shared(request.split(separator: "\r\n", omittingEmptySubsequences: false).map { Array($0.utf8) })
        let output = Shared<[UInt8]>([])
        let writes = Shared(0)
        let connection = PageServer.Connection(
            readLine: {
                guard !lines.value.isEmpty else { return nil }
                return lines.value.removeFirst() + [UInt8(ascii: "\r")]
            },
            readContent: { count in
                let rest = Array(lines.value.joined(separator: Array("\r\n".utf8)))
                return rest.count >= count ? Array(rest.prefix(count)) : nil
            },
            write: { bytes in
                output.value += bytes
                writes.value += 1
                return writes.value < limit
            },
            isClosed: { isClosed }, end: {})
        let first = lines.value.removeFirst() + [UInt8(ascii: "\r")]
        server.serve(first, on: connection)
        return String(decoding: output.value, as: UTF8.self)
    }

    func status(of request: String) -> String {
        String(response(to: request).split(separator: " ").dropFirst().first ?? "")
    }

    /// A session from a new one-time token.
    func session() throws -> String {
        let token = server.makeToken()
        let response = response(
            to: "POST /session HTTP/1.1\r\nHost: countersign.localhost\r\nContent-Length: \(token.utf8.count)\r\n\r\n"
                + token)
        let content = try #require(response.split(separator: "\r\n\r\n").last)
        guard case .string(let session)? = try JSONParser.parse(Array(content.utf8))["session"]?.content else {
            throw Missing()
        }
        return session
    }

    struct Missing: Error {}
}

@Suite struct PageServerTests {
    @Test func thePageNamesItsOwnStyleAndScript() {
        let response = PageStage().response(to: "GET / HTTP/1.1\r\nHost: countersign.localhost\r\n\r\n")
        // printf 'a{}' | openssl dgst -sha256 -binary | base64
        #expect(response.contains("style-src 'sha256-\(Base64.encode(Digest.sha256.hash(Array("a{}".utf8))))'"))
        #expect(response.contains("script-src 'sha256-\(Base64.encode(Digest.sha256.hash(Array("let a".utf8))))'"))
        #expect(response.contains("default-src 'none'") && response.contains("frame-ancestors 'none'"))
        #expect(response.contains("\r\nCache-Control: no-store\r\n"))
        #expect(response.hasSuffix("<script>let a</script>"))
    }

    @Test(arguments: [
        ("GET /state HTTP/1.1\r\n\r\n", "401"), ("GET /events HTTP/1.1\r\n\r\n", "401"),
        ("POST /trust HTTP/1.1\r\n\r\n", "401"), ("POST /approve HTTP/1.1\r\n\r\n", "401"),
        ("GET /state HTTP/1.1\r\nCookie: session=x\r\n\r\n", "401"),
        ("GET /state HTTP/1.1\r\nAuthorization: Bearer \r\n\r\n", "401"),
        ("GET /nothing HTTP/1.1\r\n\r\n", "404"), ("POST / HTTP/1.1\r\n\r\n", "405"),
        ("DELETE /state HTTP/1.1\r\n\r\n", "405"), ("GET /metrics HTTP/1.1\r\n\r\n", "200"),
        ("GET /healthz HTTP/1.1\r\n\r\n", "200"), ("GET /readyz HTTP/1.1\r\n\r\n", "200"),
        ("HEAD / HTTP/1.1\r\n\r\n", "200"), ("GET /proxy.pac HTTP/1.1\r\n\r\n", "200"),
        ("POST /proxy.pac HTTP/1.1\r\n\r\n", "405"),
        ("GET /proxy.pac HTTP/1.1\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n\r\n", "403"),
        ("GET /metrics HTTP/1.1\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n\r\n", "403"),
        ("GET / HTTP/1.1\r\nSec-Fetch-Site: same-site\r\n\r\n", "403"),
        ("GET / HTTP/1.1\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n\r\n", "200"),
        ("GET /metrics HTTP/1.1\r\nSec-Fetch-Site: none\r\n\r\n", "200"),
        ("POST /session HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", "400"),
        ("POST /session HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "400"),
        ("POST /session HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nno colon\r\n\r\n", "400"), ("GET / HTTP/1.1\r\nHost: a", "400"),
    ])
    func aRequestWithoutASessionGetsNothingOfThePerson(request: String, status: String) {
        #expect(PageStage().status(of: request) == status)
    }

    /// It names the listed sites, so no page may run it as a script of its own.
    @Test func theScriptForBrowsersIsNoScriptForPages() {
        let response = PageStage().response(to: "GET /proxy.pac HTTP/1.1\r\n\r\n")
        #expect(response.contains("\r\nContent-Type: application/x-ns-proxy-autoconfig\r\n"))
        #expect(response.contains("\r\nX-Content-Type-Options: nosniff\r\n"))
        #expect(response.contains("\r\nCross-Origin-Resource-Policy: same-origin\r\n"))
        #expect(response.hasSuffix("\r\n\r\nfunction FindProxyForURL() {}"))
        #expect(PageStage(script: nil).status(of: "GET /proxy.pac HTTP/1.1\r\n\r\n") == "404")
    }

    @Test func readinessSaysWhatToDo() {
        let stage = PageStage(unreadiness: "the vault is locked: run `countersign vault unlock`")
        let response = stage.response(to: "GET /readyz HTTP/1.1\r\n\r\n")
        #expect(response.hasPrefix("HTTP/1.1 503 "))
        #expect(response.hasSuffix("the vault is locked: run `countersign vault unlock`\n"))
    }

    @Test func aTokenOpensThePageOnceAndForTwoMinutes() throws {
        let stage = PageStage()
        let token = stage.server.makeToken()
        func exchange(_ token: String) -> String {
            stage.status(
                of: "POST /session HTTP/1.1\r\nContent-Length: \(token.utf8.count)\r\n\r\n\(token)")
        }
        #expect(exchange(String(token.dropLast()) + (token.last == "A" ? "B" : "A")) == "403")
        #expect(exchange(token) == "200")
        #expect(exchange(token) == "403")
        let late = stage.server.makeToken()
        stage.time.value += PageTokens.tokenSeconds + 1
        #expect(exchange(late) == "403")
    }

    @Test func aSessionEndsTwelveHoursAfterItsLastRequest() throws {
        let stage = PageStage()
        let session = try stage.session()
        let request = "GET /state HTTP/1.1\r\nAuthorization: Bearer \(session)\r\n\r\n"
        for _ in 0..<3 {
            stage.time.value += PageTokens.sessionSeconds
            #expect(stage.status(of: request) == "200")
        }
        stage.time.value += PageTokens.sessionSeconds + 1
        #expect(stage.status(of: request) == "401")
    }

    @Test func theOldestOfManySessionsEnds() throws {
        let stage = PageStage()
        let sessions = try (0...PageTokens.limit).map { _ in try stage.session() }
        func status(_ session: String) -> String {
            stage.status(of: "GET /state HTTP/1.1\r\nAuthorization: Bearer \(session)\r\n\r\n")
        }
        #expect(status(sessions[0]) == "401")
        #expect(sessions.dropFirst().allSatisfy { status($0) == "200" })
    }

    @Test func eventsAreStreamedUntilTheReaderHasGone() throws {
        let stage = PageStage()
        let session = try stage.session()
        stage.events.tell(.paused)
        let teller = Task {
            while !Task.isCancelled {
                stage.events.tell(.resumed)
                await Task.yield()
            }
        }
        defer { teller.cancel() }
        let response = stage.response(
            to: "GET /events HTTP/1.1\r\nAuthorization: Bearer \(session)\r\n\r\n", limit: 3)
        #expect(response.contains("Content-Type: text/event-stream\r\n"))
        #expect(response.contains("event: resumed\ndata: {\"event\":\"resumed\""))
        #expect(!stage.events.isWatched)
    }

    @Test func aStreamWithoutEventsEndsWithItsReader() throws {
        let stage = PageStage()
        let session = try stage.session()
        let response = stage.response(
            to: "GET /events HTTP/1.1\r\nAuthorization: Bearer \(session)\r\n\r\n", isClosed: true)
        #expect(response.hasSuffix("\r\n\r\n: countersign.localhost\n\n"))
        #expect(!stage.events.isWatched)
    }

    @Test func aNewStreamEndsTheOldestOfMany() {
        let events = EventBoard()
        let streams = PageStreams(events)
        let ended = PageStage.Shared<[Int]>([])
        let begun = (0..<PageStreams.limit + 2).map { number in streams.begin { ended.value += [number] } }
        #expect(ended.value == [0, 1])
        events.tell(.paused)
        #expect(begun[0].reader.next(timeout: .seconds(60)) == nil)
        #expect(begun[2].reader.next(timeout: .seconds(60))?.count == 1)
        for stream in begun { streams.end(stream) }
        #expect(!events.isWatched)
    }

    @Test func aCertificateIsPermittedInASession() throws {
        let stage = PageStage()
        let session = try stage.session()
        let content = #"{"host":"printer.corp.example","port":443,"fingerprint":"sha256:00","allow":true}"#
        func post(_ content: String) -> String {
            stage.status(
                of: "POST /trust HTTP/1.1\r\nAuthorization: Bearer \(session)\r\n"
                    + "Content-Length: \(content.utf8.count)\r\n\r\n\(content)")
        }
        #expect(post(#"{"host":"printer.corp.example","port":70000,"fingerprint":"a","allow":true}"#) == "400")
        #expect(post(content.replacing("true", with: "false")) == "400")
        #expect(stage.permitted.value.isEmpty)
        #expect(post(content) == "200")
        #expect(
            stage.permitted.value == [
                PageServer.TrustRequest(host: "printer.corp.example", port: 443, fingerprint: "sha256:00")
            ])
    }

    @Test(arguments: [
        (#"{"id":3,"answer":"once"}"#, "200"), (#"{"id":4,"answer":"once"}"#, "409"),
        (#"{"id":-3,"answer":"once"}"#, "400"), (#"{"id":"3","answer":"once"}"#, "400"), ("", "400"),
    ])
    func aQuestionThatWaitsIsAnswered(content: String, status: String) throws {
        let stage = PageStage()
        let session = try stage.session()
        #expect(
            stage.status(
                of: "POST /approve HTTP/1.1\r\nAuthorization: Bearer \(session)\r\n"
                    + "Content-Length: \(content.utf8.count)\r\n\r\n\(content)") == status)
    }

    @Test(arguments: [
        ("GET /metrics HTTP/1.1\r", true), ("POST /session HTTP/1.0", true), (#"{"command":"status"}"#, false),
        ("GET http://a.example/ HTTP/1.1\r", false), ("GET /", false), ("", false), ("get / HTTP/1.1", false),
    ])
    func aRequestLineIsNoCommand(line: String, isOne: Bool) {
        #expect(PageServer.isRequestLine(Array(line.utf8)) == isOne)
    }
}
