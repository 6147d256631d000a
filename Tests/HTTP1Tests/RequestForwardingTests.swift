// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignHTTP1

@Suite struct RequestForwardingTests {
    private func forward(_ request: String, _ change: (inout RequestForwarding) -> Void = { _ in }) throws -> String {
        let head = try #require(try readRequest(request)).head
        var forwarding = RequestForwarding(
            target: head.targetBytes, host: head.host ?? "origin.example", framing: head.framing)
        change(&forwarding)
        return text(head.forwarded(forwarding))
    }

    @Test func hostIsFirstAndOtherLinesAreUnchangedAndInOrder() throws {
        let sent = try forward(
            "GET http://origin.example/a?b HTTP/1.1\r\nX-A:1\r\nHost: other.example\r\n"
                + "Cookie:  a=b\t\r\nx-a: caf\u{E9}\r\n\r\n"
        ) {
            $0.target = octets("/a?b")[...]
            $0.host = "origin.example"
            $0.via = ViaField("1.1 countersign")
        }
        #expect(
            sent == "GET /a?b HTTP/1.1\r\nHost: origin.example\r\nX-A:1\r\nCookie:  a=b\t\r\nx-a: caf\u{E9}\r\n"
                + "Via: 1.1 countersign\r\n\r\n")
    }

    /// The target is a suffix of the received one, Host is first and correct, and Content-Length is that of the
    /// forwarded body.
    @Test(arguments: [
        (
            "POST http://o.example/a?b HTTP/1.1\r\nhOST: o.example\r\ncontent-length: 7\r\nX: 1\r\n\r\n",
            "POST /a?b HTTP/1.1\r\nhOST: o.example\r\ncontent-length: 7\r\nX: 1\r\n\r\n"
        ),
        (
            "POST http://o.example/ HTTP/1.1\r\nHost: o.example\r\nTE: a\r\nContent-Length: 0\r\nX: 1\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: o.example\r\nContent-Length: 0\r\nX: 1\r\n\r\n"
        ),
        (
            "GET http://o.example/a HTTP/1.1\r\nHost: p.example\r\nX: 1\r\n\r\n",
            "GET /a HTTP/1.1\r\nHost: o.example\r\nX: 1\r\n\r\n"
        ),
        (
            "GET http://o.example/a HTTP/1.1\r\nX: 1\r\nHost: o.example\r\nY: 2\r\n\r\n",
            "GET /a HTTP/1.1\r\nHost: o.example\r\nX: 1\r\nY: 2\r\n\r\n"
        ),
        (
            "GET http://o.example/a HTTP/1.1\r\nHost: O.example\r\n\r\n",
            "GET /a HTTP/1.1\r\nHost: o.example\r\n\r\n"
        ),
        (
            "GET http://o.example/a HTTP/1.0\r\nHost: o.example\r\nX: 1\r\n\r\n",
            "GET /a HTTP/1.1\r\nHost: o.example\r\nX: 1\r\n\r\n"
        ),
    ])
    func correctLinesAreForwardedUnchanged(came: String, sent: String) throws {
        let head = try #require(try readRequest(came)).head
        let target = try #require(head.target(after: octets("http://o.example")))
        let forwarding = RequestForwarding(target: target, host: "o.example", framing: head.framing)
        #expect(text(head.forwarded(forwarding)) == sent)
    }

    /// White space that recipients interpret differently is not forwarded.
    @Test(arguments: [
        "Host:\to.example", "Host: o.example\t", "Host:o.example", "Host:  o.example", "Host: o.example ",
    ])
    func hostWithUnusualWhiteSpaceIsRewritten(line: String) throws {
        let sent = try forward("GET / HTTP/1.1\r\n\(line)\r\nX: 1\r\n\r\n") { $0.host = "o.example" }
        #expect(sent == "GET / HTTP/1.1\r\nHost: o.example\r\nX: 1\r\n\r\n")
    }

    @Test(arguments: ["Content-Length:7", "Content-Length:  7", "Content-Length: 7 "])
    func contentLengthWithUnusualWhiteSpaceIsRewritten(line: String) throws {
        let sent = try forward("POST / HTTP/1.1\r\nHost: a\r\n\(line)\r\nX: 1\r\n\r\n")
        #expect(sent == "POST / HTTP/1.1\r\nHost: a\r\nX: 1\r\nContent-Length: 7\r\n\r\n")
    }

    /// The target ends at the same offset as the received one, but has other bytes.
    @Test func otherTargetOfTheSameEndIsWritten() throws {
        let head = try #require(try readRequest("GET /abc HTTP/1.1\r\nHost: a\r\n\r\n")).head
        let other = octets("GET /xyz HTTP/1.1\r\nHost: a\r\n\r\n")
        let forwarding = RequestForwarding(target: other[head.targetRange], host: "a", framing: .none)
        #expect(text(head.forwarded(forwarding)) == text(other))
    }

    @Test(arguments: [
        "Connection: x-hop, X-Other", "Connection: close", "Proxy-Connection: keep-alive", "Keep-Alive: timeout=5",
        "TE: trailers", "Trailer: X-Sum", "Upgrade: websocket", "Proxy-Authorization: Basic eA==",
        "Proxy-Authenticate: Basic", "Proxy-Authentication-Info: a", "Expect: 100-continue",
        "Countersign-Trust: sha256:00", "X-HOP: 1", "x-other: 2",
    ])
    func hopByHopFieldsAreRemoved(line: String) throws {
        let sent = try forward(
            "GET / HTTP/1.1\r\nHost: a\r\nX-Before: 1\r\n\(line)\r\nConnection: x-hop , ,X-Other\r\nX-After: 2\r\n\r\n")
        #expect(sent == "GET / HTTP/1.1\r\nHost: a\r\nX-Before: 1\r\nX-After: 2\r\n\r\n")
    }

    @Test func connectionCannotRemoveEndToEndFields() throws {
        let kept = "Authorization: Basic eA==\r\nCookie: a=b\r\nDate: x\r\nMax-Forwards: 3\r\nVia: 1.1 b\r\n"
        let sent = try forward(
            "GET / HTTP/1.1\r\nHost: a\r\n"
                + "Connection: authorization, host, cookie, date, max-forwards, via, content-length\r\n"
                + kept + "\r\n")
        #expect(sent == "GET / HTTP/1.1\r\nHost: a\r\n" + kept + "\r\n")
    }

    @Test func connectionCannotRemoveInterpretedFields() throws {
        let fields = try #require(
            try readRequest(
                "GET / HTTP/1.1\r\nHost: a\r\nConnection: authorization, x-hop\r\n"
                    + "Authorization: b\r\nX-Hop: c\r\n\r\n")
        ).head.fields
        let options = ConnectionOptions.of(fields)
        #expect(fields.lines.map { options.name($0.name, in: fields) } == [false, false, false, true])
    }

    @Test func clientsAuthorizationIsForwardedUnlessItIsReplaced() throws {
        let request =
            "GET / HTTP/1.1\r\nHost: a\r\nauthorization:NTLM  TlRM\r\nX: 1\r\nAuthorization: Basic eA==\r\n\r\n"
        #expect(
            try forward(request)
                == "GET / HTTP/1.1\r\nHost: a\r\nauthorization:NTLM  TlRM\r\nX: 1\r\nAuthorization: Basic eA==\r\n\r\n")
        #expect(
            try forward(request) { $0.authorization = FieldText("Digest username=\"\u{FC}\"") }
                == "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nAuthorization: Digest username=\"\u{C3}\u{BC}\"\r\n\r\n")
    }

    @Test(arguments: [
        (BodyFraming.none, ""), (.length(0), "Content-Length: 0\r\n"), (.length(7), "Content-Length: 7\r\n"),
        (.chunked, "Transfer-Encoding: chunked\r\n"),
    ])
    func framingIsRewritten(framing: BodyFraming, line: String) throws {
        for came in ["Content-Length: 9\r\n", "Transfer-Encoding: Chunked\r\nTrailer: a\r\n", ""] {
            let sent = try forward("POST / HTTP/1.1\r\nHost: a\r\n\(came)\r\n") { $0.framing = framing }
            #expect(sent == "POST / HTTP/1.1\r\nHost: a\r\n\(line)\r\n")
        }
    }

    @Test func expectAndMaxForwardsAreForwardedOrReplaced() throws {
        let request = "TRACE / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nMax-Forwards: 7\r\n\r\n"
        #expect(
            try forward(request) { $0.keepsExpect = true }
                == "TRACE / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nMax-Forwards: 7\r\n\r\n")
        #expect(
            try forward(request) { $0.maxForwards = 6 } == "TRACE / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 6\r\n\r\n")
    }

    @Test func upgradeIsForwardedOnlyOnRequestAndNeverForH2C() throws {
        let request =
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket, h2c\r\n"
            + "Sec-WebSocket-Key: x\r\n\r\n"
        #expect(try forward(request) == "GET / HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Key: x\r\n\r\n")
        #expect(
            try forward(request) { $0.connection = .upgrade }
                == "GET / HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Key: x\r\nConnection: upgrade\r\n"
                + "Upgrade: websocket\r\n\r\n"
        )
        let h2c =
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
            + "HTTP2-Settings: A\r\n\r\n"
        #expect(try forward(h2c) { $0.connection = .upgrade } == "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(
            try forward(h2c) { $0.connection = .close } == "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    }

    @Test func http10IsForwardedAs11() throws {
        #expect(
            try forward("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                == "GET / HTTP/1.1\r\nHost: origin.example\r\n\r\n")
    }

    @Test(arguments: 0...UInt8.max)
    func controlCharactersAreReplaced(octet: UInt8) throws {
        let value = "a" + String(Unicode.Scalar(octet)) + "b"
        let sent = try forward("GET / HTTP/1.1\r\nHost: a\r\n\r\n") {
            $0.target = [0x2F, octet, 0x62][...]
            $0.host = "h" + String(Unicode.Scalar(octet))
            $0.authorization = FieldText(value)
            $0.via = ViaField(value)
        }
        #expect(sent.unicodeScalars.filter { $0 == "\n" }.count == 5)
        #expect(sent.unicodeScalars.filter { $0 == "\r" }.count == 5)
        #expect(
            !sent.unicodeScalars.contains { $0.value < 0x20 && !["\r", "\n", "\t"].contains($0) || $0 == "\u{7F}" })
        if octet == 0x20 { #expect(sent.hasPrefix("GET /%20b HTTP/1.1\r\n")) }
        if octet == 0xE9 { #expect(sent.hasPrefix("GET /%E9b HTTP/1.1\r\n")) }
    }

    /// The memory is as long as the head, slightly longer or slightly shorter.
    @Test func headThatDoesNotFitReturnsItsLength() throws {
        let head = try #require(try readRequest("GET /a HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n\r\n")).head
        let forwarding = RequestForwarding(
            target: [0x2F][...], host: "a", framing: .none, authorization: LongField())
        let whole = head.forwarded(forwarding)
        #expect(whole.count > head.forwardedSize(forwarding) + 1000)
        for size in [0, 1, whole.count - 1, whole.count, whole.count + 1] {
            var room = [UInt8](repeating: 0, count: size)
            let count = room.withUnsafeMutableBytes { head.write(forwarding, into: $0) }
            #expect(count == whole.count)
            if size >= count { #expect(Array(room.prefix(count)) == whole) }
        }
    }

    @Test(arguments: [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /x HTTP/1.1\r\nX-A: 1\r\nHost: a:8080\r\nContent-Length: 12\r\nCookie: a\r\n"
            + "Connection: x-b\r\nX-B: 1\r\n\r\n",
        "PUT * HTTP/1.1\r\nhost:[::1]\r\nTransfer-Encoding: chunked\r\nAuthorization: x\r\nEmpty:\r\n\r\n",
        "FOO / HTTP/1.0\r\nHost: a\r\nContent-Length: 0\r\nKeep-Alive: 1\r\nObs: \u{FF}\r\n\r\n",
    ])
    func forwardedHeadsAreStable(request: String) throws {
        let once = try forward(request)
        let parsed = try #require(try readRequest(once))
        #expect(parsed.consumedBytes == octets(once).count)
        #expect(try forward(once) == once)
    }

    /// Whether the proxy examines the cause of a request.
    @Test(arguments: [
        ("User-Agent: curl/8\r\nAccept: */*", false), ("", false), ("Sec-Fetch-Dest: empty", false),
        ("User-Agent: Mozilla/5.0 (X11)", true), ("user-agent: Mozilla/", true), ("User-Agent: Mozilla", false),
        ("X-Agent-10: Mozilla/5.0", false), ("ORIGIN: null", true), ("referer:a", true), ("Sec-Fetch-Site: none", true),
        ("Sec-Fetch-Mode: cors", true), ("Origin2: a", false), ("Accept: Mozilla/5.0", false),
    ])
    func browsersNameTheCauseOfARequest(field: String, expected: Bool) throws {
        let text = "GET / HTTP/1.1\r\nHost: a\r\n\(field)\(field.isEmpty ? "" : "\r\n")\r\n"
        #expect(try #require(try readRequest(text)).head.fields.mayNameCause == expected)
    }

    /// Servers that hand fields on as variables take `_` for `-` (RFC 3875 §4.1.18).
    @Test(arguments: ["X-Original-URL", "x-original-url", "X_ORIGINAL_URL", "X-Original_Url"])
    func aFieldThatIsLeftOutIsLeftOutInEverySpelling(name: String) throws {
        let sent = try forward("GET /a HTTP/1.1\r\nHost: o.example\r\n\(name): /b\r\nX-Original-URLs: c\r\n\r\n") {
            $0.omitted = ["X-Original-URL"]
        }
        #expect(sent == "GET /a HTTP/1.1\r\nHost: o.example\r\nX-Original-URLs: c\r\n\r\n")
    }
}

private struct FieldText: SecretFieldValue {
    let text: String

    init(_ text: String) { self.text = text }

    var byteCount: Int { text.utf8.count }

    func forEachPart(_ write: (UnsafeRawBufferPointer) -> Void) {
        Array(text.utf8).withUnsafeBytes { write($0) }
    }
}

/// Longer than it says.
private struct LongField: SecretFieldValue {
    var byteCount: Int { 0 }

    func forEachPart(_ write: (UnsafeRawBufferPointer) -> Void) {
        [UInt8](repeating: 0x78, count: 2000).withUnsafeBytes { write($0) }
    }
}
