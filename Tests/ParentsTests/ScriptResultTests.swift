// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignParents

@Suite struct ScriptResultTests {
    private let source = ScriptSource.file("/etc/proxy.pac")

    /// The first seven are examples of Mozilla's documentation of the format.
    @Test(
        arguments: [
            ("DIRECT", [.direct]),
            (
                "PROXY w3proxy.netscape.com:8080; PROXY mozilla.netscape.com:8081",
                [
                    .parent(proxy(.http, "w3proxy.netscape.com", 8080)),
                    .parent(proxy(.http, "mozilla.netscape.com", 8081)),
                ]
            ),
            (
                "PROXY w3proxy.netscape.com:8080; PROXY mozilla.netscape.com:8081; DIRECT",
                [
                    .parent(proxy(.http, "w3proxy.netscape.com", 8080)),
                    .parent(proxy(.http, "mozilla.netscape.com", 8081)), .direct,
                ]
            ),
            (
                "PROXY w3proxy.netscape.com:8080; SOCKS socks:1080",
                [.parent(proxy(.http, "w3proxy.netscape.com", 8080)), .parent(proxy(.socks5h, "socks", 1080))]
            ),
            ("HTTP a:1", [.parent(proxy(.http, "a", 1))]),
            ("HTTPS a:1", [.parent(proxy(.https, "a", 1))]),
            ("SOCKS5 a:1", [.parent(proxy(.socks5h, "a", 1))]),
            (" ;; proxy\tA.Example ;direct;", [.parent(proxy(.http, "a.example", 80)), .direct]),
            ("PROXY a\n;\r\nHTTPS b", [.parent(proxy(.http, "a", 80)), .parent(proxy(.https, "b", 443))]),
            ("SOCKS5 [2001:DB8::1]", [.parent(proxy(.socks5h, "2001:db8::1", 1080))]),
        ] as [(String, [NextHop])])
    func resultsAreRead(text: String, hops: [NextHop]) throws {
        #expect(try ScriptResult(parsing: text, from: source).hops == hops)
    }

    /// As Chromium reads them.
    @Test(
        arguments: [
            ("", [.direct], 0), (" ; ;", [.direct], 0),
            ("HTTPS p:443; FOO x; DIRECT", [.parent(proxy(.https, "p", 443)), .direct], 1),
            ("FOO x; BAR; DIRECT;", [.direct], 2), ("SOCKS4 a:1; PROXY a:2", [.parent(proxy(.http, "a", 2))], 1),
            ("PROXY http://a:80; DIRECT x; PROXY b", [.parent(proxy(.http, "b", 80))], 2),
            (String(repeating: "DIRECT;", count: 34), Array(repeating: .direct, count: 32), 1),
        ] as [(String, [NextHop], Int)])
    func elementsThatCannotBeUsedAreSkipped(text: String, hops: [NextHop], skipped: Int) throws {
        let result = try ScriptResult(parsing: text, from: source)
        #expect(result.hops == hops)
        #expect(result.skipped.count == skipped)
        #expect(result.skipped.allSatisfy { $0.hasPrefix("the result of the script /etc/proxy.pac ") })
    }

    @Test(arguments: [
        "PROXY", "PROXY a b", "PROXY a:1, PROXY b:2", "DIRECT a", "a:8080", "SOCKS4 a:1", "QUIC a:443",
        "PROXY a:0", "PROXY a:99999", "PROXY user@a:1", "PROXY 127.1:80", "PROXY http://a:80", "PROXY a:80/",
        "JUNK; PROXY [::1", "\u{0}", "PROXY a\u{0}b:80", String(repeating: " ", count: 4097),
    ])
    func aResultOfJunkOnlyIsAnErrorThatNamesTheScript(text: String) {
        let error = parentsError { () throws(ParentsError) in try ScriptResult(parsing: text, from: source) }
        #expect(error?.code == .malformedResult)
        #expect(error?.detail.hasPrefix("the result of the script /etc/proxy.pac ") == true)
        #expect(error?.detail.utf8.allSatisfy { (0x20...0x7E).contains($0) } == true)
    }
}
