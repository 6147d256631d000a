// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignHTTP1

@Suite struct BodyFramingTests {
    @Test(arguments: [
        ("", BodyFraming.none),
        ("Content-Length: 0\r\n", .length(0)),
        ("content-length:5\r\n", .length(5)),
        ("Content-Length: 9223372036854775807\r\n", .length(9_223_372_036_854_775_807)),
        ("Transfer-Encoding: chunked\r\n", .chunked),
        ("transfer-encoding:ChunkeD  \r\n", .chunked),
        ("Content-Length:  7 \r\n", .length(7)),
    ])
    func validFramingIsRead(lines: String, framing: BodyFraming) throws {
        #expect(try readRequest("POST / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n")?.head.framing == framing)
        let response = try #require(try readResponse("HTTP/1.1 200 OK\r\n\(lines)\r\n")?.head)
        #expect(try response.framing(answering: .post) == (framing == .none ? .untilClose : framing))
    }

    @Test(arguments: [
        ("Content-Length: 5\r\nContent-Length: 6\r\n", HTTP1Error.Code.invalidContentLength, 400),
        ("Content-Length:\r\n", .invalidContentLength, 400),
        ("Content-Length: +5\r\n", .invalidContentLength, 400),
        ("Content-Length: -5\r\n", .invalidContentLength, 400),
        ("Content-Length: 0x5\r\n", .invalidContentLength, 400),
        ("Content-Length: 5a\r\n", .invalidContentLength, 400),
        ("Content-Length: 5 0\r\n", .invalidContentLength, 400),
        ("Content-Length: 5.0\r\n", .invalidContentLength, 400),
        ("Content-Length: 1_000\r\n", .invalidContentLength, 400),
        ("Content-Length: \"5\"\r\n", .invalidContentLength, 400),
        ("Content-Length: 5;\r\n", .invalidContentLength, 400),
        ("Content-Length: \u{A0}5\r\n", .invalidContentLength, 400),
        ("Content-Length: \u{B2}\r\n", .invalidContentLength, 400),
        ("Content-Length: 9223372036854775808\r\n", .invalidContentLength, 400),
        ("Content-Length: 9999999999999999999\r\n", .invalidContentLength, 400),
        ("Content-Length: 18446744073709551616\r\n", .invalidContentLength, 400),
        ("Content-Length: 18446744073709551621\r\n", .invalidContentLength, 400),
        ("Transfer-Encoding: chunked, chunked\r\n", .invalidTransferEncoding, 400),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", .invalidTransferEncoding, 400),
        ("Transfer-Encoding: chunked, gzip\r\n", .invalidTransferEncoding, 400),
        ("Transfer-Encoding: xchunked\r\n", .invalidTransferEncoding, 400),
        ("Transfer-Encoding: chunked;q=1\r\n", .invalidTransferEncoding, 400),
        ("Transfer-Encoding: chunked foo\r\n", .invalidTransferEncoding, 400),
        ("Transfer-Encoding: \"chunked\"\r\n", .invalidTransferEncoding, 400),
        ("Transfer-Encoding: chun\u{2B}\u{40}ed\r\n", .invalidTransferEncoding, 400),
        ("Transfer-Encoding: \u{FF}chunked\r\n", .invalidTransferEncoding, 400),
        ("Transfer-Encoding: gzip, chunked\r\n", .unsupportedTransferEncoding, 501),
        ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", .unsupportedTransferEncoding, 501),
    ])
    func ambiguousFramingIsRefused(lines: String, code: HTTP1Error.Code, status: Int) throws {
        let fault = requestError("POST / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n")
        #expect(fault?.code == code)
        #expect(fault?.statusHint == status)

        let response = try #require(try readResponse("HTTP/1.1 200 OK\r\n\(lines)\r\n")?.head)
        let responseError = #expect(throws: HTTP1Error.self) { try response.framing(answering: .get) }
        #expect(responseError?.code == code)
        #expect(responseError?.statusHint == 502)
        #expect(responseError?.sender == .origin)
    }

    /// A response with such framing is repaired.
    @Test(arguments: [
        ("Content-Length: 5, 5\r\n", HTTP1Error.Code.invalidContentLength, 400),
        ("Content-Length: 5\r\nContent-Length: 5\r\n", .invalidContentLength, 400),
        ("Content-Length: 5\r\nContent-Length: 5\r\nContent-Length: 5\r\n", .invalidContentLength, 400),
        ("Content-Length: 5\t\r\n", .invalidContentLength, 400),
        ("Content-Length:\t5\r\n", .invalidContentLength, 400),
        ("Content-Length: 010\r\n", .invalidContentLength, 400),
        ("Content-Length: 00\r\n", .invalidContentLength, 400),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", .conflictingFraming, 400),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", .conflictingFraming, 400),
        ("Transfer-Encoding:\r\n", .invalidTransferEncoding, 400),
        ("Transfer-Encoding: ,chunked\r\n", .invalidTransferEncoding, 400),
        ("Transfer-Encoding: chunked,\r\n", .invalidTransferEncoding, 400),
        ("Transfer-Encoding: , chunked\r\n", .invalidTransferEncoding, 400),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n", .invalidTransferEncoding, 400),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", .invalidTransferEncoding, 400),
        ("Transfer-Encoding: chunked\t\r\n", .invalidTransferEncoding, 400),
        ("Transfer-Encoding:\tchunked\r\n", .invalidTransferEncoding, 400),
        ("Transfer-Encoding: identity\r\n", .invalidTransferEncoding, 400),
    ])
    func requestsWithFramingToRepairAreRefused(lines: String, code: HTTP1Error.Code, status: Int) throws {
        let fault = requestError("POST / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n")
        #expect(fault?.code == code)
        #expect(fault?.statusHint == status)
        #expect(try readResponse("HTTP/1.1 200 OK\r\n\(lines)\r\n")?.head.repair == code)
    }

    @Test func aTabDoesNotHideAnEncodingThatIsUnknown() throws {
        let lines = "Transfer-Encoding: gzip\r\nTransfer-Encoding:\tchunked\r\n"
        #expect(requestError("POST / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n")?.code == .invalidTransferEncoding)
        let response = try #require(try readResponse("HTTP/1.1 200 OK\r\n\(lines)\r\n")?.head)
        let fault = #expect(throws: HTTP1Error.self) { try response.framing(answering: .get) }
        #expect(fault?.code == .unsupportedTransferEncoding)
    }

    @Test func transferEncodingInHTTP10IsRefusedInRequests() throws {
        #expect(
            requestError("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n")?.code == .conflictingFraming)
    }

    @Test(arguments: [
        (200, Method.head), (100, .get), (103, .get), (101, .get), (204, .get), (304, .get), (200, .connect),
        (299, .connect),
    ])
    func responsesWithoutABodyIgnoreTheirFraming(status: Int, method: Method) throws {
        for lines in ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", ""] {
            let response = try #require(try readResponse("HTTP/1.1 \(status) X\r\n\(lines)\r\n")?.head)
            #expect(try response.framing(answering: method) == BodyFraming.none)
        }
    }

    @Test(arguments: [(200, Method.head), (103, .get), (204, .get), (304, .get)])
    func invalidFramingIsRefusedEvenWithoutABody(status: Int, method: Method) throws {
        for lines in ["Content-Length: 5, 6\r\n", "Transfer-Encoding: gzip, chunked\r\n"] {
            let response = try #require(try readResponse("HTTP/1.1 \(status) X\r\n\(lines)\r\n")?.head)
            #expect(throws: HTTP1Error.self) { try response.framing(answering: method) }
        }
    }

    @Test func acceptedCONNECTHasNoFraming() throws {
        let response = try #require(try readResponse("HTTP/1.1 200 X\r\nContent-Length: 5, 6\r\n\r\n")?.head)
        #expect(try response.framing(answering: .connect) == BodyFraming.none)
    }

    @Test func refusedCONNECTHasABody() throws {
        let response = try #require(try readResponse("HTTP/1.1 502 X\r\nContent-Length: 5\r\n\r\n")?.head)
        #expect(try response.framing(answering: .connect) == .length(5))
    }
}
