// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignOAuth

/// Providers with members that are not needed, or not as the standards say.
@Suite struct OddProviderTests {
    @Test(arguments: [
        ("end_session_endpoint", "\"http://login.example/\""), ("revocation_endpoint", "7"),
        ("device_authorization_endpoint", #""https://jo@login.example/""#), ("jwks_uri", #""https://x/#a""#),
        ("response_modes_supported", "\"query\""), ("token_endpoint_auth_methods_supported", "[1]"),
        ("code_challenge_methods_supported", "{}"), ("authorization_endpoint", #""javascript:alert(1)""#),
    ])
    func aMemberOfTheMetadataThatCannotBeUsedCountsAsAbsent(name: String, value: String) throws {
        let metadata = try Sample.metadata([name: value])
        #expect(metadata.tokenEndpoint.description == "https://login.example/token")
        #expect(metadata.endSessionEndpoint == nil)
        #expect(name != "revocation_endpoint" || metadata.revocationEndpoint == nil)
        #expect(name != "authorization_endpoint" || metadata.authorizationEndpoint == nil)
    }

    @Test func aPromiseWrittenAsAStringIsKept() throws {
        #expect(
            try Sample.metadata(["authorization_response_iss_parameter_supported": "\"true\""]).sendsIssuerInResponses)
    }

    @Test(arguments: [
        #","expires_in":"soon""#, #","expires_in":-1"#, #","expires_in":{}"#, #","scope":["a"]"#, #","scope":7"#,
        #","client_info":7"#, #","id_token":7"#, #","id_token":"""#,
    ])
    func aMemberOfTheTokensThatCannotBeReadCountsAsAbsent(more: String) throws {
        guard case .response(let response) = Sample.tokens(more) else { return }
        let tokens = try TokenResponse(response)
        #expect(tokens.accessToken.utf8Text == "access-new")
        #expect(tokens.lifetime == nil && tokens.scope == nil && tokens.idToken == nil)
    }

    @Test func aMissingTokenTypeIsBearer() throws {
        let body = Array(#"{"access_token":"a"}"#.utf8)
        #expect(try TokenResponse(Sample.response(200, body)).accessToken.utf8Text == "a")
    }

    @Test func aDeviceCodeNeedsNoMoreThanAnAddress() throws {
        let body = """
            {"device_code":"d","user_code":"U","verification_uri":"https://a.example/","expires_in":9,\
            "verification_uri_complete":"http://a.example/","interval":"often"}
            """
        let authorization = try DeviceAuthorization(
            Sample.response(200, Array(body.utf8)), .secure, now: Sample.now)
        #expect(authorization.completeVerificationURL == nil && authorization.interval == 5)
    }

    @Test func shortLivedTokensAreFreshForThreeQuartersOfTheirLife() {
        let tokens = TokenSet(
            accessToken: Secret(utf8: "a"), expiresAt: 1040, obtainedAt: 1000, refreshToken: nil, scope: nil,
            idToken: nil, clientInfo: nil)
        #expect(tokens.isFresh(now: 1029))
        #expect(!tokens.isFresh(now: 1030))
    }

    @Test func theIssuerOfAllTenantsGetsAHint() throws {
        do throws(OAuthError) {
            _ = try ProviderMetadata(
                parsing: Sample.document(["issuer": "\"https://login.example/{tenantid}/v2.0\""]),
                issuer: Issuer(Sample.issuer))
            Issue.record("another issuer was accepted")
        } catch {
            #expect(error.code == .issuerMismatch)
            #expect(error.hint?.contains("the tenant's own identifier") == true)
        }
    }

    @Test(arguments: [(302, "{}"), (501, "{}"), (404, "{}"), (200, "<html>")])
    func theSecondPlaceOfTheMetadataIsTriedUnlessTheFirstHasSome(status: Int, body: String) throws {
        func start() throws -> SignIn {
            var signIn = SignIn(
                issuer: try Issuer(Sample.issuer), try Sample.wanted(), by: .device, secrets: Sample.secrets)
            _ = signIn.start()
            return signIn
        }
        var signIn = try start()
        let next = signIn.received(Sample.outcome(status, body), now: Sample.now).request
        #expect(next?.url.description == "https://login.example/.well-known/oauth-authorization-server/t")
        #expect(signIn.received(Sample.outcome(200, Sample.document()), now: Sample.now).request != nil)
        var other = try start()
        let foreign = Sample.document(["issuer": "\"https://evil.example\""])
        #expect(other.received(Sample.outcome(200, foreign), now: Sample.now).error?.code == .issuerMismatch)
    }

    @Test(arguments: [401, 403, 404, 405])
    func aRequestThatNeedNotBePushedIsSentInTheURL(status: Int) throws {
        let endpoint = ["pushed_authorization_request_endpoint": "\"https://login.example/par\""]
        var (signIn, push) = try Sample.begun(metadata: endpoint)
        #expect(push.request?.purpose == .pushedAuthorization)
        let page = signIn.received(Sample.outcome(status, #"{"error":"invalid_client"}"#), now: Sample.now).page
        #expect(page?.query?.contains("code_challenge=") == true)
        var (strict, _) = try Sample.begun(
            metadata: endpoint.merging(["require_pushed_authorization_requests": "true"]) { $1 })
        #expect(strict.received(Sample.outcome(status, "{}"), now: Sample.now).error != nil)
    }

    @Test func namesBelowLocalhostAreNotThisMachine() {
        #expect(throws: OAuthError(.configuration, .profile, "")) {
            try EndpointURL("http://a.localhost/", "issuer", .secureOrLoopback)
        }
        #expect(throws: Never.self) { try EndpointURL("http://localhost/", "issuer", .secureOrLoopback) }
    }

    @Test func redirectURIsAreSentAsTheyWereGiven() throws {
        for (given, sent) in [
            ("https://APP.example", "https://APP.example"), ("https://app.example:443/", "https://app.example:443/"),
            ("http://LocalHost", "http://LocalHost:5000"), ("http://127.0.0.1:0/a", "http://127.0.0.1:5000/a"),
            ("http://[::1]/x:0/y", "http://[::1]:5000/x:0/y"), ("http://127.0.0.1:80/", "http://127.0.0.1:80/"),
            ("https://app.example/a:0/b", "https://app.example/a:0/b"),
        ] {
            let redirect = try RedirectURI(given).bound(toPort: 5000)
            #expect(redirect.text == sent)
            #expect(redirect.query(of: sent + (sent.hasSuffix("e") ? "/?a" : "?a")) == "a", "\(sent)")
        }
    }
}
