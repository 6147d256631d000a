// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Providers that others have written, and Chromium as the person's browser: the redirect comes from a real one.
@Suite(.waiting, .serialized) struct BrowserSignInTests {
    @Test(arguments: ["system", "system-private"]) func chromiumSignsInAtNanoIDP(agent: String) throws {
        let provider = try NanoProvider()
        let person = try Person(
            trusting: TestPKI.shared.originAnchor,
            """
            if (document.forms.length) {
              const form = document.forms[0];
              form.elements.username.value = '\(NanoProvider.user)';
              form.elements.password.value = '\(NanoProvider.password)';
              HTMLFormElement.prototype.submit.call(form);
            }
            """)
        let user = try Countersign()
        let profile = try user.folder.write(
            "profile.json", #"{"issuer": "\#(provider.issuer)", "client_id": "\#(NanoProvider.client)"}"#)
        let result = try person.enroll(user, profile, agent)
        #expect(
            result.status == 0 && result.output.contains("signed in as jdoe"),
            "\(result.said)\(person.said)\(provider.said)")
        try person.expectLastPage()
    }

    @Test(arguments: ["system", "system-private"]) func chromiumSignsInAtGlewlwyd(agent: String) throws {
        let provider = try GlewlwydProvider()
        // The provider's own login page is a script around these requests.
        let person = try Person(
            """
            (async () => {
              const asked = new URLSearchParams(location.search);
              const headers = {'Content-Type': 'application/json'};
              const send = (method, path, body) => fetch('/api/auth/' + path, {method, headers, body});
              if (!asked.has('callback_url')) return;
              await send('POST', '', JSON.stringify({username: 'jdoe', password: '\(GlewlwydProvider.password)'}));
              await send('PUT', 'grant/' + asked.get('client_id'), JSON.stringify({scope: asked.get('scope')}));
              location = asked.get('callback_url') + '&g_continue';
            })()
            """)
        let user = try Countersign()
        let profile = try user.folder.write(
            "profile.json",
            """
            {"issuer": "\(provider.issuer)", "client_id": "countersign", "scopes": ["openid"],
             "redirect_uri": "\(provider.redirect)"}
            """)
        let result = try person.enroll(user, profile, agent)
        #expect(
            result.status == 0 && result.output.contains("signed in"), "\(result.said)\(person.said)\(provider.said)")
        try person.expectLastPage()
    }
}

/// A person with Debian's Chromium, headless; Clients/sign_in.py. It is the program of `BROWSER`, and the `chromium` of
/// the path.
private final class Person {
    private let folder: TemporaryFolder
    private let browser: String

    /// `script` is JavaScript that runs once in each page. `anchor` is the file with the trust anchor of its servers.
    init(trusting anchor: String? = nil, _ script: String) throws {
        folder = try TemporaryFolder("person")
        try folder.write("person.js", script)
        browser = try folder.write(
            program: "bin/chromium",
            "#!/bin/sh\nexec '\(try Tool.python())' '\(Tool.client("sign_in.py"))' '\(folder.path)' \"$@\"\n")
        guard let anchor else { return }
        let database = folder.file(".pki/nssdb")
        try FileManager.default.createDirectory(atPath: database, withIntermediateDirectories: true)
        for words in [["-N", "--empty-password"], ["-A", "-n", "origins", "-t", "C,,", "-i", anchor]] {
            let done = try Command.run(Tool.path("certutil"), words + ["-d", "sql:\(database)"], in: folder)
            guard done.status == 0 else { throw HarnessError("certutil: \(done.said)") }
        }
    }

    func enroll(_ user: Countersign, _ profile: String, _ agent: String) throws -> CommandResult {
        try user.run(
            "enroll", profile, "--yes", "--user-agent", agent,
            environment: ["BROWSER": browser, "PATH": "\(folder.file("bin")):/usr/bin:/bin"])
    }

    var said: String { folder.text("log") }

    /// The browser shows that the sign-in is complete, at an address without the provider's response. Keeps a picture
    /// if COUNTERSIGN_SCREENSHOTS names a folder.
    func expectLastPage() throws {
        // The command does not wait for the picture.
        let written = poll { TextFile.bytes(folder.file("last.json")).isEmpty ? nil : true }
        try #require(written == true, "\(said)")
        let page = try JSONDecoder().decode([String: String].self, from: Data(folder.text("last.json").utf8))
        #expect(page["text"] == "The sign-in is complete. You can close this window.")
        let address = try #require(page["address"].flatMap { URLComponents(string: $0) })
        #expect(address.host == "127.0.0.1" && address.path == "/signed-in" && address.query == nil)
        guard let gallery = ProcessInfo.processInfo.environment["COUNTERSIGN_SCREENSHOTS"] else { return }
        try Data(TextFile.bytes(folder.file("last.png"))).write(to: URL(fileURLWithPath: "\(gallery)/last.png"))
    }
}
