// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignCookies

@Suite struct SharedSessionTests {
    private static let now: Int64 = 1_800_000_000

    private static func cookie(
        _ name: String, _ value: String = "v", path: String = "/", sameSite: Cookie.SameSite = .unspecified,
        expires: Int64? = nil, domain: String? = nil
    ) -> Cookie {
        Cookie(
            .init(name: name, domain: domain ?? "login.example", isHostOnly: domain == nil, path: path),
            value: Secret(utf8: value), isSecure: true, isHTTPOnly: true, sameSite: sameSite, expires: expires,
            stored: now)
    }

    private static func session(_ cookies: Cookie...) -> SharedSession {
        var session = SharedSession(key: .init(group: "corp", host: "login.example"))
        for cookie in cookies { session.apply(.set(cookie)) }
        return session
    }

    private static func names(
        _ session: SharedSession, path: String = "/am?x", cause: RequestCause = .direct, sent: [String] = [],
        at time: Int64 = now
    ) -> [String] {
        session.cookies(
            path: Array(path.utf8), cause: cause, sent: SentCookies(sent.map { Array($0.utf8)[...] }), now: time
        ).map(\.name)
    }

    // MARK: The limits

    /// A page that sets 1,000 cookies leaves 64.
    @Test func aSessionHasRoomFor64Cookies() {
        var session = Self.session()
        let taken = (0..<1000).filter { session.apply(.set(Self.cookie("a", path: "/\($0)"))) }.count
        #expect(taken == 64 && session.cookies.count == 64 && session.fault == nil)
        // One that is there may change.
        let isReplaced = session.apply(.set(Self.cookie("a", "new", path: "/5")))
        #expect(isReplaced && session.cookies[5].value == Secret(utf8: "new") && session.cookies.count == 64)
    }

    @Test func aSessionHasRoomFor32KiB() {
        var session = Self.session()
        let value = String(repeating: "v", count: 4000)
        let taken = (0..<64).filter { session.apply(.set(Self.cookie("a", value, path: "/\($0)"))) }.count
        #expect(taken == 8 && session.fault == nil)
        let isReplaced = session.apply(.set(Self.cookie("a", "v", path: "/7")))
        #expect(isReplaced)
    }

    @Test(arguments: [
        cookie("a b"), cookie(""), cookie("a", "x\r\nSet-Cookie: b=c"), cookie("a", "x;y"), cookie("a", path: "am"),
        cookie("a", path: "/\r"), cookie("a", path: "/;x"), cookie("a", expires: -1),
        cookie("a", domain: "other.example"), cookie("a", domain: "a.login.example"), cookie("a", domain: ""),
        cookie("a", String(repeating: "v", count: 4096)),
    ])
    func aCookieThatIsNotValidIsNotStored(cookie: Cookie) {
        var session = Self.session()
        let isStored = session.apply(.set(cookie))
        #expect(!isStored && session.cookies.isEmpty && cookie.fault(for: "login.example") != nil)
    }

    // MARK: Requests

    @Test func cookiesWithLongerPathsComeFirst() {
        let session = Self.session(
            Self.cookie("root"), Self.cookie("am", path: "/am"), Self.cookie("folder", path: "/am/"),
            Self.cookie("other", path: "/a"))
        #expect(Self.names(session) == ["am", "root"])
        #expect(Self.names(session, path: "/am/x") == ["folder", "am", "root"])
        #expect(Self.names(session, path: "/amx") == ["root"])
        #expect(Self.names(session, path: "/?/am/") == ["root"])
    }

    @Test func theClientsOwnCookieWins() {
        let session = Self.session(Self.cookie("a"), Self.cookie("b"), Self.cookie("c"))
        #expect(Self.names(session, sent: ["x=1;a =2", "\t c"]) == ["b"])
        #expect(Self.names(session, sent: ["x=a; ax=1; A=1"]) == ["a", "b", "c"])
    }

    @Test func aCookieEndsAtItsExpiry() {
        let session = Self.session(Self.cookie("a", expires: Self.now + 10), Self.cookie("b"))
        #expect(Self.names(session, at: Self.now + 9) == ["a", "b"])
        #expect(Self.names(session, at: Self.now + 10) == ["b"])
        #expect(session.expired(at: Self.now + 10).map(\.name) == ["a"])
        #expect(Self.names(session, at: Self.now + 86_400) == [])
    }

    /// What a request of this cause gets of cookies with None, Lax, Strict and no SameSite.
    @Test(arguments: [
        (cause("none", "navigate", "document"), "none lax strict unspecified"),
        (cause("same-origin", "cors", "empty"), "none lax strict unspecified"),
        (cause(nil, nil, nil), "none lax strict unspecified"),
        (cause(nil, nil, nil, origin: "https://login.example"), "none lax strict unspecified"),
        (cause(nil, nil, nil, origin: "https://evil.example"), ""), (cause(nil, nil, nil, origin: "null"), ""),
        (cause("same-site", "navigate", "document"), "none lax strict unspecified"),
        (cause("same-site", "cors", "empty"), ""), (cause("same-site", "no-cors", "image"), ""),
        (cause("cross-site", "navigate", "document"), "none lax unspecified"),
        (cause("cross-site", "navigate", "document", isSafe: false), "none"),
        (cause("cross-site", "navigate", "iframe"), ""), (cause("same-site", "navigate", "iframe"), ""),
        (cause("none", "navigate", "iframe"), ""), (cause("cross-site", "no-cors", "object"), ""),
        (cause("same-origin", "navigate", "frame"), "none lax strict unspecified"),
        (cause("cross-site", "cors", "empty"), ""), (cause("cross-site", "no-cors", "script"), ""),
        (cause("cross-site", "websocket", "websocket"), ""),
        (cause("nonsense", "navigate", "document"), "none lax unspecified"),
        (cause("nonsense", nil, nil), ""),
    ])
    func sameSiteAndTheCauseDecide(cause: RequestCause, expected: String) {
        let session = Self.session(
            Self.cookie("none", sameSite: .none), Self.cookie("lax", sameSite: .lax),
            Self.cookie("strict", sameSite: .strict), Self.cookie("unspecified"))
        #expect(Self.names(session, cause: cause).joined(separator: " ") == expected)
    }

    private static func cause(
        _ site: String?, _ mode: String?, _ destination: String?, origin: String? = nil, isSafe: Bool = true
    ) -> RequestCause {
        cause(
            [
                "sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": destination, "origin": origin,
            ].compactMapValues(\.self), isSafe: isSafe)
    }

    private static func cause(_ fields: [String: String], isSafe: Bool = true) -> RequestCause {
        RequestCause(isSafe: isSafe, ownOrigin: "https://login.example") { fields[$0] }
    }

    @Test(arguments: [
        ("sec-purpose", "prefetch", "cross-site", false), ("sec-purpose", "Prefetch;prerender", "same-site", false),
        ("purpose", "prefetch", "cross-site", false), ("sec-purpose", "other", "cross-site", true),
        ("sec-purpose", "prefetch", "same-origin", true), ("sec-purpose", "prefetch", "none", true),
    ])
    func aPageOfAnotherOriginCannotPrefetch(field: String, value: String, site: String, usesSession: Bool) {
        let cause = Self.cause([
            "sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document", field: value,
        ])
        #expect(cause.usesSession == usesSession)
    }

    @Test(arguments: [
        (["referer": "https://evil.example/"], false), (["referer": "https://login.example.evil.example/"], false),
        (["referer": "https://login.example:8443/"], false), (["referer": "https://login.example/am?x"], true),
        (["referer": "https://login.example"], true), (["user-agent": "curl/8"], true),
        (["user-agent": "Mozilla/5.0 (X11)"], false),
        (["user-agent": "Mozilla/5.0 (X11)", "origin": "https://login.example"], false),
        (["user-agent": "Mozilla/5.0 (X11)", "sec-fetch-site": "none"], true),
    ])
    func withoutMetadataTheOtherFieldsDecide(fields: [String: String], isDirect: Bool) {
        #expect((Self.cause(fields) == .direct) == isDirect)
    }
}
