// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignHTTP1

@Suite struct ResponseForwardingTests {
    private func forward(
        _ response: String, _ framing: BodyFraming, _ connection: ConnectionOption = .keepAlive,
        _ change: (inout ResponseChanges) -> Void = { _ in }
    ) throws -> String {
        let head = try #require(try readResponse(response)).head
        var changes = ResponseChanges()
        change(&changes)
        return text(head.forwarded(changes, framing: framing, connection: connection))
    }

    @Test func challengesAreForwardedUnchangedAndInOrder() throws {
        let lines =
            "WWW-Authenticate:Negotiate\r\nServer: x\r\nwww-authenticate:  NTLM \t\r\n"
            + "WWW-Authenticate: Basic realm=\"caf\u{E9}\"\r\n"
            + "Authentication-Info: a\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nDate: d\r\n"
        let sent = try forward("HTTP/1.0 401 Nein \u{E9}\r\n\(lines)Content-Length: 5\r\n\r\n", .length(5)) {
            $0.via = ViaField("1.1 countersign")
            $0.extraFields = [("Proxy-Status", "countersign; details=\"a\"")]
        }
        #expect(
            sent == "HTTP/1.1 401 Nein \u{E9}\r\n\(lines)Content-Length: 5\r\n"
                + "Proxy-Status: countersign; details=\"a\"\r\nVia: 1.1 countersign\r\n\r\n")
    }

    @Test func pagesOfOtherOriginsAreKeptOut() throws {
        let response =
            "HTTP/1.1 200 OK\r\nA: 1\r\naccess-control-ALLOW-origin: *\r\nAccess-Control-Allow-Credentials: true\r\n"
            + "Access-Control-Allow-Origin:null\r\nB: 2\r\n"
        let kept =
            "HTTP/1.1 200 OK\r\nA: 1\r\nAccess-Control-Allow-Credentials: true\r\nB: 2\r\nContent-Length: 0\r\n\r\n"
        #expect(try forward("\(response)\r\n", .length(0)) { $0.dropsAllowOrigin = true } == kept)
        #expect(try forward("\(response)\r\n", .length(0)) == "\(response)Content-Length: 0\r\n\r\n")
    }

    @Test(arguments: [
        ("Access-Control-Allow-Origin: https://a\r\nAccess-Control-Allow-Credentials: true", true),
        ("access-control-allow-origin:https://a\r\nACCESS-CONTROL-ALLOW-CREDENTIALS:true", true),
        ("Access-Control-Allow-Origin: https://a\r\nAccess-Control-Allow-Credentials: True", false),
        ("Access-Control-Allow-Origin: https://a, https://a\r\nAccess-Control-Allow-Credentials: true", false),
        ("Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Credentials: true", false),
        ("Access-Control-Allow-Origin: https://a", false), ("Access-Control-Allow-Credentials: true", false),
        (
            "Access-Control-Allow-Origin: https://a\r\nAccess-Control-Allow-Credentials: true\r\n"
                + "Access-Control-Allow-Origin: https://a",
            false
        ),
    ])
    func anOriginIsPermittedByItsExactName(fields: String, expected: Bool) throws {
        let head = try #require(try readResponse("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n")).head
        #expect(head.fields.allowsCredentials(to: "https://a") == expected)
    }

    @Test(arguments: [
        "Connection: close", "Proxy-Connection: close", "Keep-Alive: timeout=5", "TE: trailers", "Trailer: X-Sum",
        "Transfer-Encoding: chunked", "Content-Length: 5", "Upgrade: TLS/1.3", "Proxy-Authenticate: Basic",
        "Proxy-Authentication-Info: a", "Proxy-Authorization: b", "X-HOP: 1",
    ])
    func hopByHopFieldsAreRemoved(line: String) throws {
        let sent = try forward(
            "HTTP/1.1 407 X\r\nA: 1\r\n\(line)\r\nConnection: x-hop, www-authenticate\r\n"
                + "WWW-Authenticate: Basic\r\n\r\n",
            .chunked)
        #expect(sent == "HTTP/1.1 407 X\r\nA: 1\r\nWWW-Authenticate: Basic\r\nTransfer-Encoding: chunked\r\n\r\n")
    }

    @Test func anOriginCannotSpeakForTheProxy() throws {
        let kept = "Proxy-Status: squid; error=x\r\nA: 1\r\nPROXY-STATUS:b;details=\"countersign\"\r\n"
        let sent = try forward(
            "HTTP/1.1 200 X\r\nproxy-status: a, countersign; details=\"answered\"\r\n\(kept)"
                + "Proxy-Status: x; y=\", countersign\r\n\r\n", .chunked
        ) { $0.extraFields = [("Proxy-Status", "countersign; details=\"ours\"")] }
        #expect(
            sent == "HTTP/1.1 200 X\r\n\(kept)Transfer-Encoding: chunked\r\n"
                + "Proxy-Status: a, upstream-countersign; details=\"answered\"\r\n"
                + "Proxy-Status: countersign; details=\"ours\"\r\n\r\n")
    }

    /// Clients do not read `_` as `-`, so such a name frames nothing.
    @Test func namesThatCGIReadsAsFramingAreForwarded() throws {
        let line = "Transfer_Encoding: chunked\r\ncontent_length: 7\r\n"
        let sent = try forward("HTTP/1.1 200 X\r\nContent-Length: 5\r\n\(line)\r\n", .length(5))
        #expect(sent == "HTTP/1.1 200 X\r\nContent-Length: 5\r\n\(line)\r\n")
        let removed = try forward(
            "HTTP/1.1 200 X\r\nConnection: content_length\r\nContent-Length: 5\r\n\(line)\r\n", .length(5))
        #expect(removed == "HTTP/1.1 200 X\r\nContent-Length: 5\r\nTransfer_Encoding: chunked\r\n\r\n")
    }

    @Test(arguments: [
        (200, "Content-Length: 5\r\n", "Content-Length: 5\r\n"),
        (304, "content-length:5\r\n", "content-length:5\r\n"),
        (204, "Content-Length: 5\r\n", ""),
        (103, "Content-Length: 5\r\n", ""),
        (200, "Content-Length: 5, 5\r\n", "Content-Length: 5\r\n"),
        (200, "Content-Length: 5\r\nContent-Length: 5\r\n", "Content-Length: 5\r\n"),
        (200, "Content-Length: 5, 6\r\n", ""),
        (200, "Content-Length: 5\r\nContent-Length: 6\r\n", ""),
        (200, "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", ""),
        (200, "Transfer-Encoding: chunked\r\n", ""),
    ])
    func responsesWithoutABodyKeepAValidContentLength(status: Int, came: String, passes: String) throws {
        #expect(
            try forward("HTTP/1.1 \(status) X\r\n\(came)\r\n", .none) == "HTTP/1.1 \(status) X\r\n\(passes)\r\n")
    }

    @Test(arguments: [
        (
            "HTTP/1.1 200  Gut \r\ncontent-Length: 5\r\nA: 1\r\n\r\n", 5,
            "HTTP/1.1 200  Gut \r\ncontent-Length: 5\r\nA: 1\r\n\r\n"
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length:5 \r\nA: 1\r\n\r\n", 5,
            "HTTP/1.1 200 OK\r\nA: 1\r\nContent-Length: 5\r\n\r\n"
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: 1\r\n\r\n", 7,
            "HTTP/1.1 200 OK\r\nA: 1\r\nContent-Length: 7\r\n\r\n"
        ),
        ("HTTP/1.1 200\r\nA: 1\r\n\r\n", 7, "HTTP/1.1 200 \r\nA: 1\r\nContent-Length: 7\r\n\r\n"),
        ("HTTP/1.1 200 \r\nA: 1\r\n\r\n", 7, "HTTP/1.1 200 \r\nA: 1\r\nContent-Length: 7\r\n\r\n"),
        (
            "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nA: 1\r\n\r\n", 5,
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: 1\r\n\r\n"
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 5,
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
        ),
    ])
    func correctLinesAreForwardedUnchanged(came: String, length: UInt64, sent: String) throws {
        #expect(try forward(came, .length(length)) == sent)
    }

    @Test func bodyUntilCloseForcesConnectionClose() throws {
        #expect(
            try forward("HTTP/1.1 200 OK\r\n\r\n", .untilClose) == "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    }

    @Test func switchingProtocolsNamesTheProtocolExceptH2C() throws {
        let response = "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: y\r\n\r\n"
        #expect(
            try forward(response, .none, .upgrade)
                == "HTTP/1.1 101 X\r\nSec-WebSocket-Accept: y\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        #expect(
            try forward("HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", .none, .upgrade)
                == "HTTP/1.1 101 X\r\n\r\n")
    }

    @Test(arguments: 0...UInt8.max)
    func controlCharactersAreReplaced(octet: UInt8) throws {
        let sent = try forward("HTTP/1.1 200 OK\r\n\r\n", .length(0)) {
            let value = "a" + String(Unicode.Scalar(octet)) + "b"
            $0.via = ViaField(value)
            $0.extraFields = [("Proxy-Status", value)]
        }
        #expect(sent.unicodeScalars.filter { $0 == "\n" }.count == 5)
        #expect(responseError(sent) == nil)
        #expect(sent.unicodeScalars.allSatisfy { $0.isASCII && $0 != "\u{0}" && $0 != "\u{7F}" })
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nA: 1\r\nContent-Length: 5\r\nB:\r\n\r\n", BodyFraming.length(5)),
        ("HTTP/1.0 200\r\nConnection: a\r\nA: 1\r\n\r\n", .untilClose),
        ("HTTP/1.1 200 \u{FF}\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\n\r\n", .chunked),
    ])
    func forwardedHeadsAreStable(response: String, framing: BodyFraming) throws {
        let once = try forward(response, framing)
        let parsed = try #require(try readResponse(once))
        #expect(parsed.consumedBytes == octets(once).count)
        #expect(try parsed.head.framing(answering: .get) == framing)
        #expect(try forward(once, framing) == once)
    }
}

@Suite struct ChunkedEncodingTests {
    private func trailers(_ section: String) throws -> FieldLines? {
        var decoder = BodyDecoder(.chunked)
        var offset = 0
        let input = octets("0\r\n" + section + "\r\n")
        guard case .end(let trailers) = try decoder.next(input.span.bytes, from: &offset) else { return nil }
        return trailers
    }

    @Test(arguments: [(1, "1\r\n"), (500, "1f4\r\n"), (65_536, "10000\r\n")])
    func chunkHeaderIsTheSizeInHexadecimal(byteCount: Int, header: String) {
        #expect(text(ChunkedEncoding.header(byteCount: byteCount)) == header)
    }

    @Test func encodedBodiesCanBeDecoded() throws {
        var body: [UInt8] = []
        for piece in ["hello", ", ", "world and more than sixteen octets"] {
            body += ChunkedEncoding.header(byteCount: piece.utf8.count) + octets(piece) + ChunkedEncoding.lineEnd
        }
        body += ChunkedEncoding.end(trailers: try trailers("X-Sum: 1\r\n"))
        let decoded = try decode(text(body), as: .chunked)
        #expect(decoded.content == "hello, world and more than sixteen octets")
        #expect(decoded.trailers == ["X-Sum"])
        #expect(decoded.consumedBytes == body.count)
    }

    @Test func bodyWithoutTrailersHasTheShortEnd() throws {
        #expect(text(ChunkedEncoding.end(trailers: nil)) == "0\r\n\r\n")
        #expect(try trailers("") == nil)
    }

    @Test(arguments: [
        "Host: a", "Authorization: a", "WWW-Authenticate: a",
        "Set-Cookie: a", "Cookie: a", "Connection: a", "Trailer: a", "TE: a", "Via: a", "Proxy-Authorization: a",
        "CONTENT-TYPE: a", "Content-Encoding: a", "Content-Range: a", "Cache-Control: a", "Location: a", "Vary: a",
        "Countersign-Trust: a", "X-Hop: a", "If-None-Match: a", "Proxy-Status: a",
    ])
    func fieldsThatAreNotAllowedInTrailersAreDropped(line: String) throws {
        let head = try #require(try readResponse("HTTP/1.1 200 OK\r\nConnection: x-hop\r\n\r\n")).head
        let end = ChunkedEncoding.end(
            trailers: try trailers("X-Sum:  1\r\n\(line)\r\nx-more: 2\r\n"), head: head.fields)
        #expect(text(end) == "0\r\nX-Sum:  1\r\nx-more: 2\r\n\r\n")
    }
}

@Suite struct GeneratedResponseTests {
    @Test func responseIsComplete() throws {
        let made = GeneratedResponse(
            status: 502, fields: [("Proxy-Status", "countersign; details=\"\u{E9}\r\nX: y\u{0}\"")], body: octets("no"))
        #expect(
            text(made.serialized())
                == "HTTP/1.1 502 Bad Gateway\r\nProxy-Status: countersign; details=\"??  X: y \"\r\n"
                + "Content-Length: 2\r\n"
                + "Connection: close\r\n\r\nno")
    }

    @Test func responseToHEADHasALengthAndNoBody() {
        let made = GeneratedResponse(status: 400, body: octets("no"), closes: false, answersHead: true)
        #expect(text(made.serialized()) == "HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n")
    }

    @Test(arguments: [204, 304])
    func statusesWithoutABodyHaveNoLength(status: Int) {
        let made = text(GeneratedResponse(status: status, body: octets("no"), closes: false).serialized())
        #expect(made == "HTTP/1.1 \(status) \(GeneratedResponse.reason(of: status))\r\n\r\n")
    }

    @Test(arguments: 200..<600)
    func everyStatusCanBeParsed(status: Int) throws {
        let parsed = try #require(try readResponse(text(GeneratedResponse(status: status).serialized())))
        #expect(parsed.head.status == status)
        #expect(parsed.head.reason == GeneratedResponse.reason(of: status))
        #expect(!parsed.head.keepsAlive)
    }

    @Test func fixedResponsesAreValid() throws {
        let tunnel = try #require(try readResponse(text(GeneratedResponse.tunnelEstablished))).head
        #expect(tunnel.status == 200)
        #expect(tunnel.fields.lines.isEmpty)
        #expect(try readResponse(text(GeneratedResponse.interimContinue))?.head.status == 100)
    }
}
