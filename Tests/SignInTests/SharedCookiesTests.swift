// SPDX-License-Identifier: Apache-2.0

import CountersignCookies
import CountersignCryptography
import Testing

@testable import CountersignSignIn

@Suite struct SharedCookiesTests {
    private static let now: Int64 = 1_800_000_000
    private static let host = "login.corp.example"

    private static func shared(_ stored: [Cookie] = []) throws -> SharedCookies {
        let text = """
            {"issuer": "https://\(host)", "client_id": "c",
             "session": {"group": "corp", "host": "\(host)", "cookies": ["sid", "__Host-key"]}}
            """
        let scope = try #require(try SignInProfile(Array(text.utf8)).session)
        var session = SharedSession(key: SharedSession.Key(group: "corp", host: host))
        for cookie in stored { session.apply(.set(cookie)) }
        return SharedCookies(scope, stored: session)
    }

    private static func cookie(
        _ name: String = "sid", _ value: String = "s", domain: String = host, isHostOnly: Bool = true,
        path: String = "/", isSecure: Bool = true, isHTTPOnly: Bool = true, sameSite: Cookie.SameSite = .lax,
        expires: Int64? = nil
    ) -> Cookie {
        Cookie(
            Cookie.Identity(name: name, domain: domain, isHostOnly: isHostOnly, path: path), value: Secret(utf8: value),
            isSecure: isSecure, isHTTPOnly: isHTTPOnly, sameSite: sameSite, expires: expires, stored: now)
    }

    private static func reported(
        _ name: String = "sid", _ value: String = "s", domain: String = host, path: String = "/",
        expires: Int64? = nil, isSecure: Bool = true, isHTTPOnly: Bool = true,
        sameSite: WebViewCookie.SameSite = .lax
    ) -> WebViewCookie {
        WebViewCookie(
            name: name, value: Secret(utf8: value), domain: domain, path: path, expires: expires, isSecure: isSecure,
            isHTTPOnly: isHTTPOnly, sameSite: sameSite)
    }

    private func captured(_ cookies: [WebViewCookie], in shared: SharedCookies, _ known: [Cookie] = []) -> [Cookie] {
        shared.report(cookies, at: Self.now)
        return captured(in: shared, known)
    }

    private func captured(in shared: SharedCookies, _ known: [Cookie]) -> [Cookie] {
        shared.captured(at: Self.now, isPublicSuffix: { $0 == "example" }) { identity in
            known.first { $0.identity == identity }.map { .init(sameSite: $0.sameSite, stored: $0.stored) }
        }
    }

    @Test func theWindowGetsTheNamedCookiesOfTheHostAlone() throws {
        let shared = try Self.shared([
            Self.cookie(sameSite: .strict, expires: Self.now + 60),
            Self.cookie("__Host-key", isHTTPOnly: false, sameSite: .unspecified),
            Self.cookie("other"), Self.cookie("sid", "up", domain: "corp.example", isHostOnly: false),
        ])
        #expect(
            shared.given == [
                Self.reported(expires: Self.now + 60, sameSite: .strict),
                Self.reported("__Host-key", isHTTPOnly: false, sameSite: .lax),
            ])
    }

    @Test func anAttributeIsKeptAsTheWindowReportsIt() throws {
        let cookies = [
            Self.reported(path: "/a", expires: Self.now + 60, isSecure: false, isHTTPOnly: false),
            Self.reported("sid", "b", domain: ".corp.example", sameSite: .strict),
        ]
        #expect(
            captured(cookies, in: try Self.shared()) == [
                Self.cookie(path: "/a", isSecure: false, isHTTPOnly: false, expires: Self.now + 60),
                Self.cookie("sid", "b", domain: "corp.example", isHostOnly: false, sameSite: .strict),
            ])
    }

    /// The window does not distinguish a cookie without SameSite from one with None.
    @Test func sameSiteIsAsTheVaultKnowsIt() throws {
        let shared = try Self.shared()
        let (cookie, plain) = (Self.reported(sameSite: .none), Self.reported(isSecure: false, sameSite: .none))
        func attributes(_ cookie: WebViewCookie, _ known: [Cookie]) -> [Cookie.SameSite] {
            captured([cookie], in: shared, known).map(\.sameSite)
        }
        #expect(attributes(cookie, []) == [.unspecified])
        #expect(attributes(cookie, [Self.cookie(sameSite: .none)]) == [.none])
        #expect(attributes(cookie, [Self.cookie(path: "/b", sameSite: .none)]) == [.unspecified])
        #expect(attributes(cookie, [Self.cookie(sameSite: .lax)]) == [.unspecified])
        #expect(attributes(plain, [Self.cookie(sameSite: .none)]) == [.unspecified])
    }

    @Test func theLastReportCounts() throws {
        let shared = try Self.shared([Self.cookie("sid", "old")])
        #expect(captured([Self.reported("sid", "new")], in: shared) == [Self.cookie("sid", "new")])
        // The cookies that the window received are in the vault already.
        #expect(captured([Self.reported("sid", "old")], in: shared) == [])
        #expect(captured([], in: shared) == [])
    }

    /// Another client has signed in again while the window was open.
    @Test func aCookieThatTheVaultHasGotLaterStays() throws {
        let shared = try Self.shared()
        let known = [Self.cookie("sid", "other")]
        shared.report([Self.reported("sid", "new")], at: Self.now - 1)
        // Reported once more, unchanged.
        shared.report([Self.reported("sid", "new")], at: Self.now + 1)
        #expect(captured(in: shared, known) == [])
        #expect(captured(in: shared, []) == [Self.cookie("sid", "new")])
        shared.report([Self.reported("sid", "newest")], at: Self.now + 1)
        #expect(captured(in: shared, known) == [Self.cookie("sid", "newest")])
    }

    @Test func aLongLifetimeIsShortened() throws {
        let found = captured([Self.reported(expires: Self.now + 500 * 86_400)], in: try Self.shared())
        #expect(found.map(\.expires) == [Self.now + 400 * 86_400])
    }

    @Test(arguments: [
        reported("other"), reported(domain: "evil.example"), reported(domain: "a.\(host)"),
        reported(domain: ".example"), reported(domain: ".evil.example"), reported(expires: now), reported(expires: -1),
        reported("__Host-key", isSecure: false), reported("__Host-key", domain: ".\(host)"), reported(path: "a"),
        reported("sid", String(repeating: "a", count: 4096)), reported("sid", "a;b"),
    ])
    func anyOtherCookieIsNotTaken(cookie: WebViewCookie) throws {
        #expect(captured([cookie], in: try Self.shared()) == [])
    }
}
