// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import Testing

@testable import CountersignProxy

@Suite struct RequestTargetTests {
    private static func head(_ method: String = "GET", _ target: String, host: String = "h") -> String {
        "\(method) \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n"
    }

    static let absolute: [(method: String, target: String, origin: String, path: String)] = [
        ("GET", "http://a.example/", "http://a.example:80", "/"),
        ("GET", "HTTP://A.Example./x", "http://a.example:80", "/x"),
        ("GET", "https://a.example", "https://a.example:443", "/"),
        ("GET", "http://a.example:8080/a%2Fb?c=d&e", "http://a.example:8080", "/a%2Fb?c=d&e"),
        ("GET", "http://a.example?q", "http://a.example:80", "/?q"),
        ("GET", "http://[::1]:81/a//b/../c", "http://[::1]:81", "/a//b/../c"),
        ("GET", "http://a.example/http://b.example/", "http://a.example:80", "/http://b.example/"),
        ("GET", "ws://a.example/chat", "http://a.example:80", "/chat"),
        ("GET", "WSS://a.example", "https://a.example:443", "/"),
        ("OPTIONS", "http://a.example", "http://a.example:80", "*"),
        ("OPTIONS", "http://a.example/", "http://a.example:80", "/"),
    ]

    @Test(arguments: absolute)
    func anAbsoluteTargetIsReadOnce(_ row: (method: String, target: String, origin: String, path: String)) throws {
        let target = try RequestTarget(absoluteFormOf: requestHead(Self.head(row.method, row.target)))
        #expect(target.origin.description == row.origin)
        #expect(String(decoding: target.path, as: UTF8.self) == row.path)
    }

    @Test(arguments: [
        "/", "/path", "*", "a.example:80", "a.example", "ftp://a.example/", "proxy://a.example/", "file:///etc/passwd",
        "http:a.example", "http:/a.example", "http://", "http:///x", "http://:80/", "http://user@a.example/",
        "http://user:pw@a.example/", "http://a.example:/", "http://a.example:0/", "http://a.example:65536/",
        "http://a.example:080/", "http://a%2Eexample/", "http://a.example\\b/", "http://a.example/#f",
        "http://a.example#f",
        "http://0x7f.1/", "http://127.1/", "http://[::1/", "http://[fe80::1%25eth0]/", "://a.example/",
    ]) func aTargetThatIsNoneIsA400(_ text: String) throws {
        let head = try requestHead(Self.head("GET", text))
        let failure = #expect(throws: RequestTarget.Failure.self) { try RequestTarget(absoluteFormOf: head) }
        #expect(failure?.status == 400)
        #expect(failure?.detail.contains("user:pw") == false)
    }

    static let inside: [(method: String, target: String, host: String, path: String)] = [
        ("GET", "/", "a.example:8443", "/"),
        ("GET", "/x?y", "A.EXAMPLE:8443", "/x?y"),
        ("GET", "/", "a.example", "/"),
        ("OPTIONS", "*", "a.example:8443", "*"),
        ("GET", "https://a.example:8443/x", "a.example:8443", "/x"),
    ]

    @Test(arguments: inside)
    func insideAConnectTheTargetIsAPathOfItsOrigin(
        _ row: (method: String, target: String, host: String, path: String)
    ) throws {
        let origin = Origin(scheme: .https, host: "a.example", port: 8443)
        let head = try requestHead(Self.head(row.method, row.target, host: row.host))
        let target = try RequestTarget(insideConnectTo: origin, head: head)
        #expect(target.origin == origin)
        #expect(String(decoding: target.path, as: UTF8.self) == row.path)
    }

    @Test func withoutTLSTheSchemeIsHTTP() throws {
        let origin = Origin(scheme: .http, host: "a.example", port: 8080)
        for (target, host) in [
            ("/x", "a.example:8080"), ("/x", "a.example"), ("http://a.example:8080/x", "a.example"),
            ("HTTP://a.example:8080/x", "a.example"),
        ] {
            let head = try requestHead(Self.head("GET", target, host: host))
            let read = try RequestTarget(insideConnectTo: origin, head: head)
            #expect(read.origin == origin && String(decoding: read.path, as: UTF8.self) == "/x")
        }
        let loopback = Origin(scheme: .http, host: "::1", port: 80)
        let head = try requestHead(Self.head("GET", "/x", host: "[::1]"))
        #expect(try RequestTarget(insideConnectTo: loopback, head: head).origin == loopback)
        for (target, host) in [
            ("/x", "a.example:80"), ("/x", "a.example:443"), ("https://a.example:8080/x", "a.example:8080"),
            ("http://a.example/x", "a.example:8080"), ("ws://a.example:8080/x", "a.example:8080"),
        ] {
            let head = try requestHead(Self.head("GET", target, host: host))
            #expect(throws: RequestTarget.Failure.self) { try RequestTarget(insideConnectTo: origin, head: head) }
        }
    }

    static let outside: [(method: String, target: String, host: String)] = [
        ("GET", "/", "b.example:8443"), ("GET", "/", "a.example:443"), ("GET", "/", "a.example.b.example:8443"),
        ("GET", "https://b.example:8443/", "a.example:8443"), ("GET", "https://a.example/", "a.example:8443"),
        ("GET", "http://a.example:8443/", "a.example:8443"), ("GET", "*", "a.example:8443"),
        ("GET", "x", "a.example:8443"), ("GET", "https://a.example:8443/", "b.example"),
    ]

    @Test(arguments: outside)
    func insideAConnectAnotherOriginIsA400(_ row: (method: String, target: String, host: String)) throws {
        let origin = Origin(scheme: .https, host: "a.example", port: 8443)
        let head = try requestHead(Self.head(row.method, row.target, host: row.host))
        let failure = #expect(throws: RequestTarget.Failure.self) {
            try RequestTarget(insideConnectTo: origin, head: head)
        }
        #expect(failure?.status == 400)
    }

    /// The shortcut for a repeated spelling must give the same result as parsing the target.
    @Test(arguments: absolute)
    func theSpellingOfOneRequestReadsTheNext(
        _ row: (method: String, target: String, origin: String, path: String)
    ) throws {
        let spelling = Array(try RequestTarget(absoluteFormOf: requestHead(Self.head(row.method, row.target))).spelling)
        for rest in ["/", "/x?y", "", "?q", "#f", "/a#f", "1/", ".example/", "@b.example/", ":8081/"] {
            let head = try requestHead(Self.head("GET", String(decoding: spelling, as: UTF8.self) + rest))
            guard let path = RequestTarget.path(of: head, after: spelling) else {
                #expect(rest != "/" && rest != "/x?y")
                continue
            }
            let target = try RequestTarget(absoluteFormOf: head)
            #expect(target.origin.description == row.origin)
            #expect(path == target.path)
        }
    }

    @Test(arguments: inside)
    func theHostOfOneRequestReadsTheNext(_ row: (method: String, target: String, host: String, path: String)) throws {
        let head = try requestHead(Self.head("GET", "/next", host: row.host))
        #expect(RequestTarget.path(of: head, host: Array(row.host.utf8)).map { Array($0) } == Array("/next".utf8))
        for other in ["b.example:8443", row.host + "0", String(row.host.dropLast())] {
            #expect(RequestTarget.path(of: head, host: Array(other.utf8)) == nil)
        }
        let absolute = try requestHead(Self.head("GET", "https://b.example/", host: row.host))
        #expect(RequestTarget.path(of: absolute, host: Array(row.host.utf8)) == nil)
    }

    @Test(arguments: [
        ("a.example:443", "https://a.example:443"), ("A.example.:8443", "https://a.example:8443"),
        ("[::1]:443", "https://[::1]:443"), ("10.0.0.1:22", "https://10.0.0.1:22"),
    ]) func connectTakesHostAndPort(_ text: String, _ origin: String) throws {
        #expect(try RequestTarget.authority(of: requestHead(Self.head("CONNECT", text))).description == origin)
    }

    @Test(arguments: [
        "a.example", "a.example:", ":443", "a.example:443/", "https://a.example:443", "u@a.example:443", "a.example:0",
        "a.example:65536", "a.example:0443", "::1:443", "[::1]", "/",
    ]) func connectTakesNothingElse(_ text: String) throws {
        let head = try requestHead(Self.head("CONNECT", text))
        #expect(throws: RequestTarget.Failure.self) { try RequestTarget.authority(of: head) }
    }
}
