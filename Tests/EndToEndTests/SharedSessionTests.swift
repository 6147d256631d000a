// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// A provider's session that all clients of a person's proxy share.
@Suite(.waiting) struct SharedSessionTests {
    /// A person with the profile of a provider that asks for a password unless the browser sends its cookie.
    struct Bench {
        let provider: SignInProvider
        let user: Countersign
        let proxy: RunningProxy
        private let profile: String
        private let browser: String

        /// `redirect` is the profile's redirect URI, and `compliance` its compliance service.
        init(
            _ control: [String: any Sendable] = [:], redirect: String? = nil, compliance: ComplianceServer? = nil,
            environment: [String: String] = [:]
        ) throws {
            provider = try SignInProvider(control.merging(["session": "sid"]) { _, new in new }, isTLS: true)
            user = try Countersign()
            let session: [String: any Sendable] = [
                "group": "corp", "host": "provider.test.localhost", "cookies": ["sid"],
            ]
            var own: [String: any Sendable] = ["name": "work", "session": session]
            if let redirect { own["redirect_uri"] = redirect }
            if let compliance { own["compliance_service"] = ["url": compliance.url] }
            profile = try user.folder.write("profile.json", try provider.profile(own))
            // Enters the password if the page asks for it, and remembers no cookie.
            browser = try user.folder.write(
                program: "browser",
                """
                #!/bin/sh
                page=$(curl -q -sSL --noproxy 127.0.0.1 "$1")
                case $page in *password*) ;; *) exit ;; esac
                echo asked >> "\(user.folder.file("browser.asked"))"
                back=$(echo "$page" | sed 's/.*name="back" value="\\([^"]*\\)".*/\\1/; s/&amp;/\\&/g')
                curl -q -sSL --noproxy 127.0.0.1 -b '' --data-urlencode "back=$back" \
                    --data-urlencode password=hunter2 "\(provider.issuer)/password"
                """)
            // The interception CA is made for the first listed site.
            try user.allow("https://listed.test.localhost")
            proxy = try user.serve(environment: environment)
        }

        /// `countersign enroll` with a browser behind the proxy.
        func enroll(name: String = "work") throws -> CommandResult {
            try user.run(
                "enroll", profile, "--yes", "--user-agent", "system", "--name", name,
                environment: [
                    "BROWSER": browser, "https_proxy": proxy.url, "CURL_CA_BUNDLE": try anchors,
                    "HOME": user.folder.path,
                ], seconds: 120)
        }

        /// A command that opens pages in the browser.
        func run(_ words: String...) throws -> CommandResult {
            try user.run(
                words, environment: ["BROWSER": browser, "CURL_CA_BUNDLE": try anchors, "HOME": user.folder.path],
                seconds: 120)
        }

        /// `countersign enroll` with a window.
        func enroll(on display: VirtualDisplay) throws -> CommandResult {
            try user.run(
                "enroll", profile, "--yes", "--user-agent", "embedded",
                environment: display.windowEnvironment, seconds: 120)
        }

        /// How often the window has entered the password.
        var typed: Int { provider.requests.count { $0.hasPrefix("POST /password") } }

        /// The stored cookies, without the values that change from run to run.
        var cookies: [[String: String]] {
            get throws {
                let listed = try user.run("session", "list", "--json").output
                let sessions = try JSONSerialization.jsonObject(with: Data(listed.utf8)) as? [[String: Any]] ?? []
                return sessions.flatMap { $0["cookies"] as? [[String: Any]] ?? [] }.map { cookie in
                    cookie.filter { $0.key != "expires" && $0.key != "stored" }.mapValues { "\($0)" }
                        .merging(["expires": cookie["expires"] is String ? "yes" : "no"]) { $1 }
                }
            }
        }

        /// The interception CA's root, and that of the origins.
        var anchors: String {
            get throws {
                let texts = [TextFile.text(proxy.anchor), TextFile.text(try TestPKI.shared.originAnchor)]
                return try user.folder.write("anchors.pem", texts.joined())
            }
        }

        /// How often the person had to enter the password.
        var asked: Int { TextFile.lines(user.folder.file("browser.asked")).count }

        /// The person that the provider recognises.
        func who() throws -> String { try proxy.get("\(provider.issuer)/whoami").text }

        var sessions: String { get throws { try user.run("session", "list", "--no-header").output } }

        /// Signs in before the proxy sees the provider's host, and again with the proxy, which takes the session.
        func enrollTwice() throws -> CommandResult {
            let first = try enroll()
            // The client trusts the proxy's certificates only.
            guard
                try poll({ try proxy.get("\(provider.issuer)/whoami").status == 200 ? true : nil }) == true
            else { throw HarnessError("the provider's host is not intercepted: \(first.said)") }
            let second = try enroll()
            guard try second.status == 0 && stored(true) else { throw HarnessError("no session: \(second.said)") }
            return first
        }

        /// Waits until the provider recognises this person.
        func isRecognised(as person: String) throws -> Bool {
            try poll { try who() == person ? true : nil } ?? false
        }

        /// Waits until the vault has the session, or no longer has it.
        func stored(_ isStored: Bool) throws -> Bool {
            try poll { try sessions.contains("corp") == isStored ? true : nil } ?? false
        }
    }

    @Test func aSecondSignInNeedsNoPassword() throws {
        let bench = try Bench()
        let first = try bench.enrollTwice()
        #expect(first.status == 0 && bench.asked == 2, "\(first.said)")
        #expect(first.said.contains("sid of https://provider.test.localhost:\(bench.provider.port)"), "\(first.said)")
        let third = try bench.enroll()
        #expect(third.status == 0 && bench.asked == 2, "\(third.said)")
        // Nor does any other client.
        #expect(try bench.who() == "jdoe")
        let listed = try bench.sessions
        #expect(listed.contains("provider.test.localhost") && listed.contains("sid"), "\(listed)")
        for said in [first.said, third.said, listed, bench.proxy.process.errorOutput] {
            #expect(!said.contains("canary-session"))
        }
        // A new process reads it from the vault.
        bench.proxy.process.send(SIGTERM)
        #expect(bench.proxy.process.waitForExit() == 0)
        let again = try bench.user.serve()
        #expect(try again.get("\(bench.provider.issuer)/whoami").text == "jdoe")
    }

    @Test func signingOutEndsTheSession() throws {
        let bench = try Bench()
        _ = try bench.enrollTwice()
        // At the provider.
        #expect(try bench.proxy.get("\(bench.provider.issuer)/logout").status == 200)
        #expect(try bench.who() == "nobody" && bench.stored(false))
        // By the command.
        #expect(try bench.enroll().status == 0 && bench.stored(true))
        #expect(try bench.user.run("session", "clear", "other").status == 1)
        #expect(try bench.user.run("session", "clear", "corp").output == "1 session removed\n")
        #expect(try bench.isRecognised(as: "nobody"))
        // With the profile.
        #expect(try bench.enroll().status == 0 && bench.stored(true))
        let done = try bench.user.run("unenroll", "work")
        #expect(done.status == 0, "\(done.said)")
        #expect(try bench.sessions.isEmpty)
    }

    /// The window's cookies are taken although the list has no line for the host at first. The next window, and every
    /// other client, begins with them.
    @Test(arguments: [
        ("Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=3600", ["sameSite": "Strict", "expires": "yes"]),
        ("Path=/; Secure; HttpOnly; SameSite=Lax", ["sameSite": "Lax", "expires": "no"]),
    ])
    func aWindowTakesPartInTheSession(attributes: String, kept: [String: String]) throws {
        let bench = try Bench(
            ["typed": "hunter2", "attributes": attributes], redirect: "com.example.app:/callback")
        let display = try VirtualDisplay()
        let first = try bench.enroll(on: display)
        #expect(first.status == 0 && bench.typed == 1, "\(first.said)")
        let usual = [
            "name": "sid", "domain": "provider.test.localhost", "path": "/", "isHostOnly": "1", "isSecure": "1",
            "isHTTPOnly": "1",
        ]
        #expect(try bench.cookies == [usual.merging(kept) { _, new in new }])
        #expect(try bench.isRecognised(as: "jdoe"))
        let second = try bench.enroll(on: display)
        #expect(second.status == 0 && bench.typed == 1, "\(second.said)")
        #expect(bench.provider.requests.contains("GET /authorize 302"), "\(bench.provider.requests)")
        #expect(try bench.user.run("session", "clear", "corp").output == "1 session removed\n")
        #expect(try bench.isRecognised(as: "nobody"))
        let third = try bench.enroll(on: display)
        #expect(third.status == 0 && bench.typed == 2, "\(third.said)")
        for said in [first.said, second.said, third.said, bench.proxy.process.errorOutput] {
            #expect(!said.contains("canary-session"))
        }
    }

    @Test func signInsOfAGroupShareOneLine() throws {
        let bench = try Bench()
        let (first, second) = (try bench.enroll(), try bench.enroll(name: "other"))
        #expect(first.status == 0 && second.status == 0, "\(first.said)\(second.said)")
        func lines(_ name: String) -> [String] {
            TextFile.lines("\(bench.user.home)/AllowedSites/signed-in.\(name).sites").filter { $0.contains("session=") }
        }
        let line = "https://provider.test.localhost:\(bench.provider.port) answer=none session=corp cookies=sid"
        #expect(lines("work") == [line] && lines("other") == [])
        let done = try bench.user.run("unenroll", "work")
        #expect(done.status == 0 && lines("work") == [] && lines("other") == [line], "\(done.said)")
    }

    @Test func aBrowserIsSignedInAndAFrameOfAnotherSiteIsNot() throws {
        let bench = try Bench()
        _ = try bench.enrollTwice()
        let other = try SignInProvider(["embed": "\(bench.provider.issuer)/whoami?framed"])
        let browser = try Browser()
        let installed = try bench.user.run(
            ["ca", "install", "--store", "nss", "--yes"], environment: ["HOME": browser.home, "XDG_DATA_HOME": ""])
        try #require(installed.status == 0, "\(installed.said)")
        let pages = try browser.open(
            [("frame", "\(other.issuer)/embed"), ("direct", "\(bench.provider.issuer)/whoami?direct")],
            proxy: bench.proxy.url)
        #expect(pages["direct"]?.text == "jdoe", "\(pages)")
        let seen = bench.provider.sessions
        #expect(seen["direct"] == true && seen["framed"] == false, "\(seen)")
    }
}
