// SPDX-License-Identifier: Apache-2.0
import CountersignCryptography
import CountersignOAuth
import Testing

@testable import CountersignDeviceManagement

@Suite struct ConfigurationProfileTests {
    private func document(_ payloads: [String], _ members: String? = nil) -> [UInt8] {
        let members =
            members
                ?? """
                <key>PayloadType</key><string>Configuration</string>
                <key>PayloadVersion</key><integer>1</integer>
                <key>PayloadIdentifier</key><string>example.corp</string>
                <key>PayloadDisplayName</key><string>Corp</string>
                <key>PayloadOrganization</key><string>Example Corporation</string>
                """
        return Array(
            "<plist><dict>\(members)<key>PayloadContent</key><array>\(payloads.joined())</array></dict></plist>".utf8)
    }

    private func payload(_ type: String, _ members: String = "", identifier: String = "example.corp.1") -> String {
        "<dict><key>PayloadType</key><string>\(type)</string><key>PayloadIdentifier</key><string>\(identifier)</string>"
            + members + "</dict>"
    }

    private func content(_ payload: String) throws -> ConfigurationProfile.Content {
        try #require(try ConfigurationProfile(document([payload])).payloads.first).content
    }

    private static let data = "<key>PayloadContent</key><data>AAEC</data>"

    @Test func theProfilesOwnNamesAreRead() throws {
        let profile = try ConfigurationProfile(document([]))
        #expect(profile.name == "Corp")
        #expect(profile.identifier == "example.corp")
        #expect(profile.organization == "Example Corporation")
        #expect(profile.payloads == [])
    }

    @Test(arguments: ["com.apple.security.root", "com.apple.security.pkcs1", "com.apple.security.pem"])
    func certificatesAreRead(type: String) throws {
        #expect(try content(payload(type, Self.data)) == .certificate([0, 1, 2]))
    }

    @Test func identitiesAreReadWithTheirPassword() throws {
        let type = "com.apple.security.pkcs12"
        #expect(try content(payload(type, Self.data)) == .identity(Secret([0, 1, 2]), password: nil))
        #expect(
            try content(payload(type, Self.data + "<key>Password</key><string>p&amp;w</string>"))
                == .identity(Secret([0, 1, 2]), password: Secret(utf8: "p&w")))
    }

    @Test func anEnrolmentOverESTIsRead() throws {
        let members = "<key>URL</key><string>https://est.example/.well-known/est</string>"
        let service = try EndpointURL("https://est.example/.well-known/est", "URL")
        #expect(
            try content(payload("countersign.est", members))
                == .est(.init(service: service, name: "enrollment", anchors: [])))
        #expect(
            try content(
                payload(
                    "countersign.est",
                    members + "<key>Name</key><string>laptop</string><key>Anchors</key><array><data>AAEC</data></array>"
                ))
                == .est(.init(service: service, name: "laptop", anchors: [[0, 1, 2]])))
    }

    @Test(arguments: ["com.apple.security.scep", "com.apple.security.acme", "com.apple.mdm"])
    func whatCannotBeInstalledIsRefusedWithTheReason(type: String) throws {
        guard case .refused(let reason) = try content(payload(type)) else {
            Issue.record("\(type) is not refused")
            return
        }
        #expect(!reason.isEmpty)
    }

    @Test(arguments: ["com.apple.webClip.managed", "com.apple.proxy.http.global", "com.apple.wifi.managed", "unknown"])
    func otherPayloadsAreNamedAndSkipped(type: String) throws {
        let profile = try ConfigurationProfile(document([payload(type)]))
        #expect(profile.payloads.map(\.type) == [type])
        #expect(profile.payloads.map(\.content) == [.skipped])
    }

    @Test(arguments: [
        "<plist><array/></plist>", "<plist><dict/></plist>",
        "<plist><dict><key>PayloadType</key><string>Configuration</string></dict></plist>",
        """
        <plist><dict><key>PayloadType</key><string>Other</string><key>PayloadIdentifier</key><string>x</string>
        <key>PayloadContent</key><array/></dict></plist>
        """,
        """
        <plist><dict><key>PayloadType</key><string>Configuration</string><key>PayloadIdentifier</key><true/>
        <key>PayloadContent</key><array/></dict></plist>
        """,
        """
        <plist><dict><key>PayloadType</key><string>Configuration</string><key>PayloadIdentifier</key><string>x</string>
        <key>PayloadContent</key><data>AAEC</data></dict></plist>
        """,
        """
        <plist><dict><key>PayloadType</key><string>Configuration</string>
        <key>PayloadIdentifier</key><string>a b</string>
        <key>PayloadContent</key><array/></dict></plist>
        """,
    ])
    func aDocumentThatIsNoProfileIsRefused(text: String) {
        let error = #expect(throws: DeviceManagementError.self) { try ConfigurationProfile(Array(text.utf8)) }
        #expect(error?.code == .malformed)
    }

    @Test func aFaultyPayloadIsNamed() {
        let good = payload("com.apple.wifi.managed", identifier: "other")
        let faulty = [
            "<true/>", "<dict/>", payload("com.apple.security.root"),
            payload("com.apple.security.pkcs12", "<key>PayloadContent</key><data/>"),
            payload("com.apple.security.root", "<key>PayloadContent</key><string>AAEC</string>"),
            payload("countersign.est"),
            payload("countersign.est", "<key>URL</key><string>http://est.example/</string>"),
            payload("countersign.est", "<key>URL</key><string>https://est.example/</string><key>Anchors</key><true/>"),
            payload("com.apple.wifi.managed", identifier: "other"),
        ]
        for text in faulty {
            let error = #expect(throws: DeviceManagementError.self, "\(text)") {
                try ConfigurationProfile(document([good, text]))
            }
            #expect(error?.detail.contains("payload 2") == true, "\(error?.detail ?? "")")
        }
    }

    @Test func aPasswordIsNotPrinted() throws {
        let text = payload("com.apple.security.pkcs12", Self.data + "<key>Password</key><string>canary</string>")
        #expect(!"\(try ConfigurationProfile(document([text])))".contains("canary"))
    }
}
