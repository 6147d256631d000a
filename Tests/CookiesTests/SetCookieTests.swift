// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignCookies

@Suite struct SetCookieTests {
    static let now: Int64 = 1_800_000_000

    static func read(
        _ field: String, host: String = "login.corp.example", path: String = "/am/json?x=/y", names: [String] = ["sid"]
    ) -> SharedSession.Change? {
        SetCookieReader(host: host, names: names, now: now) { ["example", "co.uk", "corp.co.uk"].contains($0) }
            .change(Array(field.utf8), requestPath: Array(path.utf8))?.change
    }

    static func cookie(_ field: String, host: String = "login.corp.example") -> Cookie? {
        if case .set(let cookie)? = read(field, host: host) { cookie } else { nil }
    }

    @Test func aCookieHasItsAttributes() throws {
        let found = try #require(
            Self.cookie(
                "sid = a=b c ;Domain=.Corp.Example; PATH=/am;secure; HttpOnly;SameSite=Strict; Max-Age=60; unknown=1"))
        #expect(found.value == Secret(utf8: "a=b c"))
        #expect(
            found.identity == .init(name: "sid", domain: "corp.example", isHostOnly: false, path: "/am"))
        #expect(found.isSecure && found.isHTTPOnly && found.sameSite == .strict && found.expires == Self.now + 60)
        #expect(found.stored == Self.now)
    }

    @Test func withoutAttributesItIsForTheHostAndTheFolder() throws {
        let found = try #require(Self.cookie("sid=1"))
        #expect(
            found.identity == .init(name: "sid", domain: "login.corp.example", isHostOnly: true, path: "/am"))
        #expect(!found.isSecure && !found.isHTTPOnly && found.sameSite == .unspecified && found.expires == nil)
        for (path, expected) in [("/", "/"), ("/a", "/"), ("/a/", "/a"), ("*", "/"), ("", "/"), ("/a/b/c?/d", "/a/b")] {
            #expect(SetCookieReader.defaultPath(for: Array(path.utf8)) == expected)
        }
    }

    @Test(arguments: [
        "other=1", "SID=1", "sid", "=sid", "", ";sid=1", "sid=\u{1}", "sid=a\rb", "sid=a\u{7F}",
        "sid=1; Domain=other.example", "sid=1; Domain=a.login.corp.example", "sid=1; Domain=example",
        "sid=1; Domain=gin.corp.example", "sid=1; SameSite=None", "sid=" + String(repeating: "a", count: 5000),
        "sid=1; Path=/" + String(repeating: "a", count: 5000), "sid=1; Domain=corp.example\u{0}",
        "sid=1; Secure; Partitioned", "sid=; Max-Age=0; partitioned",
    ])
    func otherCookiesAreIgnored(field: String) {
        #expect(Self.read(field) == nil)
    }

    /// A cookie for a domain that is a public suffix and the host itself is for the host alone (RFC 6265 §5.3, step 5).
    @Test func aPublicSuffixIsNoDomain() throws {
        #expect(Self.read("sid=1; Domain=co.uk", host: "a.co.uk") == nil)
        #expect(try #require(Self.cookie("sid=1; Domain=corp.co.uk", host: "corp.co.uk")).isHostOnly)
        #expect(try #require(Self.cookie("sid=1; Domain=192.0.2.1", host: "192.0.2.1")).isHostOnly)
        #expect(Self.read("sid=1; Domain=0.2.1", host: "192.0.2.1") == nil)
    }

    @Test func thePrefixesOfNamesAreKept() {
        func isTaken(_ field: String) -> Bool {
            Self.read(field, path: "/login", names: ["__Host-sid", "__Secure-sid"]) != nil
        }
        #expect(isTaken("__Secure-sid=1; Secure") && !isTaken("__Secure-sid=1"))
        #expect(isTaken("__Host-sid=1; Secure; Path=/"))
        #expect(!isTaken("__Host-sid=1; Secure") && !isTaken("__Host-sid=1; Secure; Path=x"))
        #expect(!isTaken("__Host-sid=1; Path=/") && !isTaken("__Host-sid=1; Secure; Path=/am"))
        #expect(!isTaken("__Host-sid=1; Secure; Path=/; Domain=corp.example"))
    }

    @Test(arguments: [
        "sid=; Max-Age=0", "sid=x; Max-Age=-1", "sid=; expires=Thu, 01 Jan 1970 00:00:00 GMT",
        "sid=; Expires=Thursday, 01-Jan-70 00:00:00 GMT", "sid=1; Max-Age=0; Expires=Fri, 31 Dec 2099 23:59:59 GMT",
        "sid=; Max-Age=-99999999999999999999",
    ])
    func anExpiredCookieIsRemoved(field: String) {
        let identity = Cookie.Identity(name: "sid", domain: "login.corp.example", isHostOnly: true, path: "/am")
        #expect(Self.read(field) == .remove(identity))
    }

    @Test func lifetimesEndAfter400Days() throws {
        let longest = Self.now + 400 * 86_400
        for field in [
            "sid=1; Max-Age=99999999999999999999", "sid=1; Max-Age=34560001",
            "sid=1; Expires=Fri, 31 Dec 2099 23:59:59 GMT",
        ] {
            #expect(try #require(Self.cookie(field)).expires == longest, "\(field)")
        }
        #expect(try #require(Self.cookie("sid=1; Max-Age=1x")).expires == nil)
    }

    /// The same instants as Python's `calendar.timegm` gives.
    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", Int64(784_111_777)), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Tue, 29 Feb 2028 23:59:59 GMT", 1_835_481_599),
        ("01 mar 2100 0:0:0", 4_107_542_400), ("1 jan 1969 00:00:00", 0), ("9:08:07 31 December 69", 3_155_706_487),
    ])
    func datesAreRead(text: String, seconds: Int64) {
        #expect(CookieDate.seconds(text) == seconds)
    }

    @Test(arguments: ["", "now", "29 feb 2100 00:00:00", "31 apr 2030 00:00:00", "1 jan 2030", "1 jan 2030 24:00:00"])
    func otherTextIsNoDate(text: String) {
        #expect(CookieDate.seconds(text) == nil)
    }
}
