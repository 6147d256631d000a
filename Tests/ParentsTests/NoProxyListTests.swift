// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignParents

@Suite struct NoProxyListTests {
    @Test(
        arguments: [
            ("example.com:8443", "example.com", 8443, true),
            ("example.com:8443", "example.com", 443, false),
            (".example.com:8443", "www.example.com", 8443, true),
            ("[::1]", "::1", 80, true),
            ("[::1]:8080", "::1", 8080, true),
            ("[::1]:8080", "::1", 80, false),
            ("[2001:db8::]/32", "2001:db8:1::1", 80, true),
            // curl 7.88 compares IPv6 addresses as text, although its documentation permits a prefix length.
            ("2001:db8::/32", "2001:db8:ffff::1", 80, true),
            ("fe80::/10", "febf::1", 80, true),
            ("fe80::/10", "fec0::1", 80, false),
            ("2001:db8::/33", "2001:db8:8000::1", 80, false),
            ("127.0.0.1:80", "127.0.0.1", 80, true),
            ("127.0.0.1:80", "127.0.0.1", 81, false),
            // curl keeps a host's text; here an address in IPv6's form is the IPv4 address.
            ("127.0.0.1", "::ffff:127.0.0.1", 80, true),
            ("b\u{FC}cher.example", "xn--bcher-kva.example", 80, true),
        ] as [(String, String, UInt16, Bool)])
    func portsAndBracketsAreUnderstood(list: String, name: String, port: UInt16, isContained: Bool) throws {
        let list = try NoProxyList(flag: list)
        #expect((list.element(containing: host(name), port: port) != nil) == isContained)
    }

    @Test func theElementIsNamedAsWritten() throws {
        let list = try NoProxyList(flag: "a.example, .Example.COM 10.0.0.0/8")
        #expect(list.element(containing: host("www.example.com"), port: 443) == ".Example.COM")
        #expect(list.element(containing: host("10.1.2.3"), port: 443) == "10.0.0.0/8")
        #expect(list.element(containing: host("11.1.2.3"), port: 443) == nil)
    }

    @Test(arguments: [
        "*.example.com", "a,*", "10.0.0.0/33", "10.0.0.0/x", "::/129", "example.com/8", "10.1", "[::1", "[::1]x",
        "example.com:0", "example.com:99999", "example.com:", ".", ".127.0.0.1", "..example.com", "a%b",
    ])
    func anElementThatMatchesNothingIsAnErrorInTheFlagOnly(text: String) {
        let error = parentsError { () throws(ParentsError) in try NoProxyList(flag: text) }
        #expect(error?.code == .malformedNoProxy)
        #expect(error?.detail.hasPrefix("--no-proxy: ") == true)
        let list = NoProxyList(environment: "\(text),good.example")
        #expect(list.element(containing: host("good.example"), port: 80) == "good.example")
        #expect(list.ignored == text.split(separator: ",").filter { $0 != "a" }.map(String.init))
    }

    @Test func theHintForAStarNamesTheDomain() {
        let error = parentsError { () throws(ParentsError) in try NoProxyList(flag: "*.example.com") }
        #expect(error?.hint == "write .example.com for a domain and the names below it")
    }
}
