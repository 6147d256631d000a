// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignHTTP1

@Suite struct BodyDecoderTests {
    @Test(arguments: [1, 2, 3, 7, .max])
    func validChunkedBodiesAreReadInPiecesOfAnySize(step: Int) throws {
        let cases: [(String, String, [String])] = [
            ("0\r\n\r\n", "", []),
            ("5\r\nhello\r\n0\r\n\r\n", "hello", []),
            ("5\r\nhello\r\n00b\r\n, my world!\r\n0000\r\n\r\n", "hello, my world!", []),
            ("A\r\n0123456789\r\n0\r\n\r\n", "0123456789", []),
            ("5;a;b=c;d=\"e;\\\"f\"\r\nhello\r\n0;x\r\n\r\n", "hello", []),
            ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n", []),
            ("1\r\nx\r\n0\r\nX-Sum: 1\r\nServer-Timing: a\r\n\r\n", "x", ["X-Sum", "Server-Timing"]),
        ]
        for (body, content, trailers) in cases {
            let decoded = try decode(body + "GET / HTTP/1.1\r\n", as: .chunked, step: step)
            #expect(decoded.content == content)
            #expect(decoded.trailers == trailers)
            #expect(decoded.isComplete)
            #expect(decoded.consumedBytes == body.utf8.count)
        }
    }

    @Test(arguments: [
        ("\r\n", HTTP1Error.Code.malformedChunk),
        ("g\r\n", .malformedChunk),
        (" 5\r\nhello\r\n", .malformedChunk),
        ("5 \r\nhello\r\n", .malformedChunk),
        ("5\t\r\nhello\r\n", .malformedChunk),
        ("0x5\r\nhello\r\n", .malformedChunk),
        ("+5\r\nhello\r\n", .malformedChunk),
        ("-1\r\n", .malformedChunk),
        ("5\n", .bareLineFeed),
        ("5\rX", .malformedChunk),
        ("5\r\nhello\n0\r\n\r\n", .malformedChunk),
        ("5\r\nhelloX\r\n", .malformedChunk),
        ("5\r\nhello\rX", .malformedChunk),
        ("5\r\nhello0\r\n\r\n", .malformedChunk),
        ("8000000000000000\r\n", .malformedChunk),
        ("ffffffffffffffff\r\n", .malformedChunk),
        ("10000000000000005\r\nhello\r\n", .malformedChunk),
        ("00000000000000005\r\nhello\r\n", .malformedChunk),
        ("5;\r\nhello\r\n", .malformedChunk),
        ("5; a\r\nhello\r\n", .malformedChunk),
        ("5;a =b\r\nhello\r\n", .malformedChunk),
        ("5;a=\r\nhello\r\n", .malformedChunk),
        ("5;a=\"b\r\nhello\r\n", .malformedChunk),
        ("5;a=\"b\\\r\nhello\r\n", .malformedChunk),
        ("5;a=\"b\"c\r\nhello\r\n", .malformedChunk),
        ("5;a\nhello\r\n", .bareLineFeed),
        ("5;a\u{0}\r\nhello\r\n", .malformedChunk),
        ("5;a=b,c\r\nhello\r\n", .malformedChunk),
        ("0\r\n\n", .bareLineFeed),
        ("0\r\nX: a\n\r\n", .bareLineFeed),
        ("0\r\nX : a\r\n\r\n", .malformedTrailers),
        ("0\r\n X: a\r\n\r\n", .malformedTrailers),
        ("0\r\nX: a\r\n b\r\n\r\n", .malformedTrailers),
        ("0\r\nX: a\u{0}\r\n\r\n", .malformedTrailers),
        ("0\r\nX: a\rb\r\n\r\n", .malformedTrailers),
        ("0\r\n: a\r\n\r\n", .malformedTrailers),
        ("0\r\nContent-Length: 5\r\n\r\n", .malformedTrailers),
        ("0\r\nTransfer-Encoding: chunked\r\n\r\n", .malformedTrailers),
        ("0\r\nGET / HTTP/1.1\r\n\r\n", .malformedTrailers),
    ])
    func malformedChunksAreRefusedInPiecesOfAnySize(body: String, code: HTTP1Error.Code) {
        for step in [1, 2, .max] { #expect(bodyError(body, as: .chunked, step: step) == code, "step \(step)") }
    }

    @Test func chunkSizeBelow2To63IsAccepted() throws {
        #expect(try decode("7fffffffffffffff\r\nx", as: .chunked).content == "x")
    }

    @Test(arguments: [1, 3, .max])
    func lengthEndsTheBodyAndLeavesTheRestUnread(step: Int) throws {
        let decoded = try decode("helloHTTP/1.1 200 OK", as: .length(5), step: step)
        #expect(decoded == DecodedBody(content: "hello", isComplete: true, consumedBytes: 5))
    }

    @Test(arguments: [BodyFraming.none, .length(0)])
    func emptyBodiesAreCompleteAtOnce(framing: BodyFraming) throws {
        #expect(BodyDecoder(framing).isComplete)
        #expect(try decode("more", as: framing) == DecodedBody(isComplete: true, consumedBytes: 0))
    }

    @Test func bodyIsCompleteAfterItsLastOctet() throws {
        var decoder = BodyDecoder(.length(3))
        let start = try pieces(of: "ab", by: &decoder)
        #expect(start.pieces == [.content(0..<2), .needsMore])
        #expect(!decoder.isComplete)
        var offset = 0
        let last = try decoder.next(octets("cd").span.bytes, from: &offset)
        #expect(last == .content(0..<1))
        #expect(decoder.isComplete)
        let rest = try pieces(of: "d", by: &decoder)
        #expect(rest.pieces == [.end(trailers: nil)])
        #expect(rest.offset == 0)
    }

    @Test(arguments: [
        (BodyFraming.length(5), "hell", false), (.length(5), "hello", true), (.chunked, "5\r\nhello\r\n", false),
        (.chunked, "5\r\nhello\r\n0\r\n", false), (.chunked, "0\r\n\r\n", true), (.untilClose, "hel", true),
        (.untilClose, "", true), (.none, "", true),
    ])
    func bodyThatIsCutOffIsNotComplete(framing: BodyFraming, body: String, isWhole: Bool) throws {
        var decoder = BodyDecoder(framing)
        let input = octets(body)
        var offset = 0
        while case .content = try decoder.next(input.span.bytes, from: &offset) {}
        let ended = decoder.inputEnded()
        #expect(ended == isWhole)
        #expect(decoder.isComplete == isWhole)
    }

    @Test func bodyUntilCloseDoesNotEndBeforeTheConnection() throws {
        let decoded = try decode("0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", as: .untilClose)
        #expect(decoded.content == "0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")
        #expect(!decoded.isComplete)
    }

    @Test func errorIsFinal() throws {
        var decoder = BodyDecoder(.chunked, sentBy: .origin)
        let fault = #expect(throws: HTTP1Error.self) { try pieces(of: "x", by: &decoder) }
        #expect(fault?.statusHint == 502)
        #expect(throws: HTTP1Error.self) { try pieces(of: "0\r\n\r\n", by: &decoder) }
        let ended = decoder.inputEnded()
        #expect(!ended)
    }

    @Test func contentIsReturnedInRuns() throws {
        var decoder = BodyDecoder(.chunked)
        let read = try pieces(of: "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", by: &decoder)
        #expect(read.pieces == [.content(3..<8), .content(13..<19), .end(trailers: nil)])
        #expect(read.offset == 26)
    }

    private func pieces(
        of text: String, by decoder: inout BodyDecoder
    ) throws(HTTP1Error) -> (pieces: [BodyPiece], offset: Int) {
        let input = octets(text)
        var pieces: [BodyPiece] = []
        var offset = 0
        while true {
            let piece = try decoder.next(input.span.bytes, from: &offset)
            pieces.append(piece)
            if case .content = piece { continue }
            return (pieces, offset)
        }
    }
}
