// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignHTTP2
import Testing

/// The rules of RFC 9113 §8.2 and §8.3 for requests: each case is a whole head, and nothing of a refused one is
/// reported as a request.
@Suite struct RequestFieldTests {
    /// A GET with `fields` in place of the pseudo-fields of the same name, and after them otherwise.
    private static func get(_ fields: Field...) -> [Field] { request("GET", fields) }

    private static func request(_ method: String, _ fields: [Field]) -> [Field] {
        let replaced = Set(fields.filter { $0.name.first == UInt8(ascii: ":") }.map(\.name))
        let base = Field.request(method).filter { !replaced.contains($0.name) }
        return fields.filter { replaced.contains($0.name) } + base + fields.filter { !replaced.contains($0.name) }
    }

    private static func without(_ name: String, _ more: Field...) -> [Field] {
        Field.get.filter { $0.name != Array(name.utf8) } + more
    }

    static let refused: [(String, [Field])] = [
        // §8.2: names
        ("upper case", get(Field("X-Upper", "1"))),
        ("upper case inside", get(Field("x-uPper", "1"))),
        ("empty name", get(Field("", "1"))),
        ("space in a name", get(Field("x y", "1"))),
        ("space after a name", get(Field("x ", "1"))),
        ("tab in a name", get(Field("x\ty", "1"))),
        ("colon in a name", get(Field("x:y", "1"))),
        ("colon after a name", get(Field("x:", "1"))),
        ("CR in a name", get(Field("x\ry", "1"))),
        ("LF in a name", get(Field("x\ny", "1"))),
        ("CR LF in a name", get(Field("x: 1\r\ny", "1"))),
        ("NUL in a name", get(Field("x\0", "1"))),
        ("DEL in a name", get(Field("x\u{7f}", "1"))),
        ("UTF-8 in a name", get(Field("xé", "1"))),
        ("quote in a name", get(Field("x\"", "1"))),
        // §8.2.1: values
        ("CR in a value", get(Field("x", "1\r2"))),
        ("LF in a value", get(Field("x", "1\n2"))),
        ("CR LF and a line in a value", get(Field("x", "1\r\ntransfer-encoding: chunked"))),
        ("the end of a head in a value", get(Field("x", "1\r\n\r\nGET /evil HTTP/1.1"))),
        ("NUL in a value", get(Field("x", "1\0"))),
        ("a control character in a value", get(Field("x", "1\u{1}"))),
        ("DEL in a value", get(Field("x", "1\u{7f}"))),
        ("white space before a value", get(Field("x", " 1"))),
        ("white space after a value", get(Field("x", "1 "))),
        ("a tab after a value", get(Field("x", "1\t"))),
        // §8.2.2: connection fields
        ("connection", get(Field("connection", "close"))),
        ("connection: keep-alive", get(Field("connection", "keep-alive"))),
        ("keep-alive", get(Field("keep-alive", "timeout=5"))),
        ("proxy-connection", get(Field("proxy-connection", "keep-alive"))),
        ("upgrade", get(Field("upgrade", "h2c"))),
        ("transfer-encoding", get(Field("transfer-encoding", "chunked"))),
        ("transfer-encoding: identity", get(Field("transfer-encoding", "identity"))),
        ("empty transfer-encoding", get(Field("transfer-encoding", ""))),
        ("transfer-encoding for CGI", get(Field("transfer_encoding", "chunked"))),
        ("content-length for CGI", get(Field("content_length", "5"))),
        ("te: gzip", get(Field("te", "gzip"))),
        ("te: trailers, deflate", get(Field("te", "trailers, deflate"))),
        // §8.3: pseudo-fields
        ("no :method", without(":method")),
        ("no :scheme", without(":scheme")),
        ("no :path", without(":path")),
        ("no :authority and no host", without(":authority")),
        ("empty :path", get(Field(":path", ""))),
        ("empty :method", get(Field(":method", ""))),
        ("empty :authority", get(Field(":authority", ""))),
        ("two :method", get(Field(":method", "GET"), Field(":method", "POST"))),
        ("two :path", get(Field(":path", "/"), Field(":path", "/"))),
        ("two :scheme", get(Field(":scheme", "https"), Field(":scheme", "https"))),
        ("two :authority", get(Field(":authority", "a.example"), Field(":authority", "a.example"))),
        ("late :path", without(":path", Field("x", "1"), Field(":path", "/"))),
        ("unknown pseudo-field", get(Field(":version", "1"))),
        (":status", get(Field(":status", "200"))),
        (":protocol without the setting", request("CONNECT", [Field(":protocol", "websocket")])),
        (":protocol with GET", get(Field(":protocol", "websocket"))),
        ("upper-case pseudo-field", without(":path", Field(":PATH", "/"))),
        // §8.3.1
        (":scheme http", get(Field(":scheme", "http"))),
        (":scheme ftp", get(Field(":scheme", "ftp"))),
        (":scheme in upper case", get(Field(":scheme", "HTTPS"))),
        ("space in :path", get(Field(":path", "/a b"))),
        ("version in :path", get(Field(":path", "/ HTTP/1.1"))),
        ("CR LF in :path", get(Field(":path", "/\r\nx: 1"))),
        ("NUL in :path", get(Field(":path", "/\0"))),
        ("fragment in :path", get(Field(":path", "/a#b"))),
        ("UTF-8 in :path", get(Field(":path", "/é"))),
        ("DEL in :path", get(Field(":path", "/\u{7f}"))),
        (":path without slash", get(Field(":path", "a"))),
        (":path is a URL", get(Field(":path", "https://b.example/"))),
        (":path * with GET", get(Field(":path", "*"))),
        ("space in :method", get(Field(":method", "GET /evil"))),
        ("CR LF in :method", get(Field(":method", "GET / HTTP/1.1\r\nx: "))),
        ("space in :authority", get(Field(":authority", "a.example b"))),
        ("CR LF in :authority", get(Field(":authority", "a.example\r\nx: 1"))),
        ("slash in :authority", get(Field(":authority", "a.example/b"))),
        ("user in :authority", get(Field(":authority", "user@a.example"))),
        ("port beyond 65535 in :authority", get(Field(":authority", "a.example:65536"))),
        ("comma in :authority", get(Field(":authority", "a.example,b.example"))),
        ("host differs", get(Field("host", "b.example"))),
        ("host differs in the port", get(Field("host", "a.example:8443"))),
        ("two hosts", get(Field("host", "a.example"), Field("host", "a.example"))),
        ("two hosts without :authority", without(":authority", Field("host", "a.example"), Field("host", "b.example"))),
        ("host is a list", without(":authority", Field("host", "a.example, b.example"))),
        ("empty host", without(":authority", Field("host", ""))),
        // §8.5
        ("CONNECT", [Field(":method", "CONNECT"), Field(":authority", "a.example:443")]),
        ("CONNECT with a path", request("CONNECT", [])),
        // §8.1.1
        ("content-length twice", get(Field("content-length", "0"), Field("content-length", "0"))),
        ("content-length as a list", get(Field("content-length", "0, 0"))),
        ("content-length with a sign", get(Field("content-length", "+0"))),
        ("negative content-length", get(Field("content-length", "-1"))),
        ("empty content-length", get(Field("content-length", ""))),
        ("hexadecimal content-length", get(Field("content-length", "0x0"))),
        ("content-length with leading zeros", get(Field("content-length", "00"))),
        ("content-length beyond 2^63", get(Field("content-length", "18446744073709551616"))),
        ("content-length with END_STREAM", get(Field("content-length", "5"))),
    ]

    @Test(arguments: refused)
    func isRefused(_ name: String, _ fields: [Field]) {
        let server = UnderTest(.server)
        server.send(.headers(1, fields))
        let replies = server.replies()
        #expect(replies.map(\.type) == [3], "RST_STREAM and nothing else")
        #expect(replies.first?.payload == Frame.octets(HTTP2ErrorCode.protocolError.rawValue))
        #expect(server.recorder.requests.isEmpty)
        server.send(.headers(3, Field.get))
        #expect(server.recorder.events.contains("3 request GET /"), "the connection goes on")
    }

    static let accepted: [(String, [Field], [String])] = [
        ("GET", Field.get, ["Host: a.example"]),
        ("a port", get(Field(":authority", "a.example:8443")), ["Host: a.example:8443"]),
        ("equal host", get(Field("host", "a.example")), ["Host: a.example"]),
        ("equal host in upper case", get(Field("host", "A.EXAMPLE")), ["Host: a.example"]),
        ("only host", without(":authority", Field("host", "b.example")), ["Host: b.example"]),
        ("te: trailers", get(Field("te", "trailers")), ["Host: a.example", "Te: trailers"]),
        (
            "cookies are joined", get(Field("cookie", "a=1"), Field("x", "y"), Field("cookie", "b=2")),
            ["Host: a.example", "X: y", "Cookie: a=1; b=2"]
        ),
        ("an empty value", get(Field("x", "")), ["Host: a.example", "X: "]),
        ("a colon in a value", get(Field("x", ": 1")), ["Host: a.example", "X: : 1"]),
        ("length 0", get(Field("content-length", "0")), ["Host: a.example", "Content-Length: 0"]),
        ("a tab in a value", get(Field("x", "1\t2")), ["Host: a.example", "X: 1\t2"]),
        ("any method", request("BREW", []), ["Host: a.example"]),
        ("* with OPTIONS", request("OPTIONS", [Field(":path", "*")]), ["Host: a.example"]),
        ("repeated fields", get(Field("x", "1"), Field("x", "2")), ["Host: a.example", "X: 1", "X: 2"]),
    ]

    @Test(arguments: accepted)
    func isAccepted(_ name: String, _ fields: [Field], _ lines: [String]) throws {
        let server = UnderTest(.server)
        server.send(.headers(1, fields))
        let request = try #require(server.recorder.requests[1])
        let read = request.fields.lines.map { "\(request.fields.name(of: $0)): \(request.fields.value(of: $0))" }
        #expect(read == lines)
        #expect(server.replies().isEmpty)
    }

    @Test func octetsBeyondASCIIAreKept() throws {
        let server = UnderTest(.server)
        server.send(.headers(1, Self.get(Field("x", octets: [0xE9, 0x80, 0xFF]))))
        let request = try #require(server.recorder.requests[1])
        let line = try #require(request.fields.lines.last)
        #expect(Array(request.fields.valueBytes(of: line)) == [0xE9, 0x80, 0xFF])
    }

    @Test func fieldThatIsNeverIndexedIsNamed() throws {
        let server = UnderTest(.server)
        var token = Field("x-token", "secret")
        token.isNeverIndexed = true
        server.send(.headers(1, Self.get(token)))
        #expect(server.recorder.streams[1]?.neverIndexed == [Array("x-token".utf8)])
    }

    @Test func refusedHeadCanBeAnswered() throws {
        let server = UnderTest(.server)
        server.recorder.onRefusal = { stream in
            stream.send(status: 431, fields: [], contentLength: 0, endsStream: true)
        }
        let large = (0..<70).map { Field("x-\($0)", String(repeating: "y", count: 1000)) }
        let block = (Field.get + large).flatMap(\.literal)
        server.send(.headers(1, block: Array(block.prefix(16_000)), ends: true, isWhole: false))
        for start in stride(from: 16_000, to: block.count, by: 16_000) {
            let end = min(start + 16_000, block.count)
            server.send(.continuation(1, Array(block[start..<end]), isWhole: end == block.count))
        }
        let replies = server.replies()
        #expect(server.recorder.events == ["1 refused 431 head of more than 65536 bytes", "1 ended complete"])
        #expect(replies.map(\.type) == [1])
        #expect(server.fields(replies[0]).map(\.description) == [":status: 431", "content-length: 0"])
    }
}
