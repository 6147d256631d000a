// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignHTTP1

@Suite struct RequestHeadTests {
    private static let whole =
        "GET /a?b=c HTTP/1.1\r\nHost: origin.example:8443\r\nX-Empty:\r\nX-Padded: \t two  words \t\r\n"
        + "authorization: Basic eA==\r\nX-Text: caf\u{E9}\tau lait\r\n\r\n"

    @Test func headKeepsTheReceivedBytes() throws {
        let parsed = try #require(try readRequest(Self.whole + "rest"))
        let head = parsed.head
        #expect(parsed.consumedBytes == octets(Self.whole).count)
        #expect(text(head.fields.bytes) == Self.whole)
        #expect(head.method == .get)
        #expect(head.methodText == "GET")
        #expect(head.target == "/a?b=c")
        #expect(text(head.targetBytes) == "/a?b=c")
        #expect(head.version == .http11)
        #expect(head.framing == .none)
        #expect(head.host == "origin.example:8443")
        let values = head.fields.lines.map { text(head.fields.valueBytes(of: $0)) }
        #expect(values == ["origin.example:8443", "", "two  words", "Basic eA==", "caf\u{E9}\tau lait"])
        #expect(head.fields.lines.map { head.fields.name(of: $0) }[2...] == ["X-Padded", "authorization", "X-Text"])
        #expect(head.fields.lines.map(\.known) == [.host, .other, .other, .authorization, .other])
    }

    @Test func everyPrefixIsIncomplete() throws {
        for count in 0..<octets(Self.whole).count {
            #expect(try readRequest(text(octets(Self.whole).prefix(count))) == nil, "after \(count) bytes")
        }
    }

    @Test(arguments: [
        ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", Method.options, "OPTIONS"),
        ("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n", .connect, "CONNECT"),
        ("get / HTTP/1.1\r\nHost: a\r\n\r\n", .other, "get"),
        ("X-!#$%&'*+.^_`|~9 / HTTP/1.1\r\nHost: a\r\n\r\n", .other, "X-!#$%&'*+.^_`|~9"),
        ("PATCH http://[::1]:80/ HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", .patch, "PATCH"),
        ("GET / HTTP/1.0\r\n\r\n", .get, "GET"),
        ("\r\nHEAD / HTTP/1.1\r\nHost: a\r\n\r\n", .head, "HEAD"),
        ("\r\n\r\nTRACE / HTTP/1.1\r\nHost: a\r\n\r\n", .trace, "TRACE"),
    ])
    func validRequestsAreAccepted(request: String, method: Method, name: String) throws {
        let parsed = try #require(try readRequest(request))
        #expect(parsed.consumedBytes == request.utf8.count)
        #expect(parsed.head.method == method)
        #expect(parsed.head.methodText == name)
    }

    @Test(arguments: Method.allCases.filter { $0 != .other })
    func methodNamesAreCaseSensitive(method: Method) throws {
        let request = "\(method.rawValue) / HTTP/1.1\r\nHost: a\r\n\r\n"
        #expect(try readRequest(request)?.head.method == method)
        let longer = "\(method.rawValue)X / HTTP/1.1\r\nHost: a\r\n\r\n"
        #expect(try readRequest(longer)?.head.method == .other)
    }

    @Test func safeAndIdempotentMethodsAreThoseOfTheStandard() {
        #expect(Method.allCases.filter(\.isSafe) == [.get, .head, .options, .trace])
        #expect(Method.allCases.filter(\.isIdempotent) == [.get, .head, .put, .delete, .options, .trace])
    }

    @Test(arguments: [
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", HTTP1Error.Code.bareLineFeed, 400),
        ("GET\n", .bareLineFeed, 400),
        ("GET /\n", .bareLineFeed, 400),
        ("\nGET / HTTP/1.1\r\n", .bareLineFeed, 400),
        ("\r\rGET / HTTP/1.1\r\n", .bareCarriageReturn, 400),
        ("\r\n\r\n\r\nGET / HTTP/1.1\r\n", .malformedRequestLine, 400),
        (" GET / HTTP/1.1\r\n", .malformedRequestLine, 400),
        ("GET  / HTTP/1.1\r\n", .malformedRequestLine, 400),
        ("GET /  HTTP/1.1\r\n", .malformedRequestLine, 400),
        ("GET / HTTP/1.1 \r\n", .malformedRequestLine, 400),
        ("GET\t/ HTTP/1.1\r\n", .malformedRequestLine, 400),
        ("GET /\tHTTP/1.1\r\n", .malformedRequestLine, 400),
        ("GET /a b HTTP/1.1\r\n", .malformedRequestLine, 400),
        ("GET /\r\n", .malformedRequestLine, 400),
        ("GET\r\n", .malformedRequestLine, 400),
        ("GET / \r\n", .malformedRequestLine, 400),
        ("GET / HTTP\r\n", .malformedRequestLine, 400),
        ("GET / http/1.1\r\n", .malformedRequestLine, 400),
        ("GET / HTTP/11\r\n", .malformedRequestLine, 400),
        ("GET / HTTP/1.10\r\n", .malformedRequestLine, 400),
        ("GET / HTTP/+.1\r\n", .malformedRequestLine, 400),
        ("GET / XTTP/1.1\r\n", .malformedRequestLine, 400),
        ("GET / HTTP/1.1\rX", .bareCarriageReturn, 400),
        ("G\u{0}T / HTTP/1.1\r\n", .malformedRequestLine, 400),
        ("G(T / HTTP/1.1\r\n", .malformedRequestLine, 400),
        ("G\u{C9}T / HTTP/1.1\r\n", .malformedRequestLine, 400),
        ("GET /\u{0} HTTP/1.1\r\n", .malformedRequestLine, 400),
        ("GET /\u{7F} HTTP/1.1\r\n", .malformedRequestLine, 400),
        ("GET /caf\u{E9}/of/more/than/eight HTTP/1.1\r\n", .malformedRequestLine, 400),
        ("\u{16}\u{3}\u{1}\u{2}\u{0}", .malformedRequestLine, 400),
        ("GET / HTTP/0.9\r\n", .unsupportedVersion, 505),
        ("GET / HTTP/1.2\r\n", .unsupportedVersion, 505),
        ("GET / HTTP/2.0\r\n", .unsupportedVersion, 505),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", .unsupportedVersion, 505),
        ("GET / HTTP/1.1\r\nHost: a\n\r\n", .bareLineFeed, 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", .bareLineFeed, 400),
        ("GET / HTTP/1.1\r\nHost\n", .bareLineFeed, 400),
        ("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", .bareCarriageReturn, 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n\rX", .bareCarriageReturn, 400),
        ("GET / HTTP/1.1\r\nHost: a\r\r\n", .bareCarriageReturn, 400),
        ("GET / HTTP/1.1\r\nX: a\r\n b\r\nHost: a\r\n\r\n", .obsoleteFolding, 400),
        ("GET / HTTP/1.1\r\nX: a\r\n\tb\r\nHost: a\r\n\r\n", .obsoleteFolding, 400),
        ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", .malformedField, 400),
        ("GET / HTTP/1.1\r\n\tHost: a\r\n\r\n", .malformedField, 400),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", .malformedField, 400),
        ("GET / HTTP/1.1\r\nHost\t: a\r\n\r\n", .malformedField, 400),
        ("GET / HTTP/1.1\r\n: a\r\n\r\n", .malformedField, 400),
        ("GET / HTTP/1.1\r\nHost\r\n\r\n", .malformedField, 400),
        ("GET / HTTP/1.1\r\nHo st: a\r\n\r\n", .malformedField, 400),
        ("GET / HTTP/1.1\r\nX(: a\r\n\r\n", .malformedField, 400),
        ("GET / HTTP/1.1\r\nX\u{0}: a\r\n\r\n", .malformedField, 400),
        ("GET / HTTP/1.1\r\nX\u{E9}: a\r\n\r\n", .malformedField, 400),
        ("GET / HTTP/1.1\r\nX: a\u{0}b\r\n\r\n", .malformedField, 400),
        ("GET / HTTP/1.1\r\nX: a\u{B}b\r\n\r\n", .malformedField, 400),
        ("GET / HTTP/1.1\r\nX: a\u{7F}b\r\n\r\n", .malformedField, 400),
        ("GET / HTTP/1.1\r\nX: a\r\n\r\n", .missingHost, 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", .duplicateHost, 400),
        ("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", .duplicateHost, 400),
        ("GET / HTTP/1.0\r\nHost: a/b\r\n\r\n", .invalidHost, 400),
    ])
    func ambiguityIsRefused(request: String, code: HTTP1Error.Code, status: Int) {
        let fault = requestError(request)
        #expect(fault?.code == code)
        #expect(fault?.statusHint == status)
        #expect(fault?.sender == .client)
    }

    /// RFC 3875 §4.1.18 maps `-` to `_`; some servers map every character that is not a letter or digit.
    @Test(arguments: [
        "Content_Length: 5", "content_length: 5", "CONTENT_LENGTH: 5", "cOnTeNt_LeNgTh: 5", "Content.Length: 5",
        "Transfer_Encoding: chunked", "transfer_encoding: chunked", "TRANSFER_ENCODING: identity",
        "Transfer~Encoding: chunked", "Transfer!Encoding: x",
    ])
    func namesThatCGIReadsAsFramingAreRefused(line: String) throws {
        for framing in ["", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"] {
            for lines in ["\(line)\r\n\(framing)", "\(framing)\(line)\r\n", "X: y\r\n\(framing)\(line)\r\n"] {
                let fault = requestError("POST / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n")
                #expect(fault?.code == .conflictingFraming, "\(lines)")
                #expect(fault?.statusHint == 400)
                #expect(fault?.sender == .client)
            }
        }
        #expect(bodyError("0\r\n\(line)\r\n\r\n", as: .chunked, step: 1) == .malformedTrailers)
    }

    @Test(arguments: [
        "ContentALength", "Content9Length", "Content_Lengths", "XContent_Length", "Content_Lengtz", "Content__Length",
        "Transfer_Encodinh", "Transfer0Encoding", "Transfer_Encodin", "Content_Type",
    ])
    func namesThatOnlyResembleFramingAreAccepted(name: String) throws {
        let head = try #require(
            try readRequest("GET / HTTP/1.1\r\nHost: a\r\n\(name): 5\r\n\r\n")?.head)
        #expect(head.fields.values(named: name) == ["5"])
        #expect(!head.hasBody)
    }

    @Test(arguments: ["a", "a:80", "A-b_c~.example.", "127.0.0.1:8080", "[::1]", "[::ffff:1.2.3.4]:65535"])
    func validHostsAreAccepted(host: String) throws {
        #expect(try readRequest("GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n")?.head.host == host)
    }

    @Test(arguments: [
        "", ":80", "a:", "a:65536", "a:123456", "a:8a", "a:+80", "a:80:80", "a b", "a,b", "a@b", "a/b", "a\\b", "a?b",
        "a#b",
        "a%2eb", "caf\u{E9}", "[::1", "[]", "[:]", "[g::1]", "[::1]a", "[::1]:", "[fe80::1%25lo]", "a\tb", "http://a",
    ])
    func invalidHostsAreRefused(host: String) {
        #expect(requestError("GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n")?.code == .invalidHost)
    }

    @Test(arguments: [
        ("HTTP/1.1\r\nHost: a\r\n\r\n", true),
        ("HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false),
        ("HTTP/1.1\r\nHost: a\r\nConnection: x ,\tCLOSE\r\n\r\n", false),
        ("HTTP/1.1\r\nHost: a\r\nConnection: x\r\nConnection: close\r\n\r\n", false),
        ("HTTP/1.1\r\nHost: a\r\nConnection: closed\r\n\r\n", true),
        ("HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", true),
        ("HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false),
    ])
    func clientDecidesAboutPersistence(rest: String, keepsAlive: Bool) throws {
        #expect(try readRequest("GET / " + rest)?.head.keepsAlive == keepsAlive)
    }

    @Test(arguments: [
        ("HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n\r\n", true),
        ("HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n", false),
        ("HTTP/1.0\r\nExpect: 100-continue\r\n\r\n", false),
    ])
    func expectationIsHonouredInHTTP11Only(rest: String, expects: Bool) throws {
        #expect(try readRequest("PUT / " + rest)?.head.expectsContinue == expects)
    }

    @Test(
        arguments: [
            ("HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "websocket"),
            ("HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: a/1, h2c\r\nUpgrade: b\r\n\r\n", "a/1, b"),
            ("HTTP/1.1\r\nHost: a\r\nConnection: upgrade, HTTP2-Settings\r\nUpgrade: H2C\r\n\r\n", nil),
            ("HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n", nil),
            ("HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n\r\n", nil),
            ("HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", nil),
        ] as [(String, String?)])
    func upgradeIsHonouredOnlyIfConnectionNamesIt(rest: String, upgrade: String?) throws {
        let head = try #require(try readRequest("GET / " + rest)?.head)
        #expect(head.upgrade == upgrade)
    }

    @Test func fieldNamesAreCaseInsensitiveAndKeepTheirOrder() throws {
        let fields = try #require(
            try readRequest("GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nCookie: u\r\nx-a: 2\r\ncOOKIE: v\r\n\r\n")
        ).head.fields
        #expect(fields.values(named: "X-a") == ["1", "2"])
        #expect(fields.values(of: .cookie) == ["u", "v"])
        #expect(fields.value(of: .cookie) == "u")
        #expect(fields.count(of: .cookie) == 2)
        #expect(!fields.contains(.authorization))
        #expect(fields.value(of: .authorization) == nil)
        #expect(fields.values(of: .via) == [])
    }

    /// The proxy looks up the destination again only if its spelling differs from that of the previous request.
    @Test(arguments: 1...41) func targetPrefixesAreComparedToTheLastOctet(count: Int) throws {
        let spelling = (0..<count).map { UInt8(ascii: "a") + UInt8($0 % 26) }
        let host = text(spelling)
        let head = try #require(try readRequest("GET \(host)/x HTTP/1.1\r\nHost: \(host)\r\n\r\n")?.head)
        #expect(head.target(after: spelling).map { text($0) } == "/x")
        #expect(head.fields.value(of: .host, equals: spelling))
        for place in spelling.indices {
            var other = spelling
            other[place] ^= 0x20
            #expect(head.target(after: other) == nil)
            #expect(!head.fields.value(of: .host, equals: other))
        }
    }

    @Test(arguments: [
        ("TRACE", true), ("trace", true), ("Trace", true), ("TRACK", true), ("track", true), ("TRACES", false),
        ("GET", false), ("XTRACE", false),
    ])
    func methodsWithWhichServersRepeatTheRequestAreKnown(method: String, isTrace: Bool) throws {
        let head = try #require(try readRequest("\(method) /a HTTP/1.1\r\nHost: o.example\r\n\r\n")).head
        #expect(head.isTrace == isTrace)
    }
}
