// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignHTTP1

@Suite struct HeadLimitsTests {
    private let limits = HeadLimits(
        requestLineBytes: 40, headBytes: 120, fieldCount: 3, trailerBytes: 20, chunkExtensionBytes: 6)

    private func request(lineBytes: Int) -> String {
        "GET /" + String(repeating: "a", count: lineBytes - 14) + " HTTP/1.1\r\n"
    }

    @Test func standardLimitsAreThoseOfTheThreatModel() {
        let standard = HeadLimits.standard
        #expect(standard.requestLineBytes == 16_384)
        #expect(standard.headBytes == 65_536)
        #expect(standard.fieldCount == 128)
        #expect(standard.trailerBytes == 8_192)
        #expect(standard.chunkExtensionBytes == 256)
        let response = HeadLimits.response
        #expect(response.requestLineBytes == 16_384)
        #expect(response.headBytes == 262_144)
        #expect(response.fieldCount == 1_000)
        #expect(response.trailerBytes == 8_192)
        #expect(response.chunkExtensionBytes == 16_384)
    }

    @Test func requestLineLimitIsInclusiveAndMoreIs414() throws {
        #expect(try readRequest(request(lineBytes: 40) + "Host: a\r\n\r\n", limits: limits) != nil)
        let fault = requestError(request(lineBytes: 41) + "Host: a\r\n\r\n", limits: limits)
        #expect(fault?.code == .requestLineTooLong)
        #expect(fault?.statusHint == 414)
    }

    @Test func unterminatedRequestLineIs414() {
        let endless = "GET /" + String(repeating: "a", count: 36)
        #expect(requestError(endless, limits: limits) == nil)
        #expect(requestError(endless + "a", limits: limits)?.code == .requestLineTooLong)
        #expect(requestError(String(repeating: "G", count: 42), limits: limits)?.code == .requestLineTooLong)
    }

    @Test func headLimitIsInclusiveAndMoreIs431() throws {
        let start = "GET / HTTP/1.1\r\nHost: a\r\nX: "
        let fitting = start + String(repeating: "b", count: 120 - 4 - start.utf8.count)
        #expect(try readRequest(fitting + "\r\n\r\nmore", limits: limits)?.consumedBytes == 120)
        #expect(try readRequest("\r\n" + fitting + "\r\n\r\n", limits: limits)?.consumedBytes == 122)
        let fault = requestError(fitting + "b\r\n\r\n", limits: limits)
        #expect(fault?.code == .headTooLarge)
        #expect(fault?.statusHint == 431)
        #expect(requestError(fitting + "bbbb", limits: limits) == nil)
        #expect(requestError(fitting + "bbbbb", limits: limits)?.code == .headTooLarge)
    }

    @Test func fieldLimitIsInclusiveAndMoreIs431() throws {
        let three = "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\nX: a\r\n"
        #expect(try readRequest(three + "\r\n", limits: limits)?.head.fields.lines.count == 3)
        let fault = requestError(three + "X: a\r\n", limits: limits)
        #expect(fault?.code == .tooManyFields)
        #expect(fault?.statusHint == 431)
    }

    @Test func responseHeadsHaveTheSameLimitsAndMoreIs502() throws {
        let line = "HTTP/1.1 200 " + String(repeating: "a", count: 27)
        #expect(try readResponse(line + "\r\n\r\n", limits: limits) != nil)
        #expect(responseError(line + "a\r\n\r\n", limits: limits)?.code == .headTooLarge)
        #expect(responseError(line + "aa", limits: limits)?.statusHint == 502)
        let start = "HTTP/1.1 200 OK\r\nX: "
        let fitting = start + String(repeating: "b", count: 120 - 4 - start.utf8.count)
        #expect(try readResponse(fitting + "\r\n\r\n", limits: limits)?.consumedBytes == 120)
        #expect(responseError(fitting + "b\r\n\r\n", limits: limits)?.code == .headTooLarge)
    }

    /// A repaired head has the same limits, and the bytes that the repair adds do not count.
    @Test(arguments: ["\r\n", "\n"]) func responsesMayHaveManyFields(lineEnd: String) throws {
        let fields = String(repeating: "Set-Cookie: a=b" + lineEnd, count: 999)
        let start = "HTTP/1.1 200 OK" + lineEnd + fields
        let parsed = try #require(try readResponse(start + "x:y" + lineEnd + lineEnd))
        #expect(parsed.head.fields.lines.count == 1_000)
        #expect(parsed.head.repair == (lineEnd == "\n" ? .bareLineFeed : nil))
        #expect(responseError(start + "x:y" + lineEnd + "x:y" + lineEnd)?.code == .tooManyFields)
        let rest = 262_144 - octets("HTTP/1.1 200 OK" + lineEnd + "X: " + lineEnd + lineEnd).count
        let long = "HTTP/1.1 200 OK" + lineEnd + "X: " + String(repeating: "a", count: rest)
        #expect(try readResponse(long + lineEnd + lineEnd)?.consumedBytes == 262_144)
        #expect(responseError(long + "a" + lineEnd + lineEnd)?.code == .headTooLarge)
    }

    @Test func aLongHeadIsParsedAgainOnlyWhenAnotherLineHasEnded() {
        var search = LongHeadSearch()
        var bytes = octets("HTTP/1.1 200 OK\r\nX: ")
        func mayEnd(after more: String) -> Bool {
            bytes += octets(more)
            return search.mayEnd(in: bytes.span.bytes)
        }
        for more in ["", "a", String(repeating: "b", count: 8192)] { #expect(mayEnd(after: more)) }
        for more in ["", "c", "d\r"] { #expect(!mayEnd(after: more)) }
        for more in ["\n", "Y\n", "\n", String(repeating: "e", count: 262_144)] { #expect(mayEnd(after: more)) }
    }

    @Test func connectionOptionsAreLimited() throws {
        let options = [String](repeating: "x", count: 64).joined(separator: ",")
        #expect(try readRequest("GET / HTTP/1.1\r\nHost: a\r\nConnection: \(options)\r\n\r\n") != nil)
        #expect(
            requestError("GET / HTTP/1.1\r\nHost: a\r\nConnection: \(options),x\r\n\r\n")?.code == .malformedField)
        #expect(responseError("HTTP/1.1 200 OK\r\nConnection: \(options),x\r\n\r\n")?.statusHint == 502)
    }

    @Test func chunkExtensionsAreLimitedInTheWholeBody() throws {
        #expect(try decode("1;a=b\r\nx\r\n0;c\r\n\r\n", as: .chunked, limits: limits).isComplete)
        #expect(bodyError("1;a=bc\r\nx\r\n0;c\r\n\r\n", as: .chunked, limits: limits) == .chunkExtensionTooLong)
        #expect(try decode("0;a=\";\"\r\n\r\n", as: .chunked, limits: limits).isComplete)
        #expect(bodyError("0;a=\";;\"\r\n\r\n", as: .chunked, limits: limits) == .chunkExtensionTooLong)
    }

    @Test func trailerLimitIsInclusive() throws {
        let fitting = "X: " + String(repeating: "a", count: 15)
        #expect(try decode("0\r\n\(fitting)\r\n\r\n", as: .chunked, limits: limits).trailers == ["X"])
        #expect(bodyError("0\r\n\(fitting)a\r\n\r\n", as: .chunked, limits: limits) == .trailersTooLarge)
        #expect(bodyError("0\r\nA:\r\nB:\r\nC:\r\nD:\r\n\r\n", as: .chunked, limits: limits) == .trailersTooLarge)
    }
}
