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
        _ session: SharedSession, path: String = "/am?x", cause: CookieCause = .sameSite, sent: [String] = [],
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

    /// The cookies that a request of this cause gets, of those with None, Lax, Strict and no SameSite.
    @Test(arguments: [
        (CookieCause.sameSite, "none lax strict unspecified"),
        (.crossSite(isSafeNavigation: true), "none lax unspecified"), (.crossSite(isSafeNavigation: false), "none"),
    ])
    func sameSiteAndTheCauseDecide(cause: CookieCause, expected: String) {
        let session = Self.session(
            Self.cookie("none", sameSite: .none), Self.cookie("lax", sameSite: .lax),
            Self.cookie("strict", sameSite: .strict), Self.cookie("unspecified"))
        #expect(Self.names(session, cause: cause).joined(separator: " ") == expected)
    }
}
