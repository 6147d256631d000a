// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignOAuth

@Suite struct RedirectURITests {
    @Test func aLoopbackURIHasTheListenersPort() throws {
        for (text, bound) in [
            ("http://127.0.0.1/callback", "http://127.0.0.1:4711/callback"), ("http://[::1]/", "http://[::1]:4711/"),
            ("http://localhost", "http://localhost:4711"), ("http://127.0.0.1:0/cb", "http://127.0.0.1:4711/cb"),
            ("http://127.0.0.1:0", "http://127.0.0.1:4711"), ("http://127.0.0.1:8400/cb", "http://127.0.0.1:8400/cb"),
            ("http://[::1]:0/a:0/b", "http://[::1]:4711/a:0/b"),
        ] {
            #expect(try RedirectURI(text).bound(toPort: 4711).text == bound, "\(text)")
        }
    }

    @Test func otherURIsStayAsTheyAre() throws {
        for text in [
            "com.example.app:/callback", "msauth.com.example://auth", "https://app.example/a:0/callback",
            "https://app.example", "https://app.example:443/",
        ] {
            #expect(try RedirectURI(text).bound(toPort: 4711).text == text)
        }
    }

    @Test(arguments: [
        "", "callback", "http://app.example/callback", "http://127.0.0.2/callback", "http://localhost.example/",
        "https://jo@app.example/", "http://127.0.0.1/a?b=c", "http://127.0.0.1/#a", "javascript:alert(1)", "data:,x",
        "file:///etc/passwd", "urn:ietf:wg:oauth:2.0:oob", "about:blank", "ws://127.0.0.1/", "1a:/x", ":/x",
        "com.example.app:/é", "com.example.app:/a b", "http://127.1/",
    ])
    func anythingElseIsRefused(text: String) {
        #expect(error { _ = try RedirectURI(text) }?.code == .configuration)
    }

    @Test func onlyTheSameAddressMatches() throws {
        let loopback = try RedirectURI("http://127.0.0.1/cb").bound(toPort: 4711)
        #expect(loopback.query(of: "http://127.0.0.1:4711/cb?a=b") == "a=b")
        #expect(loopback.query(of: "http://127.0.0.1:4711/cb") == "")
        #expect(loopback.query(of: "http://127.0.0.1:4711/cb?a=b#c?d") == "a=b")
        for other in [
            "http://127.0.0.1:4712/cb?a=b", "http://127.0.0.1/cb?a=b", "http://localhost:4711/cb?a=b",
            "https://127.0.0.1:4711/cb?a=b", "http://127.0.0.1:4711/cb/?a=b", "http://127.0.0.1:4711/CB?a=b",
            "http://127.0.0.1:4711/?a=b", "http://jo@127.0.0.1:4711/cb?a=b", "/cb?a=b", "a=b", "",
        ] {
            #expect(loopback.query(of: other) == nil, "\(other)")
        }
        #expect(try RedirectURI("http://localhost").bound(toPort: 9).query(of: "http://localhost:9/?a=b") == "a=b")
        #expect(try RedirectURI("https://app.example").query(of: "https://app.example/?a=b") == "a=b")
        let scheme = try RedirectURI("com.Example.app:/cb")
        #expect(scheme.query(of: "com.example.APP:/cb?a=b") == "a=b")
        #expect(scheme.query(of: "com.example.app:/CB?a=b") == nil)
        #expect(scheme.query(of: "com.example.app://cb?a=b") == nil)
        #expect(try RedirectURI("msauth.x://auth").query(of: "msauth.x://auth/?a=b") == "a=b")
    }
}

@Suite struct AuthorizationResponseTests {
    @Test func theCodeIsReadFromEveryForm() throws {
        let query = "code=a%2Bb&state=\(state)"
        #expect(try read(.query(query)).code.utf8Text == "a+b")
        #expect(try read(.formPost(Array(query.utf8))).code.utf8Text == "a+b")
        #expect(try read(.url("http://127.0.0.1:40000/callback?\(query)#")).code.utf8Text == "a+b")
        #expect(try read(.query(query + "&session_state=x")).code.utf8Text == "a+b")
    }

    /// Nothing of a message is evaluated before its state is verified: neither its error nor a repeated parameter.
    @Test(arguments: [
        "code=a", "code=a&state=", "code=a&state=other", "error=access_denied", "error=access_denied&state=other",
        "code=a&code=a&state=x", "iss=https://evil.example&code=a", "", "state", "state=%", "%",
    ])
    func aMessageWithAnotherStateIsForeign(query: String) {
        #expect(error { _ = try read(.query(query)) }?.code == .stateMismatch)
    }

    @Test func theStateMayOccurOnce() {
        #expect(error { _ = try read(.query("code=a&state=\(state)&state=\(state)")) }?.code == .stateMismatch)
    }

    @Test(arguments: ["code=a&code=b", "code=a&iss=x&iss=x", "code=a&x=1&x=1", "error=a&error=b"])
    func aRepeatedParameterIsAnError(query: String) {
        #expect(error { _ = try read(.query("\(query)&state=\(state)")) }?.code == .malformedResponse)
    }

    /// RFC 9207 §2.4.
    @Test func aResponseOfAnotherIssuerIsAMixUp() throws {
        let promising = ["authorization_response_iss_parameter_supported": "true"]
        let good = "code=a&state=\(state)&iss=https%3A%2F%2Fid.example%2Ftenant"
        #expect(throws: Never.self) { try read(.query(good)) }
        #expect(throws: Never.self) { try read(.query(good), promising) }
        for issuer in ["https://id.example/tenant/", "https://evil.example", ""] {
            let query = "code=a&state=\(state)&iss=\(FormEncoding.encode(issuer.utf8))"
            #expect(error { _ = try read(.query(query)) }?.code == .mixedUp, "\(issuer)")
            #expect(error { _ = try read(.query(query), promising) }?.code == .mixedUp, "\(issuer)")
            // Also before the error is believed.
            let denied = query + "&error=access_denied"
            #expect(error { _ = try read(.query(denied)) }?.code == .mixedUp, "\(issuer)")
        }
        #expect(error { _ = try read(.query("code=a&state=\(state)"), promising) }?.code == .mixedUp)
    }

    @Test func theProvidersErrorComesBeforeTheCode() {
        let query = "error=access_denied&error_description=No%0A%1B[31m+entry&code=a&state=\(state)"
        let found = error { _ = try read(.query(query)) }
        #expect(found?.code == .denied)
        #expect(found?.fault == .person)
        #expect(found?.detail == "the provider reports access_denied: No .[31m entry")
        for (name, code) in [
            ("login_required", OAuthError.Code.interactionRequired), ("temporarily_unavailable", .unavailable),
            ("invalid_scope", .refused), ("x", .refused), ("", .malformedResponse), ("%22", .malformedResponse),
        ] as [(String, OAuthError.Code)] {
            #expect(error { _ = try read(.query("error=\(name)&state=\(state)")) }?.code == code, "\(name)")
        }
    }

    @Test(arguments: ["", "&code=", "&code=%00", "&code=%C3%A9", "&token=a"])
    func aResponseWithoutACodeIsMalformed(query: String) {
        #expect(error { _ = try read(.query("state=\(state)" + query)) }?.code == .malformedResponse)
    }

    @Test func anotherURLOrALongOneIsForeign() {
        let query = "code=a&state=\(state)"
        #expect(error { _ = try read(.url("http://127.0.0.1:40001/callback?\(query)")) }?.code == .wrongRedirect)
        #expect(error { _ = try read(.url(query)) }?.code == .wrongRedirect)
        let long = query + "&x=" + String(repeating: "a", count: AuthorizationResponse.maximumBytes)
        #expect(error { _ = try read(.query(long)) }?.code == .stateMismatch)
    }

    @Test func errorsDoNotContainCodeOrState() {
        let found = error { _ = try read(.query("code=canary&code=canary&state=\(state)")) }
        #expect(found.map { "\($0)" }?.contains("canary") == false)
        #expect(found.map { "\($0)" }?.contains(state) == false)
    }

    /// Messages that are changed at random. Only those with the right state lead further than `stateMismatch`.
    @Test func changedMessagesHaveNoEffect() throws {
        var random = SplitMix(state: 11)
        let seed = Array("code=abc&state=\(state)&iss=https%3A%2F%2Fid.example%2Ftenant&error_description=x".utf8)
        let metadata = try Provider.metadata()
        let redirect = try Provider.redirect()
        var accepted = 0
        for _ in 0..<10_000 {
            var bytes = seed
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                if Bool.random(using: &random) {
                    bytes[place] = UInt8.random(in: 0...255, using: &random)
                } else {
                    bytes.replaceSubrange(place..<place, with: seed.shuffled(using: &random).prefix(3))
                }
            }
            do throws(OAuthError) {
                _ = try AuthorizationResponse(
                    .formPost(bytes), to: redirect, state: state, metadata: metadata)
                accepted += 1
                #expect(FormEncoding.decode(bytes)?.contains { $0.name == "state" && $0.value == state } == true)
            } catch {
                #expect(error.detail.utf8.allSatisfy { (0x20...0x7E).contains($0) }, "\(error.detail)")
            }
        }
        #expect(accepted > 0)
    }

    private let state = Provider.secrets.state

    private func read(
        _ message: RedirectMessage, _ changes: [String: String?] = [:]
    ) throws -> AuthorizationResponse {
        try AuthorizationResponse(
            message, to: try Provider.redirect(), state: state, metadata: try Provider.metadata(changes))
    }
}
