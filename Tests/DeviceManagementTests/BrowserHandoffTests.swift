// SPDX-License-Identifier: Apache-2.0
import CountersignAddresses
import CountersignOAuth
import Testing

@testable import CountersignDeviceManagement

@Suite struct BrowserHandoffTests {
    private static let prefix = "x-ms-aswebauth-handoff-"

    /// `fields` without the prefix.
    private func handoff(
        _ fields: [(name: String, value: String)], from responder: String = "https://mdm.example"
    ) throws -> BrowserHandoff {
        BrowserHandoff(
            of: ResponseHeaders(fields.map { (name: Self.prefix + $0.name, value: $0.value) }),
            from: try Origin(url: responder), try Enrolment.rules())
    }

    private func session(
        _ url: String, headers: [AdditionalHeader] = [], _ purpose: AuthenticationSessionRequest.Purpose = .unknown,
        scheme: String = "msauth", isEphemeral: Bool = true
    ) throws -> BrowserHandoff {
        .open(
            AuthenticationSessionRequest(
                try EndpointURL(url, "url"), headers: headers, purpose: purpose, callbackScheme: scheme,
                isEphemeral: isEphemeral))
    }

    @Test func aResponseWithoutTheFieldIsNoHandoff() throws {
        #expect(try handoff([("use-ephemeral-session", "true")]) == .none)
        #expect(try handoff([]) == .none)
    }

    @Test func theSessionIsPrivateUnlessTheResponseSaysOtherwise() throws {
        let url = "https://install.example/p"
        #expect(try handoff([("url", url)]) == session(url))
        #expect(try handoff([("URL", url), ("use-ephemeral-session", "yes")]) == session(url))
        #expect(try handoff([("url", url), ("use-ephemeral-session", "False")]) == session(url, isEphemeral: false))
        let isProfile = [("url", url), ("use-ephemeral-session", "false"), ("purpose", "download-profile")]
        #expect(try handoff(isProfile) == session(url, .installProfile))
    }

    @Test func onlyListedFieldsOfTheSameResponseWithThePrefixAreAttached() throws {
        let url = "https://install.example/p"
        let list =
            "x-ms-aswebauth-handoff-token, X-MS-aswebauth-handoff-Token , authorization,x-ms-aswebauth-handoff-none"
        let fields = [("url", url), ("token", "T"), ("other", "O"), ("attach-headers", list)]
        #expect(try handoff(fields) == session(url))
        #expect(
            try handoff(fields + [("include-headers", "true")])
                == session(url, headers: [AdditionalHeader("x-ms-aswebauth-handoff-token", "T")]))
    }

    @Test func aFieldWithoutThePrefixIsNeverAttached() throws {
        let headers = ResponseHeaders([
            (name: Self.prefix + "url", value: "https://install.example/p"), (name: "set-cookie", value: "a=b"),
            (name: Self.prefix + "include-headers", value: "true"),
            (name: Self.prefix + "attach-headers", value: "set-cookie"),
        ])
        let handoff = BrowserHandoff(of: headers, from: try Origin(url: "https://mdm.example"), try Enrolment.rules())
        #expect(try handoff == session("https://install.example/p"))
    }

    @Test(arguments: [
        "https://login.example", "https://evil.example", "https://mdm.example:8443", "http://mdm.example",
    ])
    func anotherResponderIsIgnored(responder: String) throws {
        #expect(
            try handoff([("url", "https://install.example/p")], from: responder)
                == .ignored(responder: try Origin(url: responder)))
    }

    @Test(arguments: [
        "https://evil.example/p", "http://install.example/p", "https://install.example.evil.example/",
        "install.example",
        "javascript:1", "https://install.example:444/",
    ])
    func anotherTargetFails(url: String) throws {
        guard case .fail(let error) = try handoff([("url", url)]) else {
            Issue.record("\(url) was accepted")
            return
        }
        #expect(error.code == .foreignPage)
    }

    @Test func theCallbacksSchemeIsOneThatTheViewUnderstands() throws {
        let url = "https://install.example/p"
        #expect(
            try handoff([("url", url), ("redirect-scheme", "com.example.app")])
                == session(url, scheme: "com.example.app"))
        for scheme in ["https", "javascript", "com.example.other"] {
            guard case .fail(let error) = try handoff([("url", url), ("redirect-scheme", scheme)]) else {
                Issue.record("\(scheme) was accepted")
                continue
            }
            #expect(error.code == .malformed)
        }
    }
}
