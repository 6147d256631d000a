// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignOAuth

/// Whole sign-ins as transcripts: each event's action is compared.
@Suite struct SignInTests {
    @Test func aSignInInTheBrowser() throws {
        var signIn = try Scene.signIn()
        let fetch = try Scene.sent(signIn.start())
        #expect(fetch.purpose == .metadata && fetch.method == "GET")
        #expect(fetch.url.description == "https://id.example/tenant/.well-known/openid-configuration")

        guard case .open(let url) = signIn.received(Scene.metadata(), now: now) else { throw Unexpected("no URL") }
        #expect(url.parameters["state"] == [Provider.secrets.state])

        let redeem = try Scene.sent(try Scene.accepted(signIn.redirected(.query(Scene.answer))))
        #expect(redeem.purpose == .token)
        #expect(redeem.url.description == "https://id.example/tenant/token")
        #expect(
            redeem.parameters == [
                "grant_type": ["authorization_code"], "code": ["code-1"], "client_id": ["app-1"],
                "redirect_uri": ["http://127.0.0.1:40000/callback"],
                "code_verifier": [Provider.secrets.pkce.verifier.utf8Text ?? ""],
            ])

        let keys = try Scene.sent(signIn.received(try Scene.tokens(), now: now))
        #expect(keys.purpose == .keys)
        guard case .finish(let result) = signIn.received(try Scene.keys(), now: now) else { throw Unexpected("no end") }
        #expect(result.tokens.accessToken.utf8Text == "access-1")
        #expect(result.tokens.refreshToken?.utf8Text == "refresh-1")
        #expect(result.tokens.expiresAt == now + 3600)
        #expect(result.idToken?.subject == "person-1")
        #expect(signIn.keys?.count == 1)
    }

    @Test func theManualFormWaitsForTheCaller() throws {
        var signIn = try Scene.signIn(form: .manual)
        _ = signIn.start()
        _ = signIn.received(Scene.metadata(), now: now)
        #expect(try Scene.accepted(signIn.redirected(.query(Scene.answer))) == .authorized)
        #expect(try Scene.sent(signIn.redeem()).purpose == .token)
    }

    @Test func theSecondPlaceOfTheMetadataIsTried() throws {
        for status in [404, 400, 403] {
            var signIn = try Scene.signIn()
            _ = signIn.start()
            let second = try Scene.sent(
                signIn.received(Provider.response(status, type: "text/html", "<html>"), now: now))
            #expect(second.url.description == "https://id.example/.well-known/oauth-authorization-server/tenant")
            var failed = signIn
            _ = failed.received(Provider.response(404, ""), now: now)
            #expect(Scene.failure(failed.received(Provider.response(404, ""), now: now)) == .unsupportedProvider)
            guard case .open = signIn.received(Scene.metadata(), now: now) else { throw Unexpected("no URL") }
        }
        // An outage is not an answer.
        for outcome in [Provider.response(503, ""), ProviderOutcome.failure(ProviderFailure("no route"))] {
            var signIn = try Scene.signIn()
            _ = signIn.start()
            let code = Scene.failure(signIn.received(outcome, now: now))
            #expect(code == .unavailable || code == .unreachable)
        }
    }

    @Test func anotherIssuersMetadataEndsTheSignIn() throws {
        var signIn = try Scene.signIn()
        _ = signIn.start()
        let outcome = Scene.metadata(["issuer": #""https://evil.example""#])
        #expect(Scene.failure(signIn.received(outcome, now: now)) == .issuerMismatch)
    }

    @Test func aPushedRequestIsOpenedByItsName() throws {
        let endpoint: [String: String?] = ["pushed_authorization_request_endpoint": #""https://id.example/par""#]
        var signIn = try Scene.signIn()
        _ = signIn.start()
        let push = try Scene.sent(signIn.received(Scene.metadata(endpoint), now: now))
        #expect(push.purpose == .pushedAuthorization)
        #expect(push.parameters["code_challenge_method"] == ["S256"])
        #expect(push.parameters["client_id"] == ["app-1"])
        var refused = signIn
        let reply = Provider.response(201, #"{"request_uri":"urn:ietf:params:oauth:request_uri:x","expires_in":60}"#)
        guard case .open(let url) = signIn.received(reply, now: now) else { throw Unexpected("no URL") }
        #expect(
            url.parameters == ["client_id": ["app-1"], "request_uri": ["urn:ietf:params:oauth:request_uri:x"]])
        #expect(
            Scene.failure(refused.received(Provider.response(400, #"{"error":"invalid_request"}"#), now: now))
                == .refused)
        for body in ["{}", #"{"request_uri":""}"#, #"{"request_uri":"a b"}"#, "[]"] {
            var copy = try Scene.signIn()
            _ = copy.start()
            _ = copy.received(Scene.metadata(endpoint), now: now)
            #expect(Scene.failure(copy.received(Provider.response(201, body), now: now)) == .malformedResponse)
        }
    }

    @Test func aProviderThatRequiresPushingMustSayWhere() throws {
        var signIn = try Scene.signIn()
        _ = signIn.start()
        let outcome = Scene.metadata(["require_pushed_authorization_requests": "true"])
        #expect(Scene.failure(signIn.received(outcome, now: now)) == .unsupportedProvider)
    }

    @Test func foreignRedirectsDoNotEndTheWait() throws {
        var signIn = try Scene.waiting()
        for message in [
            RedirectMessage.query("code=x&state=other"), .query("error=access_denied"), .formPost([0xFF]), .url("x"),
        ] {
            guard case .ignored = signIn.redirected(message) else { throw Unexpected(message) }
        }
        #expect(try Scene.sent(try Scene.accepted(signIn.redirected(.query(Scene.answer)))).purpose == .token)
        // A second redirect, even the right one, comes too late.
        guard case .ignored = signIn.redirected(.query(Scene.answer)) else { throw Unexpected("accepted twice") }
    }

    @Test func theProvidersRefusalEndsTheSignIn() throws {
        var signIn = try Scene.waiting()
        let action = try Scene.accepted(
            signIn.redirected(.query("error=access_denied&state=\(Provider.secrets.state)")))
        #expect(Scene.failure(action) == .denied)
        guard case .ignored = signIn.redirected(.query(Scene.answer)) else { throw Unexpected("accepted afterwards") }
    }

    @Test func aCancelledSignInAcceptsNothing() throws {
        var signIn = try Scene.waiting()
        #expect(Scene.failure(signIn.cancelled()) == .cancelled)
        guard case .ignored = signIn.redirected(.query(Scene.answer)) else { throw Unexpected("accepted") }
    }

    @Test func aForgedIDTokenEndsTheSignIn() throws {
        let other = try SigningKey("key-1", SigningKey.ec("P-256"))
        let nonce: [String: String?] = ["nonce": "\"\(Provider.secrets.nonce)\""]
        var signIn = try Scene.redeeming()
        _ = signIn.received(try Scene.tokens(idToken: try other.token(Claims.text(nonce))), now: now)
        #expect(Scene.failure(signIn.received(try Scene.keys(), now: now)) == .invalidIDToken)
        // Claims are checked before any key is fetched.
        for changes: [String: String?] in [
            ["nonce": "\"other\""], ["nonce": nil], nonce.merging(["aud": "\"x\""]) { $1 },
            nonce.merging(["iss": "\"https://evil.example\""]) { $1 },
            nonce.merging(["at_hash": "\"AAAA\""]) { $1 },
        ] {
            var signIn = try Scene.redeeming()
            let token = try SigningKey.shared.get().token(Claims.text(changes))
            #expect(Scene.failure(signIn.received(try Scene.tokens(idToken: token), now: now)) == .invalidIDToken)
        }
    }

    @Test func openIDNeedsAnIDToken() throws {
        var signIn = try Scene.redeeming()
        let bare = Provider.response(#"{"access_token":"a","token_type":"Bearer"}"#)
        #expect(Scene.failure(signIn.received(bare, now: now)) == .malformedResponse)
        var plain = try Scene.redeeming(scopes: ["api"])
        guard case .finish(let result) = plain.received(bare, now: now) else { throw Unexpected("no end") }
        #expect(result.idToken == nil && result.tokens.scope == "api")
    }

    @Test func keysOfBeforeAreUsedAndFetchedOnceMoreForANewKey() throws {
        let old = try SigningKey("key-0", SigningKey.ec("P-256"))
        var known = try Scene.redeeming(keys: try KeySet(try SigningKey.shared.get().key()))
        guard case .finish = known.received(try Scene.tokens(), now: now) else { throw Unexpected("no end") }
        var rotated = try Scene.redeeming(keys: try KeySet(old.key()))
        #expect(try Scene.sent(rotated.received(try Scene.tokens(), now: now)).purpose == .keys)
        var still = rotated
        guard case .finish = rotated.received(try Scene.keys(), now: now) else { throw Unexpected("no end") }
        #expect(
            Scene.failure(still.received(Provider.response(KeySet.text([old.key()])), now: now)) == .invalidIDToken)
    }

    @Test func aConfidentialClientProvesItselfWithItsSecret() throws {
        var signIn = try Scene.signIn(authentication: .secret(Secret(utf8: "s3cret")))
        _ = signIn.start()
        _ = signIn.received(Scene.metadata(), now: now)
        let request = try Scene.sent(try Scene.accepted(signIn.redirected(.query(Scene.answer))))
        #expect(request.authorization?.utf8Text == "Basic " + Base64.encode(Array("app-1:s3cret".utf8)))
        #expect(request.parameters["client_id"] == nil)
    }

    @Test func theNetworksFaultsAreTheNetworks() throws {
        var signIn = try Scene.redeeming()
        guard case .fail(let error) = signIn.received(.failure(ProviderFailure("connection reset")), now: now) else {
            throw Unexpected("no failure")
        }
        #expect(error.fault == .network && error.code == .unreachable)
        #expect(error.detail == "the token endpoint: connection reset")
    }

    private let now = Provider.now
}

/// Sign-ins at a certain point, and the provider's answers.
enum Scene {
    static let answer = "code=code-1&state=\(Provider.secrets.state)"

    static func signIn(
        form: SignIn.Form = .automatic, by method: SignIn.Method? = nil,
        authentication: Client.Authentication = .none, scopes: [String] = ["openid"], keys: KeySet? = nil
    ) throws -> SignIn {
        SignIn(
            issuer: try Provider.issuer(), try Provider.request(authentication, scopes: scopes),
            by: try method ?? .browser(Provider.redirect()), form: form, secrets: Provider.secrets, keys: keys)
    }

    /// The browser is open.
    static func waiting(scopes: [String] = ["openid"], keys: KeySet? = nil) throws -> SignIn {
        var signIn = try Self.signIn(scopes: scopes, keys: keys)
        _ = signIn.start()
        _ = signIn.received(metadata(), now: Provider.now)
        return signIn
    }

    /// The code is on its way to the token endpoint.
    static func redeeming(scopes: [String] = ["openid"], keys: KeySet? = nil) throws -> SignIn {
        var signIn = try waiting(scopes: scopes, keys: keys)
        _ = signIn.redirected(.query(answer))
        return signIn
    }

    static func metadata(_ changes: [String: String?] = [:]) -> ProviderOutcome {
        .response(
            ProviderResponse(
                status: 200, contentType: "application/json", retryAfter: nil, body: Provider.document(changes)))
    }

    /// A token response with an ID token for this sign-in's nonce.
    static func tokens(idToken: String? = nil, refreshToken: String = "refresh-1") throws -> ProviderOutcome {
        let nonce: [String: String?] = ["nonce": "\"\(Provider.secrets.nonce)\""]
        let idToken = try idToken ?? SigningKey.shared.get().token(Claims.text(nonce))
        return Provider.response(
            """
            {"access_token":"access-1","token_type":"Bearer","expires_in":3600,"refresh_token":"\(refreshToken)",\
            "id_token":"\(idToken)"}
            """)
    }

    static func keys() throws -> ProviderOutcome {
        Provider.response(200, type: "application/jwk-set+json", KeySet.text([try SigningKey.shared.get().key()]))
    }

    static func sent(_ action: SignIn.Action) throws -> ProviderRequest {
        guard case .send(let request) = action else { throw Unexpected(action) }
        return request
    }

    static func accepted(_ redirection: SignIn.Redirection) throws -> SignIn.Action {
        guard case .accepted(let action) = redirection else { throw Unexpected(redirection) }
        return action
    }

    static func failure(_ action: SignIn.Action) -> OAuthError.Code? {
        if case .fail(let error) = action { error.code } else { nil }
    }
}
