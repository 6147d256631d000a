// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignHTTP1

@Suite struct HeadRepairTests {
    /// A response of `hello` that is not clean, its head as the client gets it, and why it is not clean.
    typealias Row = (received: String, forwarded: String, repair: HTTP1Error.Code)

    private static let length = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
    private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    private static let untilClose = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    private static let chunks = "5\r\nhello\r\n0\r\n\r\n"

    static let lines: [Row] = [
        ("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", length, .bareLineFeed),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\n\r\nhello", length, .bareLineFeed),
        ("HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\nhello", length, .bareLineFeed),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\nhello", length, .bareLineFeed),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n" + chunks, chunked, .bareLineFeed),
        (
            "HTTP/1.1 401 No\nWWW-Authenticate:Basic realm=\"\u{E9}\"\nX:\n \t v \n\twx\nContent-Length: 5\n\nhello",
            "HTTP/1.1 401 No\r\nWWW-Authenticate:Basic realm=\"\u{E9}\"\r\nX: v wx\r\nContent-Length: 5\r\n\r\n",
            .bareLineFeed
        ),
        (
            "HTTP/1.1 200 OK\r\nX: a\r\n b: c\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nX: a b: c\r\nContent-Length: 5\r\n\r\n", .obsoleteFolding
        ),
        (
            "HTTP/1.1 200 OK\r\nX: a\r\n \r\n\t \r\n b\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nX: a b\r\nContent-Length: 5\r\n\r\n", .obsoleteFolding
        ),
        (
            "HTTP/1.1 200 OK\r\nX: a\r\n \r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nX: a\r\nContent-Length: 5\r\n\r\n", .obsoleteFolding
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\t\r\n\r\nhello", length, .obsoleteFolding),
        (
            "HTTP/1.1 200 OK\r\nX \t: a\r\nContent-Length : 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nX: a\r\nContent-Length: 5\r\n\r\n", .malformedField
        ),
        (
            "HTTP/1.1 200 O\u{1}K\r\nContent-Length: 5\r\nX: \u{B}a\u{7F}b\tc\r\n\r\nhello",
            "HTTP/1.1 200 O K\r\nX:  a b\tc\r\nContent-Length: 5\r\n\r\n", .malformedStatusLine
        ),
        ("http/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", length, .malformedStatusLine),
        ("HTTP/1.1   200 OK\r\nContent-Length: 5\r\n\r\nhello", length, .malformedStatusLine),
        ("HTTP/1.1\t200\tOK\r\nContent-Length: 5\r\n\r\nhello", length, .malformedStatusLine),
        ("HTTP/1.1 \t200 OK\r\nContent-Length: 5\r\n\r\nhello", length, .malformedStatusLine),
        ("HTTP/1.2 200 OK\r\nContent-Length: 5\r\n\r\nhello", length, .unsupportedVersion),
        ("HTTP/1.9 200 OK\r\nContent-Length: 5\r\n\r\nhello", length, .unsupportedVersion),
        (
            "Http/1.0 200\nContent-Length: 5\n\nhello", "HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\n",
            .malformedStatusLine
        ),
    ]

    static let framing: [Row] = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", length, .invalidContentLength),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5, 5 ,\t05\r\n\r\nhello", length, .invalidContentLength),
        ("HTTP/1.1 200 OK\r\nContent-Length: 000000000000000000000005\r\n\r\nhello", length, .invalidContentLength),
        ("HTTP/1.1 200 OK\r\nContent-Length:\t5\t\r\n\r\nhello", length, .invalidContentLength),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: Chunked\r\n\r\n" + chunks, chunked,
            .conflictingFraming
        ),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks, chunked, .conflictingFraming),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: ,chunked, \r\n\r\n" + chunks, chunked, .invalidTransferEncoding),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding:\tchunked\t\r\n\r\n" + chunks, chunked, .invalidTransferEncoding),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks, chunked,
            .unsupportedTransferEncoding
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: Identity\r\n\r\nhello", untilClose, .invalidTransferEncoding),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\r\nhello", untilClose, .invalidTransferEncoding),
        ("HTTP/1.1 200 OK\r\nContent-Length:\r\n 5\r\n\r\nhello", length, .obsoleteFolding),
        ("HTTP/1.1 200 OK\nTransfer-Encoding:\n\tchunked\n\n" + chunks, chunked, .bareLineFeed),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello", length,
            .conflictingFraming
        ),
    ]

    @Test(arguments: lines + framing)
    func aResponseIsForwardedClean(received: String, forwarded: String, repair: HTTP1Error.Code) throws {
        let parsed = try #require(try readResponse(received))
        #expect(parsed.head.repair == repair)
        let framing = try parsed.head.framing(answering: .get)
        #expect(text(parsed.head.forwarded(ResponseChanges(), framing: framing)) == forwarded)
        let rest = text(octets(received)[parsed.consumedBytes...])
        #expect(try decode(rest, as: framing, sentBy: .origin).content == "hello")
        // The repaired head is clean.
        let again = try #require(try readResponse(text(parsed.head.fields.bytes)))
        #expect(again.head.repair == nil)
        #expect(again.head.fields == parsed.head.fields)
        #expect(try again.head.framing(answering: .get) == framing)
    }

    @Test(arguments: lines + framing)
    func everyPrefixOfItIsIncomplete(received: String, forwarded: String, repair: HTTP1Error.Code) throws {
        let end = try #require(try readResponse(received)).consumedBytes
        for count in 0..<end {
            #expect(try readResponse(text(octets(received).prefix(count))) == nil, "after \(count) bytes")
        }
    }

    /// Another reader may have found another end, so that not even a handshake may go on behind it.
    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: identity\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding:\tchunked\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Length:\r\n 5\r\n\r\n", false),
        ("HTTP/1.1 200 OK\nTransfer-Encoding:\n\tchunked\n\n", false),
        ("HTTP/1.1 200 OK\r\nX: a\r\n \r\nContent-Length: 5\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 5\r\n\r\n", true),
        ("HTTP/1.1 200 OK\nContent-Length: 5\n\n", true), ("HTTP/1.1 200 OK\nConnection: close\n\n", false),
        ("HTTP/1.0 200 OK\nContent-Length: 5\n\n", false),
        ("HTTP/1.0 200 OK\nConnection: keep-alive\nContent-Length: 5\n\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n", true),
    ])
    func ambiguousFramingEndsTheConnection(response: String, keepsAlive: Bool) throws {
        let head = try #require(try readResponse(response)).head
        #expect(head.repair != nil)
        #expect(head.keepsAlive == keepsAlive)
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\nX: a\rb\n\n", HTTP1Error.Code.bareCarriageReturn, 2),
        ("HTTP/1.1 200 OK\nX: a\r\r\n\n", .bareCarriageReturn, 2),
        ("HTTP/1.1 200 O\rK\n\n", .bareCarriageReturn, 1),
        ("HTTP/1.1 200 OK\nA: b\nX: a\u{0}\n\n", .malformedField, 3),
        ("HTTP/1.1 200 \u{0}\n\n", .malformedStatusLine, 1),
        ("HTTP/1.1 200 OK\nA: b\nX Y: a\n\n", .malformedField, 3),
        ("HTTP/1.1 200 OK\nX(: a\n\n", .malformedField, 2),
        ("HTTP/1.1 200 OK\nX\u{1}: a\n\n", .malformedField, 2),
        ("HTTP/1.1 200 OK\n: a\n\n", .malformedField, 2),
        ("HTTP/1.1 200 OK\nX\n\n", .malformedField, 2),
        ("HTTP/1.1 200 OK\nHTTP/1.1 200 OK\n\n", .malformedField, 2),
        ("HTTP/1.1 200 OK\n X: a\n\n", .malformedField, 2),
        ("HTTP/1.1 200 OK\r\n \r\n b\r\n\r\n", .malformedField, 2),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n \u{C}0\r\n\r\n", .malformedField, 3),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding:\u{B}chunked\r\n\r\n", .malformedField, 2),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\u{C}\r\n\r\n", .malformedField, 2),
        ("HTTP/2.0 200 OK\n\n", .unsupportedVersion, 1),
        ("http/1.1 20 OK\n\n", .malformedStatusLine, 1),
        ("http/1.1 099 OK\n\n", .malformedStatusLine, 1),
        ("http/1.1 2000 OK\n\n", .malformedStatusLine, 1),
        ("http/1.10 200 OK\n\n", .malformedStatusLine, 1),
        ("http/1.1 200x OK\n\n", .malformedStatusLine, 1),
        ("http/1.1          \n\n", .malformedStatusLine, 1),
        ("HTTP/1.1\n\n", .malformedStatusLine, 1),
        ("\nHTTP/1.1 200 OK\n\n", .malformedStatusLine, 1),
        ("httpx", .malformedStatusLine, 1),
    ])
    func whatLeavesADoubtIsRefused(response: String, code: HTTP1Error.Code, line: Int) {
        let fault = responseError(response)
        #expect(fault?.code == code)
        #expect(fault?.detail.hasPrefix("line \(line) of the head: ") == true, "\(fault?.detail ?? "accepted")")
        #expect(fault?.statusHint == 502)
    }

    @Test(arguments: [
        ("Content-Length: 5\nContent-Length: 6\n", HTTP1Error.Code.invalidContentLength),
        ("Content-Length: 5, 6\n", .invalidContentLength), ("Content-Length: 5,\n", .invalidContentLength),
        ("Content-Length:\n", .invalidContentLength), ("Content-Length: 5 5\n", .invalidContentLength),
        ("Content-Length: 0x5\n", .invalidContentLength), ("Content-Length: +5\n", .invalidContentLength),
        ("Content-Length: 0\n0: a\nContent-Length:\n", .invalidContentLength),
        ("Content-Length: 009223372036854775808\n", .invalidContentLength),
        ("Content-Length: 5\nContent-Length: x\nContent-Length: 5\n", .invalidContentLength),
        ("Transfer-Encoding: gzip, chunked\n", .unsupportedTransferEncoding),
        ("Transfer-Encoding: chunked, chunked\n", .invalidTransferEncoding),
        ("Transfer-Encoding: chunked, gzip\n", .invalidTransferEncoding),
        ("Transfer-Encoding: chun\tked\n", .invalidTransferEncoding),
        ("Transfer-Encoding: chunked;q=1\n", .invalidTransferEncoding),
        ("Transfer-Encoding: gzip\n", .invalidTransferEncoding),
        ("Transfer-Encoding: chunked\nContent-Length: 5\nContent-Length: 6\n", .conflictingFraming),
        ("Transfer-Encoding: gzip\nContent-Length: 5\n", .conflictingFraming),
    ])
    func contradictoryFramingIsRefused(lines: String, code: HTTP1Error.Code) throws {
        for lines in [lines, text(octets(lines).flatMap { $0 == 0x0A ? [0x0D, 0x0A] : [$0] })] {
            let head = try #require(try readResponse("HTTP/1.1 200 OK\r\n\(lines)\r\n")).head
            let fault = #expect(throws: HTTP1Error.self) { try head.framing(answering: .get) }
            #expect(fault?.code == code)
            #expect(fault?.statusHint == 502)
            // It does not frame anything there.
            #expect(try head.framing(answering: .connect) == BodyFraming.none)
        }
    }

    /// Every accepted head ends at its first empty line, and a repaired one is clean.
    @Test(arguments: 0..<4) func anAcceptedHeadEndsAtItsFirstEmptyLine(part: UInt64) throws {
        var mutation = Mutation(of: Mutation.responses, seed: 2_000 + part)
        var repairs = 0
        for _ in 0..<1_000 {
            let input = mutation.next()
            guard let parsed = try? ResponseHead.parse(input.span.bytes) else { continue }
            let end = input.indices.first { index in
                guard index > 0, input[index] == 0x0A else { return false }
                return input[index - 1] == 0x0A || index > 1 && input[index - 1] == 0x0D && input[index - 2] == 0x0A
            }
            #expect(end.map { $0 + 1 } == parsed.consumedBytes, "\(text(input).debugDescription)")
            guard parsed.head.repair != nil else {
                #expect(parsed.head.fields.bytes == Array(input.prefix(parsed.consumedBytes)))
                continue
            }
            repairs += 1
            let bytes = parsed.head.fields.bytes
            let again = try #require(try ResponseHead.parse(bytes.span.bytes))
            #expect(again.consumedBytes == bytes.count)
            #expect(try readResponse(text(input.prefix(parsed.consumedBytes - 1))) == nil)
            if (try? parsed.head.framing(answering: .get)) != nil { #expect(again.head.repair == nil) }
        }
        #expect(repairs > 50)
    }
}

@Suite struct BodyRepairTests {
    @Test(arguments: [
        ("5\nhello\n0\n\n", HTTP1Error.Code.bareLineFeed), ("5\r\nhello\r\n0\r\n\n", .bareLineFeed),
        ("5\r\nhello\n0\r\n\r\n", .bareLineFeed), ("5;a\nhello\r\n0\r\n\r\n", .bareLineFeed),
        ("5;a=b\nhello\r\n0;a=\"b\"\n\r\n", .bareLineFeed),
        ("000000000000000000000005\r\nhello\r\n0\r\n\r\n", .malformedChunk),
        ("5\r\nhello\r\n00000000000000000\r\n\r\n", .malformedChunk),
        ("5 \r\nhello\r\n0\t \r\n\r\n", .malformedChunk),
        ("5 ; a = b \r\nhello\r\n0\r\n\r\n", .malformedChunk),
        ("5;a=\t\"b\"\t;c ;d\r\nhello\r\n0\r\n\r\n", .malformedChunk),
    ])
    func anOriginsChunksAreReadInPiecesOfAnySize(body: String, repair: HTTP1Error.Code) throws {
        for step in [1, 2, 3, .max] {
            let decoded = try decode(body + "HTTP/1.1", as: .chunked, step: step, sentBy: .origin)
            #expect(
                decoded
                    == DecodedBody(
                        content: "hello", isComplete: true, consumedBytes: octets(body).count, repair: repair),
                "step \(step)")
            #expect(bodyError(body, as: .chunked, step: step) != nil)
        }
    }

    @Test func trailersMayEndInLineFeeds() throws {
        for section in ["X: y\nZ: \n\n", "X: y\r\nZ:\n\r\n", "X: y\nZ:\r\n\n"] {
            let decoded = try decode("0\r\n" + section, as: .chunked, sentBy: .origin)
            #expect(decoded.trailers == ["X", "Z"])
            #expect(decoded.repair == .bareLineFeed)
        }
    }

    /// The body is complete without them.
    @Test(arguments: [
        "X : a\r\n", "X: a\r\n b\r\n", "X: a\n \n", "X: a\u{1}\r\n", "X Y: a\r\n", "X\r\n", "Content-Length: 5\r\n",
        "A: b\r\nTransfer-Encoding: chunked\r\n", String(repeating: "X: a\r\n", count: 129),
    ])
    func malformedTrailersAreLeftOut(section: String) throws {
        let body = "5\r\nhello\r\n0\r\n\(section)\r\n"
        for step in [1, 2, 3, .max] {
            let decoded = try decode(body + "HTTP/1.1", as: .chunked, step: step, sentBy: .origin)
            #expect(
                decoded
                    == DecodedBody(
                        content: "hello", isComplete: true, consumedBytes: octets(body).count,
                        repair: .malformedTrailers),
                "step \(step)")
            #expect(bodyError(body, as: .chunked, step: step) != nil)
        }
    }

    @Test(arguments: ["5\r\nhello\r\n0\r\n\r\n", "0000000000000005;a=\"b;\"\r\nhello\r\n0\r\nX: y\r\n\r\n"])
    func cleanChunksAreNotRepaired(body: String) throws {
        let decoded = try decode(body, as: .chunked, sentBy: .origin)
        #expect(decoded.content == "hello")
        #expect(decoded.repair == nil)
    }

    @Test(arguments: [
        ("\n", HTTP1Error.Code.bareLineFeed), (" 5\r\n", .malformedChunk), (";a\r\n", .malformedChunk),
        ("5 5\r\n", .malformedChunk), ("5\rX", .malformedChunk), ("5 \rX", .malformedChunk),
        ("5\u{B}\r\n", .malformedChunk),
        ("5;\n", .bareLineFeed), ("5; \r\n", .malformedChunk), ("5;a= \r\n", .malformedChunk),
        ("5;a=\n", .bareLineFeed),
        ("5;a b\r\n", .malformedChunk), ("5;a=b c\r\n", .malformedChunk), ("5;a=\"b\n", .bareLineFeed),
        ("5;a=\"b\\\n", .bareLineFeed), ("5\r\nhello\r\r\n", .malformedChunk), ("5\r\nhello \n", .malformedChunk),
        ("8000000000000000\r\n", .malformedChunk), ("008000000000000000\r\n", .malformedChunk),
        ("10000000000000005\r\n", .malformedChunk), ("0x5\r\n", .malformedChunk),
        ("0\r\nX: a\r\r\n\r\n", .malformedTrailers), ("0\r\nX: a\rb\n\n", .malformedTrailers),
        ("0\r\nX: \u{0}\n\n", .malformedTrailers), ("0\r\nX : a\r\nY: b\rc\r\n\r\n", .malformedTrailers),
    ])
    func otherChunksAreRefusedInPiecesOfAnySize(body: String, code: HTTP1Error.Code) {
        for step in [1, 2, .max] {
            #expect(bodyError(body, as: .chunked, step: step, sentBy: .origin) == code, "step \(step)")
        }
    }

    @Test func needlessOctetsAreLimited() {
        let zeros = String(repeating: "0", count: 16 + 256)
        #expect(bodyError(zeros + "\r\n\r\n", as: .chunked, sentBy: .origin) == nil)
        #expect(bodyError(zeros + "0\r\n\r\n", as: .chunked, sentBy: .origin) == .chunkExtensionTooLong)
        let blanks = String(repeating: " ", count: 257)
        #expect(bodyError("0\(blanks)\r\n\r\n", as: .chunked, sentBy: .origin) == .chunkExtensionTooLong)
    }

    @Test(arguments: [String(repeating: " ", count: 200), ";a=" + String(repeating: "b", count: 200)])
    func needlessOctetsAreCountedInEachChunkOfAnOrigin(padding: String) throws {
        let body = "5\(padding)\r\nhello\r\n5\(padding)\r\nhello\r\n0\(padding)\r\n\r\n"
        let decoded = try decode(body, as: .chunked, sentBy: .origin)
        #expect(decoded.content == "hellohello")
        #expect(decoded.isComplete)
        #expect(bodyError(body, as: .chunked) != nil)
    }

    @Test func theLimitsOfABodyAreThoseOfItsSender() throws {
        let input = octets("0;a=" + String(repeating: "b", count: 2_000) + "\r\n\r\n")
        var offset = 0
        var origin = BodyDecoder(.chunked, sentBy: .origin)
        let piece = try origin.next(input.span.bytes, from: &offset)
        #expect(piece == .end(trailers: nil))
        offset = 0
        var client = BodyDecoder(.chunked)
        do throws(HTTP1Error) {
            _ = try client.next(input.span.bytes, from: &offset)
            Issue.record("accepted")
        } catch {
            #expect(error.code == .chunkExtensionTooLong)
        }
    }
}
