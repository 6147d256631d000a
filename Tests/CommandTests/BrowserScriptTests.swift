// SPDX-License-Identifier: Apache-2.0

import CountersignParents
import CountersignSitePolicy
import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignClientSetup

/// The script for browsers, run by the product's own evaluator: `countersign route --parent pac:FILE`.
@Suite(.waiting) struct BrowserScriptTests {
    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox() }

    private static let sites = [
        "https://git.corp.example", "http://intra.corp.example:8080", "https://[2001:db8::1]", "https://*.wiki.example",
        "proxy://parent.example:3128",
    ]

    private func script(
        _ parents: [String] = [], noProxy: String? = nil, address: String = "127.0.0.1:3128"
    ) throws -> String {
        let settings = try ParentSettings(parents: parents, noProxy: noProxy)
        let patterns = try Self.sites.map { try SitePattern(parsing: $0) }
        return BrowserScript(address: address, patterns: patterns, parents: settings).text
    }

    /// The first hop for each URL.
    private func ways(_ urls: [String], by script: String) throws -> [String] {
        _ = try sandbox.folder.write("browser.pac", script)
        let command =
            "for url in \(urls.map { "'\($0)'" }.joined(separator: " ")); do "
            + "countersign route --parent pac:browser.pac \"$url\" || exit 1; done"
        let result = try sandbox.sh(command)
        #expect(result.status == 0 && result.error.isEmpty, "\(result.said)")
        return result.output.split(separator: "\n").map { $0 == "direct" ? "direct" : "proxy" }
    }

    @Test func listedSitesGoToTheProxyAndAllElseDirectly() throws {
        let proxied = [
            "https://git.corp.example/", "https://GIT.corp.example./a?b",
            "http://intra.corp.example:8080/x", "https://[2001:db8::1]/", "https://a.wiki.example/",
            "https://a.b.wiki.example/",
        ]
        let direct = [
            "http://git.corp.example/", "https://git.corp.example:8443/", "http://intra.corp.example/",
            "https://[2001:db8::2]/", "https://wiki.example/", "https://awiki.example/", "http://a.wiki.example/",
            "https://git.corp.example.evil.example/", "https://evil.example/https://git.corp.example/",
            "http://parent.example:3128/", "https://constructor/",
        ]
        let text = try script()
        #expect(try ways(proxied, by: text) == proxied.map { _ in "proxy" })
        #expect(try ways(direct, by: text) == direct.map { _ in "direct" })
    }

    @Test func withAParentOnlyTheExceptionsAreDirect() throws {
        let text = try script(["http://p.example:8080"], noProxy: ".corp.example,10.0.0.0/8,x.example:8443,192.0.2.7")
        let proxied = [
            "https://git.corp.example/", "http://intra.corp.example:8080/", "http://a.example/",
            "http://xcorp.example/", "http://11.0.0.0/", "http://9.255.255.255/", "https://x.example/",
            "http://192.0.2.8/",
        ]
        let direct = [
            "https://www.corp.example/", "https://corp.example/", "http://10.1.2.3/", "https://x.example:8443/",
            "http://192.0.2.7/",
        ]
        #expect(try ways(proxied, by: text) == proxied.map { _ in "proxy" })
        #expect(try ways(direct, by: text) == direct.map { _ in "direct" })
        #expect(try script(["direct"]) == script())
        // What is decided by another script, the proxy decides.
        #expect(try script(["pac:http://wpad.example/"], noProxy: "").contains("localhost") == false)
        #expect(try script(["http://p.example:8080"], noProxy: "<-loopback>").contains("localhost") == false)
    }

    @Test func noTextEndsAString() throws {
        let text = try script(address: "\"+alert(1)+\"</script>\\")
        #expect(text.contains(#"var proxy = "PROXY \u0022+alert(1)+\u0022\u003c/script\u003e\u005c";"#))
    }
}
