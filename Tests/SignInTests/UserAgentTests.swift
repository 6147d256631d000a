// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignSignIn

@Suite struct UserAgentTests {
    @Test func browsersAreTriedInOrder() {
        let browser = SystemBrowser(environment: ["BROWSER": "first --new %s:second::third"])
        let words = browser.commands.map { $0.opening("https://a.example/?b=c d") }
        #expect(
            words.dropLast() == [
                ["first", "--new", "https://a.example/?b=c d"], ["second", "https://a.example/?b=c d"],
                ["third", "https://a.example/?b=c d"], ["xdg-open", "https://a.example/?b=c d"],
                ["gio", "open", "https://a.example/?b=c d"],
            ])
        #expect(words.last?.first == "gdbus" && words.last?.suffix(3) == ["", "https://a.example/?b=c d", "{}"])
    }

    @Test func aPrivateWindowIsOneOfTheFirstBrowserThatIsInstalled() {
        func words(_ installed: Set<String>) -> [String]? {
            PrivateBrowser.words(for: "url", profile: "/p") { installed.contains($0) ? "/bin/\($0)" : nil }
        }
        #expect(words([]) == nil)
        #expect(
            words(["firefox-esr"]) == ["/bin/firefox-esr", "--no-remote", "--profile", "/p", "--private-window", "url"])
        let chromium = words(["google-chrome", "firefox"])
        #expect(chromium?.first == "/bin/google-chrome" && chromium?.last == "url")
        #expect(chromium?.contains("--user-data-dir=/p") == true && chromium?.contains("--incognito") == true)
    }

    @Test func aMachineWithoutADisplayShowsACode() {
        #expect(UserAgentKind.preferred(in: [:]) == .device)
        #expect(UserAgentKind.preferred(in: ["DISPLAY": ""]) == .device)
        for name in ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"] {
            #expect(UserAgentKind.preferred(in: [name: "x"]) == .system)
        }
    }
}
