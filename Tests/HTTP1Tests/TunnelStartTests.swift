// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignHTTP1

/// The protocol of a tunnel, from the client's first bytes.
@Suite struct TunnelStartTests {
    private static func start(_ text: String) -> TunnelStart { TunnelStart(octets(text).span.bytes) }

    static let rows: [(String, TunnelStart)] = [
        ("", .undecided),
        // Requests.
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", .http), ("GET / HTTP/1.0\r\n", .http),
        ("OPTIONS * HTTP/1.1\r\n", .http), ("CONNECT a:1 HTTP/1.1\r\n", .http),
        ("GET http://a.example/ HTTP/1.1\r\n", .http), ("PROPFIND /dav HTTP/1.1\r\n", .http),
        ("M-SEARCH * HTTP/1.1\r\n", .http), ("FOO / HTTP/1.9\r\n", .http), ("FOO / HTTP/1.1\n", .http),
        // Malformed requests, which are refused.
        ("GET / HTTP/1.1\n", .http), ("GET /\r\n", .http), ("GET\r\n", .http), ("GET\n", .http), ("GET\t/", .http),
        ("GET / HTTP/2.0\r\n", .http), ("GET  /  HTTP/1.1\r\n", .http), ("POST /\u{1}", .http),
        ("GET / HTTP/1.1\u{0}", .http), ("PUT /\u{E4} HTTP/1.1\r\n", .http), ("HEAD / SIP\r\n", .http),
        ("GET /\(String(repeating: "a", count: 17_000))", .http),
        // The beginning of a request.
        ("G", .beginsRequest), ("GET", .beginsRequest), ("P", .beginsRequest), ("OPTION", .beginsRequest),
        ("GET ", .beginsRequest), ("GET / HTTP/1.1", .beginsRequest), ("GET /\u{E4}", .beginsRequest),
        ("DELETE x", .beginsRequest),
        ("GET /\(String(repeating: "a", count: 16_000))", .beginsRequest),
        // The beginning of something else, or of a request with another method.
        ("PROPFIND", .undecided), ("PROPFIND /dav HTTP/1.1", .undecided), ("GETS", .undecided), ("get", .undecided),
        ("JDWP-Handshake", .undecided), ("PR", .undecided),
        // TLS, of every version.
        ("\u{16}", .tls), ("\u{16}\u{3}\u{1}\u{2}\u{0}", .tls), ("\u{16}GET / HTTP/1.1\r\n", .tls),
        // Other protocols.
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", .other), ("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", .other),
        ("SSH-2.0-libssh\r\n", .other), ("EHLO mail.example\r\n", .other), ("HELO a b\r\n", .other),
        ("\u{5}\u{1}\u{0}", .other), ("\u{4}\u{1}\u{0}\u{50}", .other), ("*1\r\n$4\r\nPING\r\n", .other),
        ("PING\r\n", .other), ("\u{0}\u{0}\u{0}\u{8}\u{4}\u{D2}\u{16}\u{2F}", .other), (" GET / HTTP/1.1\r\n", .other),
        ("\r\nGET / HTTP/1.1\r\n", .other), ("\r", .other), ("<stream:stream", .other), ("/selector\r\n", .other),
        ("\u{80}\u{2E}\u{1}\u{3}\u{1}", .other), ("\u{15}\u{3}\u{1}", .other), ("\u{FF}", .other),
        ("OPTIONS rtsp://a/ RTSP/1.0\r\n", .other), ("OPTIONS sip:a SIP/2.0\r\n", .other),
        ("OPTIONS icap://a/ ICAP/1.0\r\n", .other), ("DESCRIBE rtsp://a/ RTSP/1.0\r\n", .other),
        ("get / HTTP/2.0\r\n", .other), ("FOO / HTTP/1.x\r\n", .other), ("FOO / HTTP/1.11\r\n", .other),
        ("FOO\u{0}", .other), ("FOO \u{0}", .other), ("GETS\t/ HTTP/1.1\r\n", .other), ("FOO / http/1.1\r\n", .other),
        (String(repeating: "a", count: 17_000), .other), ("a \(String(repeating: "a", count: 17_000))", .other),
    ]

    @Test(arguments: rows) func theFirstBytesDecide(_ text: String, _ expected: TunnelStart) {
        #expect(Self.start(text) == expected, "\(text.debugDescription.prefix(60))")
    }

    /// However the bytes arrive, the result is the same: a decision is final, and the beginning of a request is never
    /// taken for another protocol that could be forwarded, apart from those that look like HTTP up to their version.
    @Test(arguments: rows) func moreBytesChangeNoDecision(_ text: String, _ whole: TunnelStart) {
        var decided: TunnelStart?
        for count in 0..<min(octets(text).count, 100) {
            let start = TunnelStart(Array(octets(text)[...count]).span.bytes)
            if let decided { #expect(start == decided, "\(text.debugDescription) at \(count)") }
            if start != .undecided, start != .beginsRequest { decided = start }
        }
        if let decided { #expect(decided == whole) }
    }

    @Test func everyMethodBeginsARequest() {
        for method in Method.allCases where method != .other {
            for count in 1...method.rawValue.utf8.count {
                #expect(Self.start(String(method.rawValue.prefix(count))) == .beginsRequest)
            }
            #expect(Self.start("\(method.rawValue) ") == .beginsRequest)
        }
    }

    /// Nothing that could be read as a request, apart from empty lines before it, gets into a blind tunnel; and what is
    /// decided stays so when more bytes arrive.
    @Test func almostValidRequestsAreDecidedOnce() {
        var mutation = Mutation(of: Mutation.requests, seed: 9)
        for _ in 0..<20_000 {
            let bytes = mutation.next()
            let whole = TunnelStart(bytes.span.bytes)
            let head = (try? RequestHead.parse(bytes.span.bytes)) ?? nil
            #expect(head == nil || bytes.first == 0x0D || whole == .http, "\(text(bytes).debugDescription)")
            let part = TunnelStart(Array(bytes.prefix(1 + bytes.count / 3)).span.bytes)
            let isDecided = part != .undecided && part != .beginsRequest
            #expect(!isDecided || part == whole, "\(text(bytes).debugDescription)")
        }
    }

    @Test func aRequestThatIsReadIsHTTP() throws {
        for method in ["GET", "BREW", "VERSION-CONTROL", "a!#$%&'*+-.^_`|~9"] {
            let text = "\(method) /x?y HTTP/1.1\r\nHost: a\r\n\r\n"
            #expect(try readRequest(text) != nil)
            #expect(Self.start(text) == .http)
        }
    }
}
