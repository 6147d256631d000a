// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Text from elsewhere on the terminal: it must not contain invisible characters, in results and in messages.
@Suite(.waiting) struct ForeignTextTests {
    /// Turns the direction, is invisible, and starts a control sequence (CSI).
    private static let name = "Corp\u{202E}AC\u{200B}\u{2066}\u{9B}31m\u{E0041} Ω"

    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox() }

    private func expectVisible(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) {
        let hidden = text.unicodeScalars.filter { scalar in
            [.control, .format, .lineSeparator, .paragraphSeparator].contains(scalar.properties.generalCategory)
                && scalar != "\n"
        }
        #expect(hidden.isEmpty, "\(hidden.map { String($0.value, radix: 16) })", sourceLocation: sourceLocation)
        #expect(text.contains("Ω"), "\(text)", sourceLocation: sourceLocation)
    }

    /// A CA with that name. `openssl` takes it from its configuration.
    private func anchor() throws -> String {
        let settings = try sandbox.folder.write(
            "ca.cnf",
            "[req]\nprompt = no\nutf8 = yes\nstring_mask = utf8only\ndistinguished_name = name\nx509_extensions = ca\n"
                + "[name]\nCN = \(Self.name)\n[ca]\nbasicConstraints = critical,CA:TRUE\n"
                + "keyUsage = critical,keyCertSign\n")
        let file = sandbox.folder.file("ca.pem")
        let made = try Command.run(
            Tool.path("openssl"),
            ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"]
                + ["-config", settings, "-keyout", sandbox.folder.file("ca.key"), "-out", file], in: sandbox.folder)
        guard made.status == 0 else { throw HarnessError(made.said) }
        return file
    }

    @Test func theNamesOfACertificateAreVisible() throws {
        let file = try anchor()
        let added = try sandbox.countersign("trust", "anchor", "add", file)
        #expect(added.status == 0, "\(added.said)")
        expectVisible(added.said)
        #expect(added.said.contains("Corp\\u{202E}AC\\u{200B}\\u{2066}\\u{9B}31m\\u{E0041} Ω"), "\(added.said)")
        expectVisible(try sandbox.succeed("trust", "anchor", "list"))
        let json = try sandbox.succeed("trust", "anchor", "list", "--json")
        expectVisible(json)
        let listed = try JSONSerialization.jsonObject(with: Data(json.utf8))
        #expect("\(listed)".contains("Corp") && json.contains(#"Corp\u202eAC\u200b\u2066\u009b31m\udb40\udc41 Ω"#))
    }

    @Test func theTextsOfAProfileAreVisible() throws {
        let profile = try sandbox.folder.write(
            "corp.mobileconfig",
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <plist version="1.0"><dict>
            <key>PayloadType</key><string>Configuration</string><key>PayloadVersion</key><integer>1</integer>
            <key>PayloadIdentifier</key><string>example.corp</string>
            <key>PayloadUUID</key><string>3B7D5A2E-0F0D-4C5E-9E39-0C7A6F2B1D11</string>
            <key>PayloadDisplayName</key><string>Corp\u{202E}AC\u{200B} Ω</string>
            <key>PayloadOrganization</key><string>Corp\u{2066}AC Ω</string>
            <key>PayloadContent</key><array/></dict></plist>
            """)
        let shown = try sandbox.countersign("profile", "show", profile)
        expectVisible(shown.said)
    }
}
