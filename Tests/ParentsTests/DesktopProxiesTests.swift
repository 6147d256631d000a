// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignParents

@Suite struct DesktopProxiesTests {
    private static func output(_ settings: [String: String]) -> String {
        settings.map { "org.gnome.system.proxy\($0.key) \($0.value)\n" }.joined()
    }

    @Test(arguments: ["", "No such schema “org.gnome.system.proxy”\n", "org.gnome.system.proxy mode 'none'\n", "x"])
    func withoutASettingThereAreNone(output: String) throws {
        #expect(try DesktopProxies(output: output) == nil)
    }

    @Test func aScriptWithoutAnAddressIsSearchedFor() throws {
        let output = Self.output([" mode": "'auto'", " autoconfig-url": "''"])
        #expect(try DesktopProxies(output: output) == .script(.wpad))
    }

    @Test func aProxyNeedsAHostAndAPort() throws {
        let output = Self.output([
            " mode": "'manual'", " ignore-hosts": "@as []", ".http host": "'proxy'", ".http port": "0",
            ".https host": "''", ".https port": "8080",
        ])
        guard case .proxies(let proxies)? = try DesktopProxies(output: output) else {
            Issue.record("there are no proxies")
            return
        }
        #expect(proxies.http == nil && proxies.https == nil)
    }

    /// GVariant uses double quotes for a text with a single one.
    @Test(arguments: ["\"it's\"", #"'it\'s'"#])
    func quotesAreRead(host: String) {
        let output = Self.output([" mode": "'manual'", ".http host": host, ".http port": "1"])
        let error = #expect(throws: ParentsError.self) { try DesktopProxies(output: output) }
        #expect(error?.detail.contains("it's") == true, "\(error?.detail ?? "")")
    }
}
