// SPDX-License-Identifier: Apache-2.0

import Testing
import WebViewProtocol

struct SignInTests {
    static var request: OpenRequest {
        OpenRequest(
            url: "https://login.example/", redirectURIs: ["com.example.app:/cb"],
            allowedOrigins: ["https://login.example", "https://idp.corp.example:8443"], timeLimit: .seconds(600))
    }

    struct Change: CustomTestStringConvertible {
        let testDescription: String
        let make: @Sendable (inout OpenRequest) -> Void

        init(_ description: String, _ make: @escaping @Sendable (inout OpenRequest) -> Void) {
            testDescription = description
            self.make = make
        }
    }

    static let cookie = Cookie(name: "a", value: "b", domain: "login.example")

    static func cookie(_ change: @escaping @Sendable (inout Cookie) -> Void) -> @Sendable (inout OpenRequest) -> Void {
        { request in
            var cookie = Self.cookie
            change(&cookie)
            request.cookies = [cookie]
        }
    }

    @Test(arguments: [
        Change("nothing") { _ in },
        Change("headers") { $0.headers = ["X-Token": "a b", "Authorization": "Bearer x"] },
        Change("a cookie", cookie { _ in }),
        Change("a cookie of the domain", cookie { $0.domain = ".corp.example" }),
        Change("a cookie with a quoted value", cookie { $0.value = "\"a, b\"" }),
        Change("captured cookies") { $0.captureCookies = CookieSelection(host: "IDP.corp.example", names: ["a"]) },
        Change("a proxy") { $0.proxy = "http://u:p@[::1]:3128" },
        Change("a data folder") { $0.dataFolder = "/tmp/x" },
        Change("page messages") { $0.pageMessages = PageMessageRules(origins: ["https://login.example"]) },
        Change("a day") { $0.timeLimit = .seconds(86400) },
    ])
    func isAccepted(change: Change) throws {
        var request = Self.request
        change.make(&request)
        #expect(try SignIn(request).first == PageRequest(url: request.url, headers: request.headers))
    }

    @Test(arguments: [
        Change("a page elsewhere") { $0.url = "https://evil.example/" },
        Change("an empty page") { $0.url = "about:blank" },
        Change("the redirect URI as page") { $0.url = "com.example.app:/cb" },
        Change("a redirect URI with a query") { $0.redirectURIs = ["com.example.app:/cb?x"] },
        Change("nine redirect URIs") { $0.redirectURIs = (0..<9).map { "com.example.app:/\($0)" } },
        Change("no origin") { $0.allowedOrigins = [] },
        Change("an origin with http") { $0.allowedOrigins.append("http://login.example") },
        Change("an origin with http on loopback") { $0.allowedOrigins.append("http://127.0.0.1:80") },
        Change("an origin with a path") { $0.allowedOrigins.append("https://a.example/b") },
        Change("no time") { $0.timeLimit = .zero },
        Change("more than a day") { $0.timeLimit = .seconds(86401) },
        Change("a field that is not a token") { $0.headers = ["X Y": "1"] },
        Change("a field with a line end") { $0.headers = ["X": "1\r\nY: 2"] },
        Change("the field Host") { $0.headers = ["hOst": "evil.example"] },
        Change("the field Cookie") { $0.headers = ["Cookie": "a=b"] },
        Change("seventeen fields") { request in (0..<17).forEach { request.headers["X-\($0)"] = "" } },
        Change("a cookie for another host", cookie { $0.domain = "evil.example" }),
        Change("a cookie for a host below", cookie { $0.domain = "a.login.example" }),
        Change("a cookie with a semicolon", cookie { $0.value = "a; Domain=b" }),
        Change("a cookie with a line end", cookie { $0.value = "a\r\nX: y" }),
        Change("a cookie without a name", cookie { $0.name = "" }),
        Change("a cookie whose name has a space", cookie { $0.name = "a b" }),
        Change("a cookie with a relative path", cookie { $0.path = "a" }),
        Change("a large cookie", cookie { $0.value = String(repeating: "a", count: 4096) }),
        Change("65 cookies") { $0.cookies = Array(repeating: SignInTests.cookie, count: 65) },
        Change("captured cookies elsewhere") { $0.captureCookies = CookieSelection(host: "a.example", names: []) },
        Change("a proxy elsewhere") { $0.proxy = "http://10.0.0.1:3128" },
        Change("a proxy with https") { $0.proxy = "https://127.0.0.1:3128" },
        Change("a proxy without a password") { $0.proxy = "http://u@127.0.0.1:3128" },
        Change("a proxy with percent-encoding") { $0.proxy = "http://u:%20@127.0.0.1:3128" },
        Change("a proxy with a path") { $0.proxy = "http://127.0.0.1:3128/x" },
        Change("a relative data folder") { $0.dataFolder = "x" },
        Change("a title with a line end") { $0.title = "a\nb" },
        Change("a user agent with a line end") { $0.userAgent = "a\r\nX: y" },
        Change("page messages elsewhere") { $0.pageMessages = PageMessageRules(origins: ["https://a.example"]) },
    ])
    func isRefused(change: Change) {
        var request = Self.request
        change.make(&request)
        #expect(throws: ProtocolError.self) { try SignIn(request) }
    }

    @Test func testsMayUseHTTPOnLoopbackOnly() throws {
        var request = Self.request
        request.allowedOrigins.append("http://127.0.0.1:8080")
        #expect(try SignIn(request, permitsLoopbackHTTP: true).policy.allowedOrigins.count == 3)
        request.allowedOrigins.append("http://10.0.0.1")
        #expect(throws: ProtocolError.self) { try SignIn(request, permitsLoopbackHTTP: true) }
    }

    @Test func theProxysPasswordIsNotInItsURL() throws {
        let proxy = try ProxyAddress("http://webview:a:b@c@[::1]:3128")
        #expect(proxy.url == "http://[::1]:3128")
        #expect(proxy.user == "webview")
        #expect(proxy.password == "a:b@c")
    }

    @Test func theNamedCookiesOfTheHostAreSelected() {
        func cookie(_ name: String, _ domain: String, _ path: String = "/") -> Cookie {
            Cookie(name: name, value: "v", domain: domain, path: path)
        }
        let wanted = [
            cookie("SID", ".example"), cookie("SID", "login.example", "/"), cookie("SID", "login.example", "/a"),
            cookie("key", ".login.example"),
        ]
        let others = [
            cookie("sid", "login.example"), cookie("SID", "a.login.example"), cookie("SID", "example"),
            cookie("SID", ".gin.example"), cookie("other", "login.example"),
        ]
        let selection = CookieSelection(host: "login.example", names: ["SID", "key"])
        #expect(selection.select(others + wanted.reversed()) == wanted)
        #expect(CookieSelection(host: "127.0.0.1", names: ["SID"]).select([cookie("SID", ".0.0.1")]).isEmpty)
    }
}
