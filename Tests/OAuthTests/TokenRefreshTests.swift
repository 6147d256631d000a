// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignOAuth

@Suite struct TokenRefreshTests {
    @Test func aRefreshWithoutIDTokenEndsAtOnce() throws {
        var refresh = try Self.refresh()
        #expect(try sent(refresh.start()).purpose == .metadata)
        let request = try sent(refresh.received(Scene.metadata(), now: now))
        #expect(
            request.parameters == [
                "grant_type": ["refresh_token"], "refresh_token": ["refresh-0"], "client_id": ["app-1"],
            ])
        let tokens = try finished(refresh.received(reply(), now: now))
        #expect(tokens.accessToken.utf8Text == "access-2")
        #expect(tokens.refreshToken?.utf8Text == "refresh-0")
        #expect(tokens.idToken?.utf8Text == "id-0")
        #expect(tokens.expiresAt == now + 60)
    }

    /// RFC 9700 §4.14.2: the provider may have revoked the old refresh token.
    @Test func aNewRefreshTokenIsStoredBeforeAnythingElse() throws {
        var refresh = try Self.refreshing()
        let token = try idToken()
        guard case .store(let kept) = refresh.received(reply(refreshToken: "refresh-1", idToken: token), now: now)
        else { throw Unexpected("not stored") }
        #expect(kept.refreshToken?.utf8Text == "refresh-1")
        #expect(kept.accessToken.utf8Text == "access-0")
        #expect(kept.idToken?.utf8Text == "id-0")
        #expect(try sent(refresh.stored()).purpose == .keys)
        let tokens = try finished(refresh.received(try Scene.keys(), now: now))
        #expect(tokens.accessToken.utf8Text == "access-2" && tokens.idToken?.utf8Text == token)
    }

    @Test func anOutageDiscardsNoToken() throws {
        let outages: [ProviderOutcome] = [
            .failure(ProviderFailure("no route")), .failure(ProviderFailure("timed out", timedOut: true)),
            .failure(ProviderFailure("untrusted certificate", isTransient: false)), Provider.response(500, ""),
            Provider.response(503, #"{"error":"invalid_grant"}"#), Provider.response(429, ""),
            Provider.response(200, type: "text/html", "<html>captive portal"), Provider.response("{}"),
            Provider.response(400, #"{"error":"invalid_client"}"#), Provider.response(400, #"{"error":"x"}"#),
            Provider.response(400, #"{"error":"interaction_required"}"#), Provider.response(302, ""),
            Provider.response(400, type: "text/html", #"{"error":"invalid_grant"}"#),
            Provider.response(
                400, #"{"error":"unauthorized_client","suberror":"protection_policy_required"}"#),
        ]
        for outcome in outages {
            var atToken = try Self.refreshing()
            #expect(try failed(atToken.received(outcome, now: now)).discards == false)
            var atMetadata = try Self.refresh()
            _ = atMetadata.start()
            if case .fail(_, let discards) = atMetadata.received(outcome, now: now) { #expect(!discards) }
        }
    }

    @Test func onlyInvalidGrantDiscardsTheTokens() throws {
        var refresh = try Self.refreshing()
        let failure = try failed(refresh.received(Provider.response(400, #"{"error":"invalid_grant"}"#), now: now))
        #expect(failure.discards && failure.code == .invalidGrant)
    }

    @Test func anOutageOfTheKeysDoesNotStopTheRefresh() throws {
        for outcome in [Provider.response(503, ""), ProviderOutcome.failure(ProviderFailure("no route"))] {
            var refresh = try Self.refreshing()
            _ = refresh.received(reply(idToken: try idToken()), now: now)
            guard case .finish(let tokens, let claims) = refresh.received(outcome, now: now) else {
                throw Unexpected("no end")
            }
            #expect(tokens.accessToken.utf8Text == "access-2")
            // The ID token that could not be verified is not stored.
            #expect(tokens.idToken?.utf8Text == "id-0" && claims == nil)
        }
    }

    @Test func aForgedIDTokenEndsTheRefreshAndKeepsTheTokens() throws {
        let other = try SigningKey("key-1", SigningKey.ec("P-256"))
        var refresh = try Self.refreshing()
        _ = refresh.received(reply(idToken: try other.token(Claims.text())), now: now)
        let failure = try failed(refresh.received(try Scene.keys(), now: now))
        #expect(failure.code == .invalidIDToken && !failure.discards)
    }

    @Test func aRefusedIDTokenDoesNotLoseTheNewRefreshToken() throws {
        var refresh = try Self.refreshing()
        let outcome = reply(refreshToken: "refresh-1", idToken: try idToken(["aud": #""x""#]))
        guard case .store(let kept) = refresh.received(outcome, now: now) else { throw Unexpected("not stored") }
        #expect(kept.refreshToken?.utf8Text == "refresh-1")
        let failure = try failed(refresh.stored())
        #expect(failure.code == .invalidIDToken && !failure.discards)
    }

    /// OpenID Connect Core §12.2.
    @Test func tokensOfAnotherAccountAreNotStored() throws {
        let cases: [(String, OAuthError.Code)] = [("sub", .accountChanged), ("iss", .invalidIDToken)]
        for (claim, code) in cases {
            var refresh = try Self.refreshing()
            let token = try idToken([claim: "\"https://other.example\""])
            let failure = try failed(refresh.received(reply(idToken: token), now: now))
            #expect(failure.code == code && !failure.discards)
        }
        var refresh = try Self.refreshing()
        let token = try idToken(["sub": "\"person-2\""])
        let action = refresh.received(reply(refreshToken: "refresh-1", idToken: token), now: now)
        #expect(try failed(action).code == .accountChanged)
    }

    @Test func withoutARefreshTokenThePersonIsAsked() throws {
        var refresh = TokenRefresh(
            Self.tokens(refreshToken: nil), issuer: try Provider.issuer(), try Provider.request(), subject: nil,
            metadata: try Provider.metadata())
        let failure = try failed(refresh.start())
        #expect(failure.code == .interactionRequired && !failure.discards)
    }

    private let now = Provider.now

    private static func tokens(refreshToken: String? = "refresh-0") -> TokenSet {
        TokenSet(
            accessToken: Secret(utf8: "access-0"), expiresAt: Provider.now - 5, obtainedAt: Provider.now - 3605,
            refreshToken: refreshToken.map { Secret(utf8: $0) }, scope: "openid", idToken: Secret(utf8: "id-0"),
            clientInfo: nil)
    }

    private static func refresh() throws -> TokenRefresh {
        TokenRefresh(tokens(), issuer: try Provider.issuer(), try Provider.request(), subject: "person-1")
    }

    /// The refresh token is on its way.
    private static func refreshing() throws -> TokenRefresh {
        var refresh = TokenRefresh(
            tokens(), issuer: try Provider.issuer(), try Provider.request(), subject: "person-1",
            metadata: try Provider.metadata())
        _ = refresh.start()
        return refresh
    }

    private func idToken(_ changes: [String: String?] = [:]) throws -> String {
        try SigningKey.shared.get().token(Claims.text(changes))
    }

    private func reply(refreshToken: String? = nil, idToken: String? = nil) -> ProviderOutcome {
        var more = refreshToken.map { #","refresh_token":"\#($0)""# } ?? ""
        if let idToken { more += #","id_token":"\#(idToken)""# }
        return Provider.response(#"{"access_token":"access-2","token_type":"Bearer","expires_in":60\#(more)}"#)
    }

    private func sent(_ action: TokenRefresh.Action) throws -> ProviderRequest {
        guard case .send(let request) = action else { throw Unexpected(action) }
        return request
    }

    private func finished(_ action: TokenRefresh.Action) throws -> TokenSet {
        guard case .finish(let tokens, _) = action else { throw Unexpected(action) }
        return tokens
    }

    private func failed(_ action: TokenRefresh.Action) throws -> (code: OAuthError.Code, discards: Bool) {
        guard case .fail(let error, let discards) = action else { throw Unexpected(action) }
        return (error.code, discards)
    }
}

@Suite struct EndingTests {
    /// RFC 7009 §2.1.
    @Test func theRefreshTokenIsRevokedFirst() throws {
        let tokens = TokenSet(
            accessToken: Secret(utf8: "access-0"), expiresAt: nil, obtainedAt: 0,
            refreshToken: Secret(utf8: "refresh-0"), scope: nil, idToken: nil, clientInfo: nil)
        let requests = try TokenRevocation.requests(tokens, client: Client("app-1"), at: try Provider.metadata())
        #expect(
            requests.map(\.parameters) == [
                ["token": ["refresh-0"], "token_type_hint": ["refresh_token"], "client_id": ["app-1"]],
                ["token": ["access-0"], "token_type_hint": ["access_token"], "client_id": ["app-1"]],
            ])
        let without = try Provider.metadata(["revocation_endpoint": nil])
        #expect(try TokenRevocation.requests(tokens, client: Client("app-1"), at: without).isEmpty)
    }

    @Test func onlyStatus200SaysThatATokenIsRevoked() throws {
        #expect(throws: Never.self) { try TokenRevocation.check(Provider.response(200, type: nil, "")) }
        for (outcome, code) in [
            (Provider.response(503, ""), OAuthError.Code.unavailable), (Provider.response(404, ""), .malformedResponse),
            (Provider.response(400, #"{"error":"unsupported_token_type"}"#), .refused),
            (.failure(ProviderFailure("no route")), .unreachable),
        ] as [(ProviderOutcome, OAuthError.Code)] {
            #expect(error { try TokenRevocation.check(outcome) }?.code == code)
        }
    }

    @Test func signingOutNamesTheSession() throws {
        let url = EndSession.url(logoutHint: "jdoe", client: Client("app-1"), at: try Provider.metadata())
        #expect(url?.parameters == ["logout_hint": ["jdoe"], "client_id": ["app-1"]])
        let without = try Provider.metadata(["end_session_endpoint": nil])
        #expect(EndSession.url(logoutHint: nil, client: Client("app-1"), at: without) == nil)
    }
}
