// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON
import Testing

@testable import CountersignOAuth

/// Errors that providers report, and effects that they must not have.
@Suite struct RefusalTests {
    @Test(arguments: [
        (nil, OAuthError.Code.invalidGrant, true), ("", .invalidGrant, true), ("bad_token", .invalidGrant, true),
        ("token_expired", .invalidGrant, true), ("basic_action", .interactionRequired, false),
        ("consent_required", .interactionRequired, false),
        // It belongs to another error.
        ("protection_policy_required", .interactionRequired, false),
    ])
    func onlyATokenThatIsNotValidIsDiscarded(suberror: String?, code: OAuthError.Code, discards: Bool) throws {
        let more = suberror.map { ",\"suberror\":\"\($0)\"" } ?? ""
        var refresh = try Sample.refreshing()
        let action = refresh.received(Sample.outcome(400, "{\"error\":\"invalid_grant\"\(more)}"), now: Sample.now)
        #expect(action.error?.code == code)
        #expect(action.discardsTokens == discards)
        // An event after the end changes nothing.
        #expect(refresh.stored() == action)
        #expect(refresh.start() == action)
    }

    @Test func errorsDoNotRepeatWhatWasSent() throws {
        func body(_ secret: String) -> String {
            #"{"error":"e-\#(secret)","suberror":"s-\#(secret)","error_description":"Invalid token: \#(secret)","#
                + #""correlation_id":"\#(secret)"}"#
        }
        var errors: [(OAuthError?, String)] = []
        var refresh = try Sample.refreshing()
        errors.append((refresh.received(Sample.outcome(400, body("refresh-old")), now: 0).error, "refresh-old"))
        var redeeming = try Sample.redeeming()
        let code = "code-of-the-sign-in"
        errors.append((redeeming.received(Sample.outcome(400, body(code)), now: 0).error, code))
        let password = Client.Authentication.secret(Secret(utf8: "pass-word"))
        var (device, _) = try Sample.begun(by: .device, try Sample.wanted(password))
        errors.append((device.received(Sample.outcome(400, body("pass-word")), now: 0).error, "pass-word"))
        var (pushing, _) = try Sample.begun(
            try Sample.wanted(password),
            metadata: ["pushed_authorization_request_endpoint": "\"https://login.example/par\""])
        errors.append((pushing.received(Sample.outcome(400, body("pass-word")), now: 0).error, "pass-word"))
        let tokens = TokenSet(
            accessToken: Secret(utf8: "access-0"), expiresAt: nil, obtainedAt: 0, refreshToken: nil, scope: nil,
            idToken: nil, clientInfo: nil)
        for request in try TokenRevocation.requests(tokens, client: Client("c"), at: try Sample.metadata()) {
            do throws(OAuthError) {
                try TokenRevocation.check(Sample.outcome(400, body("access-0")), of: request)
            } catch {
                errors.append((error, "access-0"))
            }
        }
        var (browser, _) = try Sample.begun()
        let query = "error=x&error_description=state+\(Sample.secrets.state)&state=\(Sample.secrets.state)"
        if case .accepted(let action) = browser.redirected(.query(query)) {
            errors.append((action.error, Sample.secrets.state))
        }
        #expect(errors.count == 6)
        for (error, secret) in errors {
            let text =
                "\(error?.detail ?? secret) \(error?.providerCode?.error ?? "") "
                + (error?.providerCode?.suberror ?? "") + (error?.providerCode?.correlationID ?? "")
            #expect(!text.contains(secret))
            #expect(text.contains("reports"))
        }
    }

    @Test func whatLooksLikeATokenIsMasked() {
        let token = "0.AXoAbcdefghijklmnopq"
        #expect(
            ProviderText.sentence("AADSTS7000: token '\(token)' is (not) valid.", hiding: [])
                == "AADSTS7000: token '(hidden)' is (not) valid.")
        #expect(ProviderText.code("protection_policy_required", hiding: []) == "protection_policy_required")
        #expect(ProviderText.code(token, hiding: []) == "(hidden)")
    }

    @Test func claimsAreAskedForAtTheTokenEndpoint() throws {
        let claims = try JSONParser.parse(Array(#"{"access_token":{"xms_cc":{"values":["protapp"]}}}"#.utf8))
        let wanted = try Sample.wanted(claims: claims)
        var (signIn, _) = try Sample.begun(wanted)
        guard case .accepted(let redeem) = signIn.redirected(.query("code=c&state=\(Sample.secrets.state)")) else {
            Issue.record("the redirect was ignored")
            return
        }
        var refresh = TokenRefresh(
            TokenSet(
                accessToken: Secret(utf8: "a"), expiresAt: 0, obtainedAt: 0, refreshToken: Secret(utf8: "r"),
                scope: nil, idToken: nil, clientInfo: nil),
            issuer: try Issuer(Sample.issuer), wanted, subject: nil, metadata: try Sample.metadata())
        guard case .send(let renew) = refresh.start() else {
            Issue.record("nothing was sent")
            return
        }
        for body in [redeem.request?.body, renew.body] {
            let pairs = FormEncoding.decode((body?.utf8Text ?? "").utf8) ?? []
            #expect(pairs.first { $0.name == "claims" }?.value == claims.serialized)
        }
        let wantsMore = refresh.received(
            Sample.outcome(400, #"{"error":"interaction_required","claims":"{\"a\":1}"}"#), now: 0)
        #expect(wantsMore.error?.providerCode?.claims == #"{"a":1}"#)
        #expect(wantsMore.error?.detail.contains("{") == false)
    }

    @Test func anUntrustedCertificateIsNotTransient() throws {
        var (signIn, _) = try Sample.begun(by: .device)
        let code = #"{"device_code":"d","user_code":"U","verification_uri":"https://a.example/","expires_in":900}"#
        _ = signIn.received(Sample.outcome(200, code), now: Sample.now)
        _ = signIn.waited(now: Sample.now)
        let action = signIn.received(
            .failure(ProviderFailure("untrusted certificate", isTransient: false)), now: Sample.now)
        #expect(action.error?.code == .connectionFailed)
        #expect(action.error?.isTransient == false)
        #expect(signIn.waited(now: Sample.now) == action)
    }

    @Test func aSecretIsSentAsTheRevocationEndpointWants() throws {
        let client = Client("c", .secret(Secret(utf8: "pass-word")))
        let tokens = TokenSet(
            accessToken: Secret(utf8: "access-0"), expiresAt: nil, obtainedAt: 0, refreshToken: nil, scope: nil,
            idToken: nil, clientInfo: nil)
        for (changes, isPosted) in [
            ([:], false), (["token_endpoint_auth_methods_supported": #"["client_secret_post"]"#], true),
            (
                [
                    "token_endpoint_auth_methods_supported": #"["client_secret_post"]"#,
                    "revocation_endpoint_auth_methods_supported": #"["client_secret_basic"]"#,
                ], false
            ),
        ] {
            let requests = try TokenRevocation.requests(tokens, client: client, at: try Sample.metadata(changes))
            #expect(requests.map { $0.authorization == nil } == [isPosted])
            #expect(requests.map { $0.body?.utf8Text?.contains("client_secret=pass-word") } == [isPosted])
        }
    }

    /// 64 parameters whose names are canonically equivalent, and one that is too long.
    @Test func parametersAreComparedByTheirBytes() throws {
        let state = Sample.secrets.state
        let redirect = try RedirectURI("http://127.0.0.1/cb").bound(toPort: 5000)
        let query = "code=c&state=\(state)&%C3%A9=1&e%CC%81=2"
        let response = try AuthorizationResponse(
            .query(query), to: redirect, state: state, metadata: try Sample.metadata())
        #expect(response.code.utf8Text == "c")
        #expect(FormEncoding.decode("\(String(repeating: "a", count: 256))=1".utf8)?.count == 1)
        #expect(FormEncoding.decode("\(String(repeating: "a", count: 257))=1".utf8) == nil)
    }
}
