// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignHTTP1

@Suite struct ResponseHeadTests {
    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\n\r\n", 200, "OK"),
        ("HTTP/1.1 404 Not \t Found\r\n\r\n", 404, "Not \t Found"),
        ("HTTP/1.0 301 d\u{E9}plac\u{E9}\r\n\r\n", 301, "d\u{FFFD}plac\u{FFFD}"),
        ("HTTP/1.1 200 \r\n\r\n", 200, ""),
        ("HTTP/1.1 200\r\n\r\n", 200, ""),
        ("HTTP/1.1 999 X\r\n\r\n", 999, "X"),
    ])
    func validStatusLinesAreAccepted(response: String, status: Int, reason: String) throws {
        let parsed = try #require(try readResponse(response + "rest"))
        #expect(parsed.consumedBytes == octets(response).count)
        #expect(parsed.head.status == status)
        #expect(parsed.head.reason == reason)
        #expect(text(parsed.head.fields.bytes) == response)
        #expect(parsed.head.repair == nil)
    }

    @Test func theOctetsOfValuesAreThoseReceived() throws {
        let head = try #require(
            try readResponse(
                "HTTP/1.1 401 X\r\nWWW-Authenticate: Basic realm=\"\u{FC}\"\r\nX: y\r\nwww-authenticate: \r\n\r\n")
        ).head
        #expect(head.fields.valuesBytes(of: .wwwAuthenticate) == [octets("Basic realm=\"\u{FC}\"")[...], []])
        #expect(head.fields.valuesBytes(of: .wwwAuthenticate).first?.contains(0xFC) == true)
        #expect(head.fields.valuesBytes(of: .via) == [])
    }

    @Test func everyPrefixIsIncomplete() throws {
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\n"
        for count in 0..<whole.utf8.count {
            #expect(try readResponse(text(octets(whole).prefix(count))) == nil, "after \(count) bytes")
        }
    }

    @Test(arguments: [
        ("X", HTTP1Error.Code.malformedStatusLine),
        ("HTTX", .malformedStatusLine),
        ("<html>", .malformedStatusLine),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n", .malformedStatusLine),
        ("HTTP/1.1\r\n\r\n", .malformedStatusLine),
        ("HTTP/1.1 20\r\n\r\n", .malformedStatusLine),
        ("HTTP/1.1 20x OK\r\n\r\n", .malformedStatusLine),
        ("HTTP/1.1 2000 OK\r\n\r\n", .malformedStatusLine),
        ("HTTP/1.1 099 OK\r\n\r\n", .malformedStatusLine),
        ("HTTP/11 200 OK\r\n\r\n", .malformedStatusLine),
        ("HTTP/2.0 200 OK\r\n\r\n", .unsupportedVersion),
        ("HTTP/0.9 200 OK\r\n\r\n", .unsupportedVersion),
        ("HTTP/1.1 200 O\rK\r\n\r\n", .bareCarriageReturn),
        ("HTTP/1.1 200 O\u{0}K\r\n\r\n", .malformedStatusLine),
        ("HTTP/1.1 200 OK\r\n X: a\r\n\r\n", .malformedField),
        ("HTTP/1.1 200 OK\r\n: a\r\n\r\n", .malformedField),
        ("HTTP/1.1 200 OK\r\nX: a\u{0}\r\n\r\n", .malformedField),
    ])
    func ambiguityIsBlamedOnTheOrigin(response: String, code: HTTP1Error.Code) {
        let fault = responseError(response)
        #expect(fault?.code == code)
        #expect(fault?.statusHint == 502)
        #expect(fault?.sender == .origin)
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nConnection: Close\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n", true),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive, close\r\n\r\n", false),
    ])
    func originDecidesAboutPersistence(response: String, keepsAlive: Bool) throws {
        #expect(try readResponse(response)?.head.keepsAlive == keepsAlive)
    }

    /// RFC 9112 appendix C.2.2.
    @Test(arguments: [
        ("HTTP/1.0 407 No\r\nProxy-Connection: Keep-Alive\r\n\r\n", false, true),
        ("HTTP/1.0 407 No\r\nProxy-Connection: x, keep-alive\r\n\r\n", false, true),
        ("HTTP/1.0 407 No\r\nProxy-Connection: keep-alive\r\nConnection: close\r\n\r\n", false, false),
        ("HTTP/1.0 407 No\r\nProxy-Connection: close\r\n\r\n", false, false),
        ("HTTP/1.0 407 No\r\nProxy-Connection: close\r\nConnection: keep-alive\r\n\r\n", true, false),
        ("HTTP/1.0 407 No\r\n\r\n", false, false),
        ("HTTP/1.0 407 No\r\nConnection: keep-alive\r\n\r\n", true, true),
        ("HTTP/1.1 407 No\r\nProxy-Connection: close\r\n\r\n", true, false),
        ("HTTP/1.1 407 No\r\nProxy-Connection: keep-alive\r\n\r\n", true, true),
    ])
    func aParentMayUseAFieldOfItsOwn(response: String, originKeeps: Bool, parentKeeps: Bool) throws {
        let head = try #require(try readResponse(response)).head
        #expect(head.keepsAlive == originKeeps)
        #expect(head.parentKeepsAlive == parentKeeps)
    }

    @Test(arguments: [(100, true), (101, true), (199, true), (200, false)])
    func only1xxIsInformational(status: Int, isInformational: Bool) throws {
        #expect(try readResponse("HTTP/1.1 \(status) X\r\n\r\n")?.head.isInformational == isInformational)
    }
}
