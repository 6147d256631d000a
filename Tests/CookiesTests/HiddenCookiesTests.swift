// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignCookies

@Suite struct HiddenCookiesTests {
    private static let path = Array("/app/page?q=/other".utf8)

    private static func hidden(
        _ responses: [[String]], isSecure: Bool = true, cause: CookieCause = .sameSite
    ) -> HiddenCookies {
        var hidden = HiddenCookies()
        let reader = SetCookieReader(host: "www.corp.example", names: nil, now: 1000) { $0 == "example" }
        for fields in responses {
            hidden.received(
                fields.map { Array($0.utf8)[...] }, reader, path: path, isSecure: isSecure, cause: cause)
        }
        return hidden
    }

    /// The Cookie field of a request whose client has sent `own`.
    private static func sent(_ hidden: HiddenCookies, own: [String] = []) -> [String] {
        let remaining = hidden.remaining(of: own.map { Array($0.utf8)[...] })
        return remaining.map { String(decoding: $0, as: UTF8.self) }
            + hidden.cookies.map { "\($0.name)=\($0.value.utf8Text ?? "?")" }
    }

    private static func lines(_ hidden: HiddenCookies, besides own: [String] = []) -> [String] {
        hidden.lines(besides: own.map { Array($0.utf8)[...] }, path: path).map { String(decoding: $0, as: UTF8.self) }
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let field: String
        var isSent = true
        var isSecure = true
        var cause = CookieCause.sameSite
        var testDescription: String { field }
    }

    @Test(arguments: [
        Row(field: "k=1"), Row(field: "k=1; Path=/"), Row(field: "k=1; Path=/app"), Row(field: "k=1; Path=/app/"),
        Row(field: "k=1; Path=/app/page"), Row(field: "k=1; Domain=corp.example"), Row(field: "k=1; Secure"),
        Row(field: "k=1; HttpOnly; SameSite=Strict"), Row(field: "k=1; Max-Age=60"),
        Row(field: "k=1; Expires=Thu, 01 Jan 2065 00:00:00 GMT"),
        Row(field: "__Host-k=1; Secure; Path=/"), Row(field: "__Secure-k=1; Secure"),
        Row(field: "k=1", isSecure: false), Row(field: "k=1; Path=/", isSecure: false),
        // Another path.
        Row(field: "k=1; Path=/other", isSent: false), Row(field: "k=1; Path=/ap", isSent: false),
        Row(field: "k=1; Path=/app/page/", isSent: false),
        // Another host, or one of everybody.
        Row(field: "k=1; Domain=www2.corp.example", isSent: false), Row(field: "k=1; Domain=example", isSent: false),
        // Expired.
        Row(field: "k=1; Max-Age=0", isSent: false),
        Row(field: "k=1; Expires=Thu, 01 Jan 1970 00:00:01 GMT", isSent: false),
        // Names that need more.
        Row(field: "__Host-k=1; Secure", isSent: false), Row(field: "__Host-k=1; Path=/", isSent: false),
        Row(field: "__Host-k=1; Secure; Path=/; Domain=www.corp.example", isSent: false),
        Row(field: "__Secure-k=1", isSent: false),
        // Without TLS.
        Row(field: "k=1; Secure", isSent: false, isSecure: false),
        Row(field: "__Host-k=1; Secure; Path=/", isSent: false, isSecure: false),
        // Requests that a page of another site causes.
        Row(field: "k=1; SameSite=Strict", isSent: false, cause: .crossSite(isSafeNavigation: true)),
        Row(field: "k=1; SameSite=Lax", cause: .crossSite(isSafeNavigation: true)),
        Row(field: "k=1; SameSite=Lax", isSent: false, cause: .crossSite(isSafeNavigation: false)),
        Row(field: "k=1; Partitioned; Secure", isSent: false), Row(field: "k=1; SameSite=None", isSent: false),
    ])
    func theAnswerHasTheCookiesThatABrowserWouldSend(_ row: Row) {
        let hidden = Self.hidden([[row.field]], isSecure: row.isSecure, cause: row.cause)
        let name = row.field.prefix { $0 != "=" }
        #expect(Self.sent(hidden) == (row.isSent ? ["\(name)=1"] : []))
        // The client itself decides which cookies it keeps.
        #expect(Self.lines(hidden) == [row.field])
    }

    @Test func newValuesReplaceTheClients() {
        let hidden = Self.hidden([["b=new; Path=/", "c=3"]])
        #expect(Self.sent(hidden, own: ["a=1; b=old;c=2", " b = other ; d"]) == ["a=1", "d", "c=3", "b=new"])
        #expect(hidden.replaces("b") && !hidden.replaces("a"))
    }

    @Test func aCookieThatIsRemovedIsNotSent() {
        let hidden = Self.hidden([["b=; Max-Age=0; Path=/"]])
        #expect(hidden.changesRequest && Self.sent(hidden, own: ["a=1; b=old"]) == ["a=1"])
        #expect(Self.sent(hidden, own: ["b=old"]) == [])
    }

    @Test func theLastResponseCounts() {
        let hidden = Self.hidden([["k=1; Path=/", "l=1"], ["k=2; Path=/; HttpOnly", "m=1"]])
        #expect(Self.sent(hidden) == ["l=1", "m=1", "k=2"])
        #expect(Self.lines(hidden) == ["l=1", "k=2; Path=/; HttpOnly", "m=1"])
        let removed = Self.hidden([["k=1; Path=/"], ["k=; Path=/; Max-Age=0"]])
        #expect(Self.sent(removed) == [] && Self.lines(removed) == ["k=; Path=/; Max-Age=0"])
    }

    @Test func theFinalResponseReplacesEarlierOnes() {
        let hidden = Self.hidden([["k=1; Path=/", "l=1", "m=1; Domain=corp.example"]])
        #expect(
            Self.lines(hidden, besides: ["k=2; path=/; Secure", "l=1", "m=2"]) == ["m=1; Domain=corp.example"])
        #expect(Self.lines(hidden, besides: ["k=2; Path=/app"]).count == 3)
    }

    @Test func aServerCannotFillTheMemory() {
        let hidden = Self.hidden((0..<100).map { ["k\($0)=" + String(repeating: "x", count: 1000)] })
        #expect(Self.lines(hidden).count == 32)
    }

    @Test func whatIsNoCookieIsPassedOnOnly() {
        let hidden = Self.hidden([["k", "=v", "sp ace=1", "\u{e9}=1"]])
        #expect(!hidden.changesRequest && Self.lines(hidden).count == 4)
    }
}
