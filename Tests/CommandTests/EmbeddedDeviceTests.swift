// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Device management in the sign-in's window: the real web view on a virtual display, and a server for device
/// management whose pages are a script. One at a time, because each window needs up to five processes.
@Suite(.serialized) struct EmbeddedDeviceTests {
    private static let token = ("X-Intune-AuthToken", "canary-install-token")
    private static let profile = MDMServer.Answer(
        200, type: "application/x-apple-aspen-config",
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <plist version="1.0"><dict><key>PayloadType</key><string>Configuration</string>
        <key>PayloadVersion</key><integer>1</integer><key>PayloadIdentifier</key><string>example.test</string>
        <key>PayloadUUID</key><string>6E6A1F3C-1B5F-4C7E-9A41-0A5D8C2B7F01</string>
        <key>PayloadContent</key><array/></dict></plist>
        """)
    private let display: VirtualDisplay

    init() throws { display = try VirtualDisplay() }

    /// A provider that sends the first requests to `first`, where MDM and OTHER are the servers' origins.
    private func bench(
        _ mdm: MDMServer, first: [String], special: [String: any Sendable]? = [:]
    ) throws -> SignInSandbox {
        let first = first.map {
            $0.replacingOccurrences(of: "MDM", with: mdm.origin).replacingOccurrences(of: "OTHER", with: mdm.other)
        }
        var own: [String: any Sendable] = ["redirect_uri": "com.example.app:/callback", "name": "work"]
        if let special {
            own["special_urls"] = ["hosts": [mdm.host, mdm.otherHost]].merging(special) { _, new in new }
        }
        let bench = try SignInSandbox(["first": first], profile: own, isTLS: true)
        try bench.sandbox.succeed("trust", "anchor", "add", TestPKI.shared.originAnchor)
        return bench
    }

    private func enroll(_ bench: SignInSandbox, _ flags: String...) throws -> CommandResult {
        try bench.run(
            ["enroll", "profile.json", "--yes", "--events", "--user-agent", "embedded"] + flags,
            environment: ["DISPLAY": display.name, "COUNTERSIGN_WEBVIEW": try Tool.webView()])
    }

    private func events(_ result: CommandResult) throws -> [String] {
        try result.output.split(separator: "\n").compactMap { line in
            let event = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: String] ?? [:]
            guard let name = event["event"], !name.hasPrefix("load-") else { return nil }
            return name == "special-url" ? event["url"] : name
        }
    }

    /// The draft form: the profile's address and its token are in the headers of a redirect. The token reaches that
    /// address, and neither a redirect to another origin nor a later page.
    @Test func thePagesEnrolTheDeviceAndInstallAProfile() throws {
        let mdm = try MDMServer([
            "/portal": [.page("Company portal", "<script>location = '/portal/done'</script>")],
            "/portal/done": [.redirect(to: "msauth://installProfile", [("X-Install-Url", "MDM/install"), Self.token])],
            "/install": [
                .page(
                    "Install the profile",
                    """
                    <script>
                    location = '/profile.mobileconfig'
                    const timer = setInterval(async () => {
                      if (await (await fetch('/installed')).text() !== 'yes') return
                      clearInterval(timer)
                      location = 'OTHER/record'
                    }, 200)
                    </script>
                    """)
            ],
            "/installed": [MDMServer.Answer(), MDMServer.Answer(200, type: "text/plain", "yes")],
            "/profile.mobileconfig": [Self.profile],
            "/record": [.redirect(to: "msauth://profileInstalled")],
        ])
        let bench = try bench(
            mdm, first: ["msauth://enroll?cpurl=MDM%2Fportal"],
            special: ["headers": ["X-Tenant": "corp"], "parameters": ["platform": "linux"]])
        let result = try enroll(bench)
        #expect(result.status == 0, "\(result.said)")
        let seen = try events(result)
        #expect(
            seen.filter { !$0.hasPrefix("profile-") } == [
                "started", "page", "msauth://enroll", "msauth://installProfile", "second-window-opened",
                "second-window-closed", "msauth://profileInstalled", "authorized", "finished", "stored",
            ], "\(result.said)")
        #expect(seen.contains { $0.hasPrefix("profile-") }, "\(result.said)")
        let portal = mdm.requests("/portal")
        #expect(portal.map(\.target) == ["/portal?platform=linux"] && portal[0].fields["x-tenant"] == "corp")
        #expect(mdm.requests("/install").map { $0.fields["x-intune-authtoken"] } == [Self.token.1])
        #expect(mdm.requests("/profile.mobileconfig").count == 1 && mdm.requests("/record").count == 1)
        let others = mdm.requests.filter { $0.path != "/install" }
        #expect(
            others.allSatisfy {
                $0.fields["x-intune-authtoken"] == nil && ($0.path == "/portal" || $0.fields["x-tenant"] == nil)
            })
        #expect(!result.said.contains("canary"), "\(result.said)")
    }

    /// The token does not follow a redirect to another origin, which WebKit's would.
    @Test func theTokenDoesNotFollowARedirectToAnotherOrigin() throws {
        let mdm = try MDMServer([
            "/portal": [.redirect(to: "msauth://installProfile", [("x-install-url", "MDM/install"), Self.token])],
            "/install": [.redirect(to: "OTHER/record")],
            "/record": [.page("Elsewhere", "<script>location = 'msauth://profileComplete'</script>")],
        ])
        let bench = try bench(mdm, first: ["msauth://compliance?cpurl=MDM%2Fportal"])
        let result = try enroll(bench)
        #expect(result.status == 0, "\(result.said)")
        #expect(mdm.requests("/install").map { $0.fields["x-intune-authtoken"] } == [Self.token.1])
        let record = mdm.requests("/record")
        #expect(!record.isEmpty && record.allSatisfy { $0.origin == "other" })
        #expect(record.allSatisfy { $0.fields["x-intune-authtoken"] == nil }, "\(record)")
    }
}
