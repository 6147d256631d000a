// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignAddresses

@Suite struct OriginAuthorityTests {
    @Test(arguments: [
        ("example.com", "https://example.com:443"), ("EXAMPLE.com.", "https://example.com:443"),
        ("example.com:443", "https://example.com:443"), ("example.com:8443", "https://example.com:8443"),
        ("example.com.:8443", "https://example.com:8443"), ("example.com:1", "https://example.com:1"),
        ("example.com:65535", "https://example.com:65535"), ("[::1]", "https://[::1]:443"),
        ("[2001:DB8::0]:8443", "https://[2001:db8::]:8443"), ("[::ffff:10.0.0.1]:80", "https://10.0.0.1:80"),
        ("127.0.0.1:3128", "https://127.0.0.1:3128"), ("a_b.example", "https://a_b.example:443"),
        ("bücher.example", "https://xn--bcher-kva.example:443"),
    ])
    func anAuthorityNamesOneOrigin(authority: String, origin: String) throws {
        #expect(try Origin(scheme: .https, authority: authority).description == origin)
    }

    @Test func thePortLeftOutIsTheSchemesOwn() throws {
        #expect(try Origin(scheme: .http, authority: "example.com").port == 80)
        #expect(try Origin(scheme: .https, authority: "example.com").port == 443)
    }

    @Test(arguments: [
        ("", HostNameError.Code.empty), (":443", .empty), ("example.com:", .port), ("example.com:0", .port),
        ("example.com:00", .port), ("example.com:080", .port), ("example.com:65536", .port),
        ("example.com:99999", .port),
        ("example.com:100000", .port), ("example.com:+80", .port), ("example.com:-1", .port),
        ("example.com: 80", .port),
        ("example.com:80 ", .port), ("example.com:8 0", .port), ("example.com:0x50", .port), ("example.com:８０", .port),
        ("example.com:80\n", .port), ("example.com:٨٠", .port), ("example.com:http", .port),
        ("user@example.com", .userInfo), ("user:pw@example.com:443", .userInfo),
        ("example.com:443@evil.test", .userInfo),
        ("@", .userInfo), ("::1", .empty), ("2001:db8::1", .address), ("2001:db8::1:443", .address),
        ("a:1:2", .address),
        ("[::1]443", .address), ("[::1", .address), ("[::1]:", .port), ("[::1]:0", .port),
        ("[fe80::1%25lo]:443", .zone),
        ("[]:443", .address), ("example.com/path", .forbiddenCharacter), ("example.com\\path", .forbiddenCharacter),
        ("example.com:443/path", .port), ("example.com?q", .forbiddenCharacter), ("http://example.com", .port),
        ("example.com%3A443", .forbiddenCharacter), ("127.1:443", .address), ("example.com\u{FF1A}443", .international),
    ])
    func anAuthorityThatIsNotPlainIsRefused(authority: String, code: HostNameError.Code) {
        #expect(throws: HostNameError(code, "")) { try Origin(scheme: .https, authority: authority) }
    }

    @Test(arguments: [
        ("git.corp.example", "https://git.corp.example/"),
        ("git.corp.example:8443/a?b", "https://git.corp.example:8443/a?b"),
        ("http://git.corp.example/a", "http://git.corp.example/a"),
    ])
    func aSchemeMayBeAssumed(_ text: String, _ url: String) throws {
        #expect(try AbsoluteURL(parsing: text, defaultScheme: .https).description == url)
    }

    @Test func aListedOriginIsHeldToTheStricterRule() {
        #expect(throws: HostNameError(.misplacedHyphen, "")) {
            try Origin(scheme: .https, authority: "-a.example", for: .listed)
        }
    }

    @Test(arguments: [
        ("https://example.com", "https://example.com:443", "/"),
        ("HTTPS://Example.COM/", "https://example.com:443", "/"),
        ("http://example.com:8080/a/b?c=d#e", "http://example.com:8080", "/a/b?c=d"),
        ("https://example.com?q=1", "https://example.com:443", "/?q=1"),
        ("https://[::1]:8443/x", "https://[::1]:8443", "/x"),
        ("https://example.com#f", "https://example.com:443", "/"),
        ("http://example.com//a", "http://example.com:80", "//a"),
        ("https://example.com/@user:pw", "https://example.com:443", "/@user:pw"),
        ("https://example.com/?u=http://evil.test/", "https://example.com:443", "/?u=http://evil.test/"),
    ])
    func aURLIsAnOriginAndAPath(url: String, origin: String, path: String) throws {
        let parsed = try AbsoluteURL(parsing: url)
        #expect(parsed.origin.description == origin)
        #expect(parsed.path == path)
        #expect(try Origin(url: url) == parsed.origin)
        #expect(try AbsoluteURL(parsing: parsed.description) == parsed)
    }

    @Test(arguments: [
        ("", HostNameError.Code.scheme), ("example.com", .scheme), ("//example.com", .scheme),
        ("://example.com", .scheme),
        ("https:/example.com", .scheme), ("https:example.com", .scheme), ("ftp://example.com", .scheme),
        ("file:///etc/passwd", .scheme), ("httpſ://example.com", .scheme), ("https:\\\\example.com", .scheme),
        ("https://", .empty), ("https:///example.com", .empty), ("https://?x", .empty),
        ("https://user@example.com/", .userInfo),
        ("https://example.com\\@evil.test/", .userInfo), ("https://evil.test\\.example.com/", .forbiddenCharacter),
        ("https://example.com%2F@evil.test", .userInfo), ("https://exa mple.com", .forbiddenCharacter),
        (" https://example.com", .forbiddenCharacter), ("https://example.com/a b", .forbiddenCharacter),
        ("https://example.com/\n", .forbiddenCharacter), ("https://example.com\t", .forbiddenCharacter),
        ("https://example.com/\u{0}", .forbiddenCharacter), ("https://example.com/\u{9B}", .forbiddenCharacter),
        ("https://0x7f.1/", .address), ("https://[::1%25lo]/", .zone), ("https://example.com:0/", .port),
    ])
    func aURLThatIsNotPlainIsRefused(url: String, code: HostNameError.Code) {
        #expect(throws: HostNameError(code, "")) { try AbsoluteURL(parsing: url) }
    }
}
