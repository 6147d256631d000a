// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import Glibc
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignProxy

/// Responses that are not clean: they are delivered clean, and their connection serves no other exchange.
@Suite struct RepairedResponseTests {
    private static let get = "GET http://a.example/x HTTP/1.1\r\nHost: a\r\n\r\n"
    private static let unauthorized = "HTTP/1.1 401 No\nWWW-Authenticate: Basic\n realm=\"r\"\nContent-Length: 2\n\nno"
    private static let ok = "HTTP/1.1 200 OK\nX : a\nContent-Length: 2\n\nok"

    /// The CHALLENGE_MESSAGE of MS-NLMP §4.2.4.3.
    static let challenge =
        "TlRMTVNTUAACAAAADAAMADgAAAAzgoriASNFZ4mrze8AAAAAAAAAACQAJABEAAAABgBwFwAAAA9TAGUAcgB2AGUAcgACAAwA"
        + "RABvAG0AYQBpAG4AAQAMAFMAZQByAHYAZQByAAAAAAA="

    @Test func aChallengeIsAnsweredOnAnotherConnection() throws {
        let bench = try Bench(sites: "http://a.example answer=basic plaintext=yes", password: "pw")
        let second = try bench.idleOrigin(withCredential: true)
        let first = try bench.idleOrigin(withCredential: true)
        try bench.send(Self.get)
        #expect(try first.sent().hasPrefix("GET /x "))
        try first.receive(Self.unauthorized)
        #expect(!first.isActive)
        #expect(try second.sent().contains("\r\nAuthorization: Basic "))
        try second.receive(Self.ok)
        let answer = try bench.answer()
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\nX: a\r\nContent-Length: 2\r\n"), "\(answer)")
        #expect(answer.hasSuffix("\r\n\r\nok") && !answer.contains("repaired"))
        #expect(!second.isActive)
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 103 Early\n\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ])
    func theConnectionServesNoOtherRequest(response: String) throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send(Self.get)
        try origin.receive(response)
        #expect(try bench.answer().contains("\r\n\r\n") && bench.client.isActive)
        #expect(!origin.isActive)
    }

    /// The handshake needs the connection on which it began, and no other request gets it.
    @Test func aHandshakeOfNTLMEndsOnItsConnection() throws {
        let bench = try Bench(sites: "http://a.example answer=ntlm plaintext=yes", password: "pw")
        let second = try bench.idleOrigin(withCredential: true)
        let first = try bench.idleOrigin(withCredential: true)
        try bench.send(Self.get)
        try first.receive("HTTP/1.1 401 No\nWWW-Authenticate: NTLM\nContent-Length: 0\n\n")
        #expect(!first.isActive)
        #expect(try second.sent().contains("\r\nAuthorization: NTLM "))
        try second.receive("HTTP/1.1 401 No\nWWW-Authenticate: NTLM \(Self.challenge)\nContent-Length: 0\n\n")
        #expect(try second.sent().contains("\r\nAuthorization: NTLM "))
        try second.receive(Self.ok)
        #expect(try bench.answer().hasSuffix("\r\n\r\nok"))
        #expect(!second.isActive)
    }

    /// Another reader may have found another end. The handshake begins again.
    @Test func aHandshakeDoesNotGoOnBehindAmbiguousFraming() throws {
        let bench = try Bench(sites: "http://a.example answer=ntlm plaintext=yes", password: "pw")
        let other = try bench.idleOrigin(withCredential: true)
        let origin = try bench.idleOrigin(withCredential: true)
        try bench.send(Self.get)
        try origin.receive("HTTP/1.1 401 No\r\nWWW-Authenticate: NTLM\r\nContent-Length: 0\r\n\r\n")
        try origin.receive(
            "HTTP/1.1 401 No\r\nWWW-Authenticate: NTLM \(Self.challenge)\r\nContent-Length: 5\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        #expect(!origin.isActive)
        #expect(try other.sent().contains("\r\nAuthorization: NTLM TlRMTVNTUAAB"))
    }

    @Test func theClientsOwnHandshakeEndsOnItsConnection() throws {
        let bench = try Bench()
        let own = try bench.boundOrigin()
        func send(_ token: String) throws {
            try bench.send("GET http://a.example/ HTTP/1.1\r\nHost: a\r\nAuthorization: NTLM \(token)\r\n\r\n")
        }
        try send("TlRMTVNTUAAB")
        try own.receive("HTTP/1.1 401 No\nWWW-Authenticate: NTLM TlRMTVNTUAAC\nContent-Length: 0\n\n")
        #expect(try bench.answer().hasPrefix("HTTP/1.1 401 No\r\nWWW-Authenticate: NTLM TlRMTVNTUAAC\r\n"))
        #expect(own.isActive)
        _ = try own.sent()
        try send("TlRMTVNTUAAD")
        #expect(try own.sent().contains("\r\nAuthorization: NTLM TlRMTVNTUAAD\r\n"))
        try own.receive(Self.ok)
        #expect(try bench.answer().hasSuffix("\r\n\r\nok"))
        #expect(!own.isActive)
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "line feed without carriage return"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", "malformed Content-Length"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2 \r\nok\r\n0\r\n\r\n", "malformed chunk header"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", nil),
    ])
    func theAccessLogNotesIt(response: String, deviation: String?) throws {
        let path = "/tmp/countersign-repaired-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).log"
        defer { unlink(path) }
        let bench = try Bench(accessLog: AccessLog(path: path) { _ in })
        let origin = try bench.idleOrigin()
        try bench.send(Self.get)
        try origin.receive(response)
        #expect(!(try bench.answer()).contains("Proxy-Status"))
        let file = try #require(fopen(path, "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = fread(&bytes, 1, bytes.count, file)
        let line = String(decoding: bytes[..<count], as: UTF8.self)
        let note = deviation.map { #""reason":"the response was repaired: \#($0)","# }
        #expect(line.contains(note ?? #""status":200"#), "\(line)")
        #expect(line.contains("repaired") == (deviation != nil), "\(line)")
    }
}
