// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignOAuth

/// Grants without a person: RFC 6749 §4.4, RFC 7523 §2.1, RFC 8693 §2.1.
@Suite struct MachineSignInTests {
    private static let answer = #"{"access_token":"access-1","token_type":"Bearer","expires_in":60,"scope":"a b"}"#

    private func machine(
        _ grant: MachineGrant, token: String? = nil, _ authentication: Client.Authentication = .none,
        client: String = Provider.client, scopes: [String] = ["api"], metadata: ProviderMetadata? = nil
    ) throws -> MachineSignIn {
        let wanted = try SignInRequest(client: Client(client, authentication), scopes: scopes)
        return MachineSignIn(
            issuer: try Provider.issuer(), wanted, by: grant, with: token.map { Secret(utf8: $0) }, metadata: metadata)
    }

    private func request(_ action: MachineSignIn.Action) throws -> ProviderRequest {
        guard case .send(let request) = action else { throw Unexpected(action) }
        return request
    }

    private func asked(_ machine: inout MachineSignIn) throws -> ProviderRequest {
        #expect(try request(machine.start()).purpose == .metadata)
        return try request(
            machine.received(Provider.response(String(decoding: Provider.document(), as: UTF8.self)), now: 0))
    }

    @Test func theClientAsksForItself() throws {
        var machine = try machine(.clientCredentials, .secret(Secret(utf8: "s3cret")))
        let request = try asked(&machine)
        #expect(request.url.description == "https://id.example/tenant/token")
        #expect(request.parameters == ["grant_type": ["client_credentials"], "scope": ["api"]])
        #expect(request.authorization?.utf8Text == "Basic YXBwLTE6czNjcmV0")
        guard case .finish(let tokens) = machine.received(Provider.response(Self.answer), now: 100) else {
            throw Unexpected("no tokens")
        }
        #expect(tokens.accessToken.utf8Text == "access-1" && tokens.expiresAt == 160 && tokens.scope == "a b")
    }

    @Test func anAssertionOfAnotherIssuerIsSent() throws {
        var machine = try machine(.assertion(file: "/run/token"), token: "e.y.z", client: "")
        let type = "urn:ietf:params:oauth:grant-type:jwt-bearer"
        let request = try asked(&machine)
        #expect(request.parameters == ["grant_type": [type], "assertion": ["e.y.z"], "scope": ["api"]])
        #expect(request.secrets.map(\.utf8Text) == ["e.y.z"])
    }

    @Test func aTokenIsExchanged() throws {
        let exchange = MachineGrant.Exchange(
            file: "/run/token", subjectTokenType: MachineGrant.jwtType, audience: "//iam.example/pool",
            requestedTokenType: "urn:ietf:params:oauth:token-type:access_token")
        var machine = try machine(.exchange(exchange), token: "e.y.z", scopes: [])
        #expect(
            try asked(&machine).parameters == [
                "grant_type": ["urn:ietf:params:oauth:grant-type:token-exchange"], "subject_token": ["e.y.z"],
                "subject_token_type": [MachineGrant.jwtType], "audience": ["//iam.example/pool"],
                "requested_token_type": ["urn:ietf:params:oauth:token-type:access_token"], "client_id": ["app-1"],
            ])
    }

    /// A refresh token would end the sign-in when it ends.
    @Test func onlyTheAccessTokenIsKept() throws {
        var machine = try machine(.clientCredentials, .post(Secret(utf8: "s3cret")))
        _ = try asked(&machine)
        let answer = #"{"access_token":"access-1","token_type":"Bearer","refresh_token":"r","id_token":"i"}"#
        guard case .finish(let tokens) = machine.received(Provider.response(answer), now: 0) else {
            throw Unexpected("no tokens")
        }
        #expect(tokens.refreshToken == nil && tokens.idToken == nil && tokens.expiresAt == nil)
    }

    /// RFC 8693 §2.2.1: `N_A` is for tokens that are no access tokens.
    @Test func aTokenThatIsNotABearerTokenIsRefused() throws {
        var machine = try machine(.assertion(file: "/run/token"), token: "e.y.z")
        _ = try asked(&machine)
        let answer = #"{"access_token":"x","token_type":"N_A"}"#
        guard case .fail(let error) = machine.received(Provider.response(answer), now: 0) else {
            throw Unexpected("accepted")
        }
        #expect(error.code == .unsupportedProvider && error.detail.contains("N_A"))
    }

    /// The file may have a valid token the next time, so a refusal must not look like the end of the sign-in.
    @Test func anExpiredAssertionNamesTheFileAndEndsNothing() throws {
        var machine = try machine(.assertion(file: "/run/token"), token: "e.y.z")
        _ = try asked(&machine)
        let answer = #"{"error":"invalid_grant","error_description":"expired e.y.z"}"#
        let action = machine.received(Provider.response(400, answer), now: 0)
        guard case .fail(let error) = action else { throw Unexpected("accepted") }
        #expect(error.code == .refused && error.hint?.contains("/run/token") == true)
        #expect(!error.detail.contains("e.y.z"))
        #expect(machine.received(Provider.response(Self.answer), now: 0) == action)
    }

    @Test func namedEndpointsNeedNoDiscovery() throws {
        let token = try EndpointURL("https://sts.example/token", "token_endpoint")
        let metadata = ProviderMetadata(
            ProviderEndpoints(token: token), issuer: try Provider.issuer(), hasIssuer: false)
        var machine = try machine(.clientCredentials, .secret(Secret(utf8: "s")), metadata: metadata)
        let first = try request(machine.start())
        #expect(first.url == token && first.authorization != nil)
    }
}
