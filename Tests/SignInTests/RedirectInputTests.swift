// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignSignIn

@Suite struct RedirectInputTests {
    private static let address = RedirectAddress(host: .ipv4, port: 0, path: "/callback")

    private func request(_ text: String, host: RedirectAddress.Host = .ipv4) -> RedirectRequest? {
        var input = RedirectInput(RedirectAddress(host: host, port: 0, path: "/callback"), port: 4711)
        return input.received(Array(text.utf8))
    }

    private func get(_ target: String, host: String = "127.0.0.1:4711") -> String {
        "GET \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n"
    }

    private func post(_ body: String, type: String = "application/x-www-form-urlencoded") -> String {
        "POST /callback HTTP/1.1\r\nHost: 127.0.0.1:4711\r\nContent-Type: \(type)\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    @Test func aQueryAtTheRedirectURIIsAResponse() {
        #expect(request(get("/callback?code=a%20b&state=s")) == .response("code=a%20b&state=s"))
        #expect(request(get("/callback?a?b")) == .response("a?b"))
    }

    @Test func aFormIsAResponse() {
        #expect(request(post("code=a&state=s")) == .response("code=a&state=s"))
        let type = "application/x-www-form-urlencoded;charset=UTF-8"
        #expect(request(post("code=a", type: type)) == .response("code=a"))
    }

    /// A browser asks for an icon, and other processes for anything.
    @Test(arguments: [
        "/favicon.ico", "/", "/callback", "/callback?", "/callback/?code=a", "/Callback?code=a", "//callback?code=a",
        "http://127.0.0.1:4711/callback?code=a",
    ])
    func anotherTargetIsNotFound(target: String) {
        #expect(request(get(target)) == .refused(404))
    }

    /// Another name that resolves to 127.0.0.1 must not reach the listener.
    @Test(arguments: ["evil.example:4711", "127.0.0.1", "127.0.0.1:4712", "localhost:4711", "[::1]:4711"])
    func anotherHostIsMisdirected(host: String) {
        #expect(request(get("/callback?code=a", host: host)) == .refused(421))
    }

    @Test func eachKindOfAddressHasItsHost() {
        for host in RedirectAddress.Host.allCases {
            let text = get("/callback?code=a", host: "\(host.rawValue):4711")
            #expect(request(text, host: host) == .response("code=a"))
        }
        #expect(request(get("/callback?code=a", host: "LOCALHOST:4711"), host: .localhost) == .response("code=a"))
    }

    /// Browsers leave out the scheme's own port.
    @Test(arguments: ["127.0.0.1", "127.0.0.1:80"]) func thePort80MayBeLeftOut(host: String) {
        var input = RedirectInput(RedirectAddress(host: .ipv4, port: 80, path: "/callback"), port: 80)
        #expect(input.received(Array(get("/callback?code=a", host: host).utf8)) == .response("code=a"))
    }

    @Test func otherRequestsAreRefused() {
        #expect(request("PUT /callback?a HTTP/1.1\r\nHost: 127.0.0.1:4711\r\n\r\n") == .refused(405))
        #expect(request("HEAD /callback?a HTTP/1.1\r\nHost: 127.0.0.1:4711\r\n\r\n") == .refused(405))
        #expect(request("GET /callback?a\r\n\r\n") == .refused(400))
        #expect(request(post("code=a", type: "application/json")) == .refused(400))
        #expect(request(post("")) == .refused(400))
        #expect(request("POST /callback HTTP/1.1\r\nHost: 127.0.0.1:4711\r\n\r\n") == .refused(411))
        let large = "POST /callback HTTP/1.1\r\nHost: 127.0.0.1:4711\r\nContent-Length: 65537\r\n\r\n"
        #expect(request(large) == .refused(413))
        #expect(request("GET /callback?\(String(repeating: "a", count: 17 << 10))") == .refused(414))
    }

    @Test func theLargestFormIsRead() {
        let body = "code=" + String(repeating: "a", count: RedirectInput.formBytes - 5)
        #expect(request(post(body)) == .response(body))
    }

    @Test func aRequestMayComeByteByByte() {
        for text in [get("/callback?code=a"), post("code=a")] {
            var input = RedirectInput(Self.address, port: 4711)
            let bytes = Array(text.utf8)
            for byte in bytes.dropLast() { #expect(input.received([byte]) == nil) }
            #expect(input.received(bytes.suffix(1)) == .response("code=a"))
        }
    }

    @Test func aPageHasNoScriptAndIsNotKept() {
        for page in RedirectPage.allCases {
            let text = String(decoding: page.response, as: UTF8.self)
            #expect(text.contains("You can close this window") && !text.contains("<script"))
            #expect(text.contains("Cache-Control: no-store\r\n") && text.contains("Referrer-Policy: no-referrer\r\n"))
            #expect(text.contains("Content-Security-Policy: default-src 'none'; "))
            #expect(String(decoding: page.redirect, as: UTF8.self).contains("Location: \(page.path)\r\n"))
        }
    }
}
