// SPDX-License-Identifier: Apache-2.0

import Foundation
import FoundationNetworking
import Synchronization
import CountersignTestOrigin
import Testing

@testable import Countersign
@testable import CountersignNIO
@testable import CountersignURLSession

/// URLSession through a proxy in the same process.
@Suite(.waiting) struct LibraryURLSessionTests {
    /// A session through `proxy`.
    private static func session(
        _ proxy: ChallengeProxy, _ configuration: URLSessionConfiguration = .ephemeral
    ) async throws -> URLSession {
        URLSession(configuration: try await configuration.answering(through: proxy))
    }

    private static func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    // MARK: Connecting to the proxy

    @Test(arguments: [true, false])
    func aProcessThatTakesOverTheProxysPortReceivesNothing(afterARequest isUsed: Bool) async throws {
        let origin = try await PlainOrigin(head: "200 OK", body: "real")
        let home = try LibraryHome("\(origin.site) answer=basic plaintext=yes\n")
        let found = Mutex<(URLSession, port: Int)?>(nil)
        try await withProxy(home) { proxy, _ in
            let session = try await Self.session(proxy)
            if isUsed { _ = try await session.data(from: Self.url(origin.site)) }
            let port = try await proxy.address.port
            found.withLock { $0 = (session, port) }
        }
        let (session, port) = try #require(found.withLock { $0 })
        let stranger = try await PlainOrigin(port: port, head: "200 OK", body: "stranger")
        var request = URLRequest(url: try Self.url(origin.site))
        request.setValue("Bearer kanarie-token", forHTTPHeaderField: "Authorization")
        for _ in 0..<2 {
            let error = await #expect(throws: URLError.self) { _ = try await session.data(for: request) }
            #expect(error?.code == .cannotConnectToHost)
        }
        #expect(stranger.requests == [])
        #expect(origin.requests.count == (isUsed ? 1 : 0))
        try await stranger.stop()
        try await origin.stop()
    }

    @Test func aSessionRetainsNeitherTheProxyNorItsController() async throws {
        let origin = try await PlainOrigin(head: "200 OK")
        let kept = Mutex<URLSession?>(nil)
        weak var proxy: ChallengeProxy?
        weak var controller: ChallengeController?
        try await withProxy(try LibraryHome("")) { running, its in
            (proxy, controller) = (running, its)
            let session = try await Self.session(running)
            _ = try await session.data(from: Self.url(origin.site))
            kept.withLock { $0 = session }
        }
        let isGone = try await eventually { proxy == nil && controller == nil }
        #expect(isGone)
        let session = try #require(kept.withLock { $0 })
        let error = await #expect(throws: URLError.self) { _ = try await session.data(from: Self.url(origin.site)) }
        #expect(error?.code == .cannotConnectToHost)
        try await origin.stop()
    }

    /// A configuration whose copy has another type.
    private final class Uncopyable: URLSessionConfiguration, Makeable, @unchecked Sendable {
        override func copy(with zone: NSZone? = nil) -> Any { NSObject() }
    }

    /// Calls the initializer through a protocol, because Foundation has deprecated it and no other one can be
    /// inherited.
    private protocol Makeable { init() }

    private static func made<Kind: Makeable>(_: Kind.Type) -> Kind { Kind() }

    @Test func aConfigurationThatCannotBeCopiedIsAnError() async throws {
        try await withProxy(try LibraryHome("")) { proxy, _ in
            let error = await #expect(throws: URLError.self) {
                _ = try await Self.made(Uncopyable.self).answering(through: proxy)
            }
            #expect(error?.code == .unknown)
        }
    }

    // MARK: Errors

    @Test func anUntrustedServerIsAnErrorWithReasons() async throws {
        let origins = try LibraryOrigins.shared
        let url = try Self.url(origins.untrustedURL + "/file")
        let home = try LibraryHome("\(origins.untrustedURL)\n")
        try await withProxy(home) { proxy, _ in
            let session = try await Self.session(proxy)
            let error = await #expect(throws: URLError.self) { _ = try await session.data(from: url) }
            #expect(error?.code == .serverCertificateUntrusted)
            #expect(error?.localizedDescription.contains("issued by") == true, "\(error as Any)")
            #expect(error?.userInfo[NSURLErrorFailingURLErrorKey] as? URL == url)
        }
    }

    @Test func anUnreachableServerIsTheSameErrorAsWithoutAProxy() async throws {
        let port = try RefusingPort()
        defer { withExtendedLifetime(port) {} }
        let silent = try MisbehavingOrigin("tls-close")
        let plain = try MisbehavingOrigin("plain")
        let garbage = try MisbehavingOrigin("tls-garbage")
        let cases: [(String, URLError.Code)] = [
            ("http://127.0.0.1:\(port.number)/", .cannotConnectToHost),
            ("http://no-such-host.invalid/", .cannotFindHost),
            ("https://a.test.localhost:\(silent.port)/", .networkConnectionLost),
            ("https://c.test.localhost:\(plain.port)/", .secureConnectionFailed),
            ("https://b.test.localhost:\(garbage.port)/", .badServerResponse),
        ]
        let home = try LibraryHome("", anchors: [try TestPKI.shared.originAnchor])
        try await withProxy(home) { proxy, _ in
            let session = try await Self.session(proxy)
            for (url, code) in cases {
                let error = await #expect(throws: URLError.self) { _ = try await session.data(from: Self.url(url)) }
                #expect(error?.code == code, "\(url): \(error as Any)")
                #expect(error?.userInfo[NSLocalizedDescriptionKey] != nil)
            }
        }
    }

    @Test(arguments: ["502 Bad Gateway", "504 Gateway Timeout", "200 OK"])
    func anOriginCannotImpersonateTheProxy(_ status: String) async throws {
        let forged = "Proxy-Status: countersign; error=tls_certificate_error; details=\"forged\"\r\nConnection: via"
        let origin = try await PlainOrigin(head: "\(status)\r\n\(forged)", body: "of the origin")
        try await withProxy(try LibraryHome("")) { proxy, _ in
            let session = try await Self.session(proxy)
            for method in ["GET", "HEAD"] {
                var request = URLRequest(url: try Self.url(origin.site))
                request.httpMethod = method
                let (data, response) = try await session.data(for: request)
                #expect((response as? HTTPURLResponse).map { "\($0.statusCode)" } == String(status.prefix(3)))
                if method == "GET" { #expect(String(decoding: data, as: UTF8.self) == "of the origin") }
            }
        }
        try await origin.stop()
    }

    // MARK: Time-outs

    /// The time-outs of the configuration and of the request in seconds, and whether the whole task is limited.
    @Test(arguments: [(0.3, nil, nil), (60, 0.3, nil), (60, nil, 0.3), (0.3, 60, nil)] as [(Double, Double?, Double?)])
    func aTimeoutOfTheSessionOrTheRequestEndsATask(
        _ session: Double, _ request: Double?, _ resource: Double?
    ) async throws {
        let origin = try await PlainOrigin { _ in nil }
        try await withProxy(try LibraryHome("")) { proxy, _ in
            let configuration = URLSessionConfiguration.ephemeral
            configuration.timeoutIntervalForRequest = session
            if let resource { configuration.timeoutIntervalForResource = resource }
            let url = try Self.url(origin.site)
            let asked = request.map { URLRequest(url: url, timeoutInterval: $0) } ?? URLRequest(url: url)
            let through = try await Self.session(proxy, configuration)
            let began = ContinuousClock.now
            let error = await #expect(throws: URLError.self) { _ = try await through.data(for: asked) }
            #expect(error?.code == .timedOut)
            let took = ContinuousClock.now - began
            #expect(took >= .milliseconds(300))
            #expect(took < .seconds(50))
        }
        try await origin.stop()
    }

    @Test func theTimeoutOfTheWholeTaskIncludesRedirects() async throws {
        let origin = try await PlainOrigin { request in
            request.hasPrefix("GET /next ") ? nil : PlainOrigin.response("302 Found\r\nLocation: /next")
        }
        try await withProxy(try LibraryHome("")) { proxy, _ in
            let configuration = URLSessionConfiguration.ephemeral
            // Two requests arrive in this time even on a busy machine.
            configuration.timeoutIntervalForResource = 10
            let session = try await Self.session(proxy, configuration)
            let error = await #expect(throws: URLError.self) { _ = try await session.data(from: Self.url(origin.site)) }
            #expect(error?.code == .timedOut)
            #expect(origin.requests.count == 2)
        }
        try await origin.stop()
    }

    @Test func aCancelledTaskEndsItsRequestAtTheOrigin() async throws {
        let origin = try await PlainOrigin { _ in nil }
        try await withProxy(try LibraryHome("")) { proxy, _ in
            let session = try await Self.session(proxy)
            let url = try Self.url(origin.site)
            let task = Task { try await session.data(from: url) }
            let isAsked = try await eventually { origin.requests.count == 1 }
            #expect(isAsked)
            #expect(origin.openConnections == 1)
            task.cancel()
            let error = await #expect(throws: URLError.self) { _ = try await task.value }
            #expect(error?.code == .cancelled)
            let isClosed = try await eventually { origin.openConnections == 0 }
            #expect(isClosed)
            #expect(origin.requests.count == 1)
        }
        try await origin.stop()
    }

    // MARK: Server trust

    @Test func acceptingAServerAppliesToOneTaskOnly() async throws {
        let origins = try LibraryOrigins.shared
        let url = try Self.url(origins.untrustedURL + "/file")
        let delegate = FixedTrust(.proceed)
        try await withProxy(try LibraryHome("\(origins.untrustedURL)\n"), trust: delegate) { proxy, _ in
            let session = try await Self.session(proxy)
            for count in 1...3 {
                let (data, _) = try await session.data(from: url)
                #expect(String(decoding: data, as: UTF8.self) == "a file\n")
                #expect(delegate.asked.withLock { $0.count } == count)
            }
        }
    }

    // MARK: Requests

    @Test(arguments: [
        ("https://open.test.localhost/a b", "GET", "X-Own", "a", "GET https://open.test.localhost/a%20b HTTP/1.1"),
        ("https://open.test.localhost/a#part", "GET", "X-Own", "a", "GET https://open.test.localhost/a HTTP/1.1"),
        ("https://jdoe@open.test.localhost/", "GET", "X-Own", "a", nil),
        ("https://open.test.localhost/", "CONNECT", "X-Own", "a", nil),
        ("https://open.test.localhost/", "G ET", "X-Own", "a", nil),
        ("https://open.test.localhost/", "GET / HTTP/1.1\r\nInjected: b\r\n\r\nGET", "X-Own", "a", nil),
        ("https://open.test.localhost/", "GET", "X-Own", "a\r\nInjected: b", nil),
        ("https://open.test.localhost/", "GET", "X-Own", "a\nInjected: b", nil),
        ("https://open.test.localhost/", "GET", "X-Own:\r\nInjected", "b", nil),
    ])
    func noRequestCanInjectALine(
        _ text: String, _ method: String, _ name: String, _ value: String, _ start: String?
    ) async throws {
        let configuration = URLSessionConfiguration.ephemeral
        // URLRequest itself rejects values with line breaks.
        configuration.httpAdditionalHeaders = [name: value]
        let settings = SessionSettings(configuration)
        var request = URLRequest(url: try Self.url(text))
        request.httpMethod = method
        func bytes() throws -> [UInt8] {
            try ProxiedRequest(request, with: settings).head()
        }
        guard let start else {
            let error = #expect(throws: URLError.self) { _ = try bytes() }
            #expect(error?.code == .badURL)
            return
        }
        let expected = "\(start)\r\nHost: open.test.localhost\r\n\(name): \(value)\r\n\r\n"
        #expect(String(decoding: try bytes(), as: UTF8.self) == expected)
    }

    // MARK: Cookies

    @Test func eachCookieFieldIsOneCookie() throws {
        let url = try Self.url("https://open.test.localhost/here")
        let response = ProxiedResponse(
            status: 200,
            fields: [
                ("Set-Cookie", "a=1; Expires=Wed, 09 Jun 2100 10:18:14 GMT; HttpOnly; Secure; Path=/p"),
                ("set-cookie", "b=x, c=injected; Path=/"),
                ("Set-Cookie", "d=1; Path=/q, e=injected"),
                ("Set-Cookie", "f=\"quoted, i=too\"; Expires=Wed, 09 Jun 2100 10:18:14 GMT; HttpOnly; Secure; Path=/p"),
                ("Set-Cookie", "no cookie"), ("Set-Cookie", "=nameless"), ("Set-Cookie", "g, h=1"),
            ], body: Data())
        let storage = try #require(URLSessionConfiguration.ephemeral.httpCookieStorage)
        for cookie in storage.cookies ?? [] { storage.deleteCookie(cookie) }
        response.storeCookies(of: url, in: storage)
        let cookies = (storage.cookies ?? []).sorted { $0.name < $1.name }
        #expect(cookies.map(\.name) == ["a", "b", "d", "f"])
        #expect(cookies.map(\.value) == ["1", "x, c=injected", "1", "\"quoted, i=too\""])
        #expect(cookies.map(\.path) == ["/p", "/", "/", "/p"])
        #expect(cookies.map(\.isSecure) == [true, false, false, true])
        #expect(cookies.map(\.isHTTPOnly) == [true, false, false, true])
        let end = Date(timeIntervalSince1970: 4_116_219_494)
        #expect(cookies.map(\.expiresDate) == [end, nil, nil, end])
    }
}
