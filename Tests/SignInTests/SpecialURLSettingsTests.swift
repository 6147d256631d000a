// SPDX-License-Identifier: Apache-2.0

import CountersignDeviceManagement
import CountersignJSON
import Testing

@testable import CountersignSignIn

@Suite struct SpecialURLSettingsTests {
    private func profile(_ special: String) throws -> SignInProfile {
        try SignInProfile(
            Array(#"{"issuer": "https://login.example", "client_id": "c", \#(special)}"#.utf8))
    }

    @Test func theSettingsAreRead() throws {
        let read = try profile(
            """
            "special_urls": {"hosts": ["mdm.example", "mdm.example:8443"], "handoff_hosts": ["login.example"],
            "headers": {"X-Tenant": "a b"}, "parameters": {"os": "linux"}, "broker_token": "fail"}
            """)
        let settings = try #require(read.specialURLs)
        #expect(settings.hosts.map(\.description) == ["https://mdm.example:443", "https://mdm.example:8443"])
        #expect(settings.handoffHosts.map(\.host) == ["login.example"])
        #expect(settings.headers == [AdditionalHeader("X-Tenant", "a b")])
        #expect(settings.parameters == [.init(name: "os", value: "linux")] && settings.brokerToken == .fail)
    }

    @Test func theObjectEnablesThemAndSoDoesTheSwitch() throws {
        #expect(try profile(#""special_urls": {}"#).specialURLs == .standard)
        let plain = try profile(#""name": "work""#)
        #expect(plain.specialURLs == nil && plain.enablingSpecialURLs().specialURLs == .standard)
        let own = try profile(#""special_urls": {"hosts": ["mdm.example"]}"#)
        #expect(own.enablingSpecialURLs().specialURLs == own.specialURLs)
    }

    @Test(
        arguments: [
            (#"{"host": []}"#, #""host""#),
            (#"{"hosts": ["*.mdm.example"]}"#, "must list hosts"),
            (#"{"hosts": ["https://mdm.example"]}"#, "must list hosts"),
            (
                #"{"hosts": ["a.example", "b.example", "c.example", "d.example", "e.example", "f.example", "g.example", "h.example", "i.example", "j.example", "k.example", "l.example", "m.example"]}"#,
                "more than 12"
            ),
            (#"{"handoff_hosts": "mdm.example"}"#, "array"),
            (#"{"headers": {"Cookie": "a"}}"#, #""Cookie" is not"#),
            (#"{"headers": {"Authorization": "a"}}"#, #""Authorization" is not"#),
            (#"{"headers": {"X Y": "a"}}"#, #""X Y" is not"#),
            (#"{"headers": {"X": "a\r\nB: c"}}"#, "printable ASCII"),
            (#"{"headers": {"X": 1}}"#, "must be a string"),
            (#"{"parameters": []}"#, "must be an object"),
            (#"{"broker_token": "maybe"}"#, #""continue" or "fail""#),
            ("[]", "object"),
        ])
    func aFaultHasItsLineAndColumn(special: String, detail: String) throws {
        let error = try #require(throws: JSONError.self) { try profile("\n  \"special_urls\": \(special)") }
        #expect("\(error)".contains("line 2") && error.detail.contains(detail), "\(error) \(error.detail)")
    }
}
