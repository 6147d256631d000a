// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignOAuth

/// Grants that a client signs with its own key: RFC 7523 §2.1 as Google's service accounts use it, and GitHub Apps.
@Suite struct SignedGrantTests {
    private static let account = "robot@project.iam.gserviceaccount.com"
    private static let google = MachineGrant.signedAssertion(.init(keyIdentifier: "key-1"))

    private func endpoint(_ text: String = "https://oauth2.example/token") throws -> EndpointURL {
        try EndpointURL(text, "token_endpoint")
    }

    private func wanted(_ client: String = account, scopes: [String] = ["api", "mail"]) throws -> SignInRequest {
        try SignInRequest(client: Client(client, .grantKey(Secret(utf8: "key"))), scopes: scopes)
    }

    /// The texts of the header and of the claims, and the signature.
    private func parts(_ grant: MachineGrant, _ wanted: SignInRequest) throws -> [String] {
        let assertion = try #require(grant.assertion(of: wanted, for: endpoint()))
        let made = try assertion.signed(at: 1_900_000_000) { Array("\($0.count) bytes".utf8) }
        let parts = made.split(separator: ".")
        #expect(parts.count == 3)
        let length = made.utf8.count - parts[2].utf8.count - 1
        #expect(try String(decoding: #require(Base64URL.decode(parts[2])), as: UTF8.self) == "\(length) bytes")
        return try parts.prefix(2).map { String(decoding: try #require(Base64URL.decode($0)), as: UTF8.self) }
    }

    @Test func theAssertionOfAServiceAccount() throws {
        #expect(
            try parts(Self.google, wanted()) == [
                #"{"alg":"RS256","typ":"JWT","kid":"key-1"}"#,
                """
                {"iss":"robot@project.iam.gserviceaccount.com","aud":"https://oauth2.example/token",\
                "scope":"api mail","iat":1899999940,"exp":1900000540}
                """,
            ])
    }

    @Test func itMayBeForAPersonAndAnotherAudience() throws {
        let grant = MachineGrant.signedAssertion(.init(subject: "jo@corp.example", audience: "https://login.example"))
        let parts = try parts(grant, wanted(scopes: []))
        #expect(parts[0] == #"{"alg":"RS256","typ":"JWT"}"#)
        #expect(parts[1].contains(#""sub":"jo@corp.example","aud":"https://login.example","iat""#))
    }

    /// GitHub: `iat` 60 seconds in the past, and `exp` at most ten minutes in the future.
    @Test func theAssertionOfAnApp() throws {
        let parts = try parts(.installation(.init()), wanted("Iv1.abc", scopes: []))
        #expect(parts[1] == #"{"iss":"Iv1.abc","iat":1899999940,"exp":1900000540}"#)
    }

    @Test func aKeyThatCannotSignIsTheFaultOfTheProfile() throws {
        let assertion = try #require(Self.google.assertion(of: wanted(), for: endpoint()))
        let failure = error { _ = try assertion.signed(at: 0) { _ in nil } }
        #expect(failure?.code == .configuration && failure?.hint?.contains("--key") == true)
    }

    @Test func otherGrantsAreNotSigned() throws {
        for grant in [MachineGrant.clientCredentials, .assertion(file: "/run/token")] {
            #expect(try !grant.signs && grant.assertion(of: wanted(), for: endpoint()) == nil)
        }
    }

    // MARK: Google's endpoint

    private func machine(
        _ grant: MachineGrant, _ wanted: SignInRequest, at url: String
    ) throws -> (machine: MachineSignIn, request: ProviderRequest) {
        let issuer = try Provider.issuer()
        let metadata = ProviderMetadata(
            ProviderEndpoints(token: try endpoint(url)), issuer: issuer, hasIssuer: false)
        var machine = MachineSignIn(
            issuer: issuer, wanted, by: grant, with: Secret(utf8: "eyJ.assertion.sig"), metadata: metadata)
        guard case .send(let request) = machine.start() else { throw Unexpected("no request") }
        return (machine, request)
    }

    private func failure(
        _ grant: MachineGrant, at url: String, _ status: Int, _ body: String, retryAfter: Int64? = nil
    ) throws -> OAuthError {
        var (machine, _) = try machine(grant, wanted(), at: url)
        let action = machine.received(Provider.response(status, retryAfter: retryAfter, body), now: 0)
        guard case .fail(let error) = action else { throw Unexpected(action) }
        return error
    }

    private static let token = "https://oauth2.example/token"

    @Test func theAssertionIsAllThatGoogleGets() throws {
        var (machine, request) = try machine(Self.google, wanted(), at: Self.token)
        #expect(
            request.parameters == [
                "grant_type": ["urn:ietf:params:oauth:grant-type:jwt-bearer"], "assertion": ["eyJ.assertion.sig"],
            ])
        #expect(request.authorization == nil && request.fields.isEmpty)
        let answer = #"{"access_token":"ya29.c.x...","expires_in":3599,"token_type":"Bearer"}"#
        guard case .finish(let tokens) = machine.received(Provider.response(answer), now: 100) else {
            throw Unexpected("no tokens")
        }
        #expect(tokens.accessToken.utf8Text == "ya29.c.x..." && tokens.expiresAt == 3699)
    }

    /// The texts are Google's.
    @Test(
        arguments: [
            (400, "invalid_grant", "Invalid JWT Signature.", "--key"),
            (400, "invalid_grant", "Invalid grant: account not found", "has not disabled its account"),
            (400, "invalid_grant", "Invalid JWT: Token must be a short-lived token", "the clock is right"),
            (401, "unauthorized_client", "Client is unauthorized to retrieve access tokens", "delegate the scopes"),
        ])
    func aRefusalOfGoogleSaysWhatToDo(status: Int, code: String, text: String, hint: String) throws {
        let grant = MachineGrant.signedAssertion(.init(subject: "jo@corp.example"))
        let body = #"{"error":"\#(code)","error_description":"\#(text)"}"#
        let error = try failure(grant, at: Self.token, status, body)
        // Nothing that ends the sign-in: the key may be listed again.
        #expect(error.code == .refused && error.detail.contains(text), "\(error)")
        #expect(error.hint?.contains(hint) == true, "\(error)")
    }

    // MARK: GitHub's endpoint

    private static let app = "https://api.example/app/installations/42/access_tokens"
    /// The example of GitHub's documentation, shortened.
    private static let answer = """
        {"token":"ghs_16C7e42F292c6912E7710c838347Ae178B4a","expires_at":"2016-07-11T22:14:10Z",\
        "permissions":{"metadata":"read","issues":"write","contents":"read"},"repository_selection":"selected"}
        """

    @Test func theAppProvesWhoItIsWithItsAssertion() throws {
        let (_, request) = try machine(.installation(.init()), wanted("Iv1.abc", scopes: []), at: Self.app)
        #expect(request.url.description == Self.app && request.method == "POST")
        #expect(request.authorization?.utf8Text == "Bearer eyJ.assertion.sig" && request.body?.utf8Text == "{}")
        #expect(request.contentType == "application/json" && request.accept == "application/vnd.github+json")
        #expect(request.fields.map(\.name) == ["X-GitHub-Api-Version"])
        #expect(request.secrets.map(\.utf8Text) == ["eyJ.assertion.sig"])
    }

    @Test func theTokenMayBeLimited() throws {
        let grant = MachineGrant.installation(
            .init(repositories: ["a", "b.c"], permissions: [.init("contents", "read"), .init("issues", "write")]))
        let (_, request) = try machine(grant, wanted("Iv1.abc", scopes: []), at: Self.app)
        #expect(
            request.body?.utf8Text
                == #"{"repositories":["a","b.c"],"permissions":{"contents":"read","issues":"write"}}"#)
    }

    @Test func theTokenHasAnExpiryAndItsPermissions() throws {
        var (machine, _) = try machine(.installation(.init()), wanted("Iv1.abc", scopes: []), at: Self.app)
        guard case .finish(let tokens) = machine.received(Provider.response(201, Self.answer), now: 1_468_271_650)
        else {
            throw Unexpected("no tokens")
        }
        #expect(tokens.accessToken.utf8Text == "ghs_16C7e42F292c6912E7710c838347Ae178B4a")
        #expect(tokens.expiresAt == 1_468_275_250 && tokens.obtainedAt == 1_468_271_650)
        #expect(tokens.scope == "contents:read issues:write metadata:read" && tokens.refreshToken == nil)
    }

    @Test(
        arguments: [
            (401, "A JSON web token could not be decoded", OAuthError.Code.refused, "the clock is right"),
            (401, "Integration not found", .refused, "\"client_id\" is that of the app"),
            (403, "This installation has been suspended", .refused, "if the installation is suspended"),
            (404, "Not Found", .refused, "at the end of the address of the installation's page"),
            (422, "The permissions requested are not granted to this installation.", .refused, "compare"),
            (429, "API rate limit exceeded", .unavailable, "try again later"),
            (502, "Server Error", .unavailable, "try again later"),
        ])
    func aRefusalOfGitHubSaysWhatToDo(status: Int, text: String, code: OAuthError.Code, hint: String) throws {
        let body = #"{"message":"\#(text)","documentation_url":"https://docs.github.com/rest"}"#
        let error = try failure(.installation(.init()), at: Self.app, status, body)
        #expect(error.code == code && error.hint?.contains(hint) == true, "\(error)")
        if code == .refused { #expect(error.detail.contains("(\(status): \(text))"), "\(error)") }
    }

    @Test func aPauseThatGitHubDemandsIsKept() throws {
        let body = #"{"message":"You have exceeded a secondary rate limit."}"#
        let error = try failure(.installation(.init()), at: Self.app, 403, body, retryAfter: 60)
        #expect(error.code == .unavailable && error.retryAfter == 60)
    }

    @Test func noMessageRepeatsTheAssertion() throws {
        let body = #"{"message":"bad eyJ.assertion.sig"}"#
        let error = try failure(.installation(.init()), at: Self.app, 401, body)
        #expect(!"\(error)".contains("eyJ.assertion.sig"), "\(error)")
    }

    @Test(
        arguments: [
            (200, answer, "unexpected status 200"), (201, "[]", "must be an object"), (201, "{}", "\"token\""),
            (201, #"{"token":"","expires_at":"2016-07-11T22:14:10Z"}"#, "\"token\" is empty"),
            (201, #"{"token":"a b","expires_at":"2016-07-11T22:14:10Z"}"#, "forbidden character"),
            (201, #"{"token":"ghs_1"}"#, "\"expires_at\""),
            (201, #"{"token":"ghs_1","expires_at":"tomorrow"}"#, "is not a time"),
        ])
    func aResponseThatIsNoTokenIsRefused(status: Int, body: String, words: String) throws {
        let error = try failure(.installation(.init()), at: Self.app, status, body)
        #expect(error.code == .malformedResponse && error.detail.contains(words), "\(error)")
        #expect(!error.detail.contains("ghs_"))
    }
}
