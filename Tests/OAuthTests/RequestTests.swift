// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON
import Testing

@testable import CountersignOAuth

@Suite struct FormEncodingTests {
    /// RFC 6749 appendix B.
    @Test func theExampleOfTheStandard() throws {
        let text = " %&+£€"
        #expect(FormEncoding.encode(text.utf8) == "+%25%26%2B%C2%A3%E2%82%AC")
        #expect(FormEncoding.encodeSecret(Secret(utf8: text)).utf8Text == "+%25%26%2B%C2%A3%E2%82%AC")
        #expect(FormEncoding.decode("a=+%25%26%2b%C2%A3%E2%82%AC".utf8)?.first?.value == text)
    }

    @Test func pairsAreReadInOrder() throws {
        let pairs = try #require(FormEncoding.decode("a=1&&b&a=2=3&=x&c=".utf8))
        #expect(pairs.map(\.name) == ["a", "b", "a", "", "c"])
        #expect(pairs.map(\.value) == ["1", "", "2=3", "x", ""])
    }

    @Test(arguments: ["a=%", "a=%4", "a=%zz", "%4=a", "a=%FF", "a=%C0%AF", "%ED%A0%80"])
    func brokenEscapesAreRefused(text: String) {
        #expect(FormEncoding.decode(text.utf8) == nil)
    }

    @Test func thereMayBeOnlySoManyPairs() {
        let text = [String](repeating: "a=1", count: 65).joined(separator: "&")
        #expect(FormEncoding.decode(text.utf8) == nil)
        #expect(FormEncoding.decode(text.utf8.dropLast(4))?.count == 64)
    }

    @Test func anyBytesComeBack() {
        for value in 0...127 as ClosedRange<UInt8> {
            let encoded = FormEncoding.encode([value])
            #expect(FormEncoding.decode(encoded.utf8)?.first?.name == String(UnicodeScalar(value)))
        }
    }
}

@Suite struct PKCETests {
    /// RFC 7636 appendix B.
    @Test func theExampleOfTheStandard() {
        let bytes: [UInt8] = [
            116, 24, 223, 180, 151, 153, 224, 37, 79, 250, 96, 125, 216, 173, 187, 186, 22, 212, 37, 77, 105, 214, 191,
            240, 91, 88, 5, 88, 83, 132, 141, 121,
        ]
        let pkce = PKCE(randomBytes: Secret(bytes))
        #expect(pkce.verifier.utf8Text == "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
        #expect(pkce.challenge == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
    }

    @Test func theSecretsOfASignInAreDifferentBytes() {
        let secrets = SignInSecrets(randomBytes: Secret((0..<96).map { UInt8($0) }))
        #expect(Base64URL.decode(secrets.pkce.verifier.utf8Text ?? "") == Array(0..<32))
        #expect(Base64URL.decode(secrets.state) == Array(32..<64))
        #expect(Base64URL.decode(secrets.nonce) == Array(64..<96))
        #expect(!"\(secrets.pkce)".contains(secrets.pkce.verifier.utf8Text ?? ""))
    }
}

@Suite struct EndpointURLTests {
    @Test(arguments: [
        "https://id.example/token", "https://id.example", "https://id.example:8443/a/b?c=d", "https://[::1]/x",
    ])
    func httpsIsAccepted(text: String) throws {
        #expect(throws: Never.self) { try EndpointURL(text, "token_endpoint") }
    }

    @Test(arguments: [
        "http://id.example/token", "http://127.0.0.1/token", "ftp://id.example/", "id.example", "",
        "https://id.example/#a", "https://id.example/#", "https://jo@id.example/", "https://jo:pw@id.example/",
        "https://", "https://id.example/a b", "https://id.example/é", "https://id.example/\\..", "https://127.1/",
        "https://id.example:0/", "https://id.example/<", "https://%69d.example/", "javascript:alert(1)",
    ])
    func anythingElseIsRefused(text: String) {
        let found = error { _ = try EndpointURL(text, "token_endpoint") }
        #expect(found?.code == .configuration)
        #expect(found?.fault == .profile)
        #expect(found?.detail.contains("token_endpoint") == true)
    }

    @Test func plainHTTPIsForThisMachineAndOnlyIfPermitted() throws {
        for host in ["127.0.0.1", "127.9.9.9", "[::1]", "localhost"] {
            #expect(throws: Never.self) { try EndpointURL("http://\(host):8080/x", "issuer", .secureOrLoopback) }
        }
        for host in ["127.0.0.1.example", "localhost.example", "a.localhost", "10.0.0.1", "id.example", "[::2]"] {
            let found = error { _ = try EndpointURL("http://\(host):8080/x", "issuer", .secureOrLoopback) }
            #expect(found?.code == .configuration, "\(host)")
        }
    }

    @Test func parametersAreAddedToAQuery() throws {
        for (text, result) in [
            ("https://a.example", "https://a.example/?x=1"), ("https://a.example/b", "https://a.example/b?x=1"),
            ("https://a.example/b?", "https://a.example/b?x=1"),
            ("https://a.example/b?c=d", "https://a.example/b?c=d&x=1"),
        ] {
            #expect(try EndpointURL(text, "").adding(query: "x=1").description == result)
        }
    }

    /// OpenID Connect Discovery §4.1, RFC 8414 §3.1 and §5.
    @Test func theMetadataHasTwoPlacesAndAThirdBelowAPath() throws {
        #expect(
            try Issuer("https://example.com").metadataLocations.map(\.description) == [
                "https://example.com/.well-known/openid-configuration",
                "https://example.com/.well-known/oauth-authorization-server",
            ])
        for text in ["https://example.com/issuer1", "https://example.com/issuer1/"] {
            #expect(
                try Issuer(text).metadataLocations.map(\.description) == [
                    "https://example.com/issuer1/.well-known/openid-configuration",
                    "https://example.com/.well-known/oauth-authorization-server/issuer1",
                    "https://example.com/.well-known/openid-configuration/issuer1",
                ])
        }
        #expect(error { _ = try Issuer("https://example.com/?a=b") }?.code == .configuration)
    }
}

@Suite struct ProviderMetadataTests {
    @Test func theEndpointsAreRead() throws {
        let metadata = try Provider.metadata([
            "authorization_response_iss_parameter_supported": "true",
            "pushed_authorization_request_endpoint": #""https://id.example/par""#,
            "require_pushed_authorization_requests": "true", "revocation_endpoint": nil, "jwks_uri": "null",
        ])
        #expect(metadata.issuer == Provider.issuerText)
        #expect(metadata.tokenEndpoint.description == "https://id.example/tenant/token")
        #expect(metadata.pushedAuthorizationEndpoint?.description == "https://id.example/par")
        #expect(metadata.requiresPushedAuthorization && metadata.sendsIssuerInResponses)
        #expect(metadata.revocationEndpoint == nil && metadata.keysEndpoint == nil)
    }

    /// The comparison is of bytes: a URL that means the same is another issuer.
    @Test(arguments: [
        "https://id.example/tenant/", "https://ID.example/tenant", "https://id.example:443/tenant",
        "https://id.example/Tenant", "https://evil.example/tenant", "",
    ])
    func theIssuerMustBeExactlyTheConfiguredOne(issuer: String) {
        let found = error { _ = try Provider.metadata(["issuer": "\"\(issuer)\""]) }
        #expect(found?.code == .issuerMismatch)
        #expect(found?.fault == .profile)
    }

    @Test func pkceWithS256IsNeeded() throws {
        #expect(
            error { _ = try Provider.metadata(["code_challenge_methods_supported": #"["plain"]"#]) }?.code
                == .unsupportedProvider)
        #expect(throws: Never.self) { try Provider.metadata(["code_challenge_methods_supported": nil]) }
    }

    @Test(
        arguments: [
            ("token_endpoint", nil), ("token_endpoint", "7"), ("token_endpoint", #""http://id.example/token""#),
            ("issuer", nil), ("issuer", "7"),
        ] as [(String, String?)])
    func aDocumentThatDoesNotConformIsRefused(name: String, value: String?) {
        let found = error { _ = try Provider.metadata([name: value]) }
        #expect(found?.code == .malformedResponse)
        #expect(found?.fault == .provider)
    }

    @Test func aDocumentMustBeJSONAndNotTooLong() throws {
        let issuer = try Provider.issuer()
        for text in ["", "<html>", "[]", "{\"issuer\":\"a\",\"issuer\":\"b\"}"] {
            #expect(
                error { _ = try ProviderMetadata(parsing: Array(text.utf8), issuer: issuer) }?.code
                    == .malformedResponse)
        }
        let padded = Provider.document() + [UInt8](repeating: 0x20, count: 256 * 1024)
        #expect(error { _ = try ProviderMetadata(parsing: padded, issuer: issuer) }?.code == .malformedResponse)
    }
}

@Suite struct AuthorizationRequestTests {
    @Test func theURLHasEveryParameterOnce() throws {
        let claims = try JSONParser.parse(Array(#"{"access_token": {"xms_cc": {"values": ["protapp"]}}}"#.utf8))
        let wanted = try Provider.request(
            resources: ["https://api.example", "urn:a:b"], parameters: [.init("acr_values", "persistent-cookie")],
            claims: claims, loginHint: "jo@corp.example", prompt: "login", usesFormPost: true)
        let url = try request(wanted).url
        #expect(url.description.hasPrefix("https://id.example/tenant/authorize?response_type=code&"))
        #expect(
            url.parameters == [
                "response_type": ["code"], "client_id": ["app-1"], "redirect_uri": ["http://127.0.0.1:40000/callback"],
                "scope": ["openid offline_access"], "state": [Provider.secrets.state],
                "nonce": [Provider.secrets.nonce], "code_challenge": [Provider.secrets.pkce.challenge],
                "code_challenge_method": ["S256"], "resource": ["https://api.example", "urn:a:b"],
                "response_mode": ["form_post"], "login_hint": ["jo@corp.example"], "prompt": ["login"],
                "claims": [#"{"access_token":{"xms_cc":{"values":["protapp"]}}}"#],
                "acr_values": ["persistent-cookie"],
            ])
        #expect(!url.description.contains(Provider.secrets.pkce.verifier.utf8Text ?? ""))
    }

    @Test func withoutOpenIDThereIsNoNonce() throws {
        let parameters = try request(try Provider.request(scopes: ["api"])).url.parameters
        #expect(parameters["nonce"] == nil)
        #expect(parameters["scope"] == ["api"])
        #expect(try request(try Provider.request(scopes: [])).url.parameters["scope"] == nil)
    }

    @Test(arguments: [
        "state", "nonce", "redirect_uri", "client_id", "code_challenge", "code_challenge_method", "scope", "resource",
        "response_type", "response_mode", "request", "request_uri", "claims", "prompt", "client_secret", "",
    ])
    func aParameterOfTheProfileCannotReplaceOurs(name: String) {
        let parameter = SignInRequest.Parameter(name, "x")
        #expect(error { _ = try Provider.request(parameters: [parameter]) }?.code == .configuration)
        #expect(error { _ = try Provider.request(tokenParameters: [parameter]) }?.code == .configuration)
    }

    @Test func whatCannotBeSentIsAnErrorOfTheProfile() {
        let twice = [SignInRequest.Parameter("a", "1"), SignInRequest.Parameter("a", "2")]
        #expect(error { _ = try Provider.request(parameters: twice) }?.fault == .profile)
        for scope in ["", "a b", "a\"b", "a\\b", "é"] {
            #expect(error { _ = try Provider.request(scopes: [scope]) }?.code == .configuration, "\(scope)")
        }
        for resource in ["", "api", "https://a.example/#x", ":a", "https://a.example/ b"] {
            #expect(error { _ = try Provider.request(resources: [resource]) }?.code == .configuration, "\(resource)")
        }
        #expect(error { _ = try Provider.request(claims: JSONValue(.array([]))) }?.code == .configuration)
    }

    @Test func theEndpointsOwnQueryIsKeptUnlessItCollides() throws {
        let kept = try Provider.metadata(["authorization_endpoint": #""https://id.example/a?p=policy""#])
        #expect(try request(try Provider.request(), kept).url.parameters["p"] == ["policy"])
        let taken = try Provider.metadata(["authorization_endpoint": #""https://id.example/a?state=x""#])
        #expect(error { _ = try request(try Provider.request(), taken) }?.code == .malformedResponse)
    }

    private func request(
        _ wanted: SignInRequest, _ metadata: ProviderMetadata? = nil
    ) throws -> AuthorizationRequest {
        try AuthorizationRequest(
            wanted, redirect: try Provider.redirect(), secrets: Provider.secrets,
            metadata: try metadata ?? Provider.metadata())
    }
}

@Suite struct ClientTests {
    /// RFC 6749 §2.3.1 and appendix B: both halves are form-encoded first.
    @Test func aSecretIsSentInTheWayThatTheProviderSupports() throws {
        let client = Client("a b:c", .secret(Secret(utf8: "p+w&é")))
        let endpoint = try EndpointURL("https://id.example/token", "token_endpoint")
        let basic = try client.resolved(for: try Provider.metadata()).request(.token, endpoint, FormParameters())
        #expect(basic.authorization?.utf8Text == "Basic " + Base64.encode(Array("a+b%3Ac:p%2Bw%26%C3%A9".utf8)))
        #expect(basic.parameters == [:])
        let posting = try Provider.metadata(["token_endpoint_auth_methods_supported": #"["client_secret_post"]"#])
        let post = try client.resolved(for: posting).request(.token, endpoint, FormParameters())
        #expect(post.authorization == nil)
        #expect(post.parameters == ["client_id": ["a b:c"], "client_secret": ["p+w&é"]])
        let neither = try Provider.metadata(["token_endpoint_auth_methods_supported": #"["private_key_jwt"]"#])
        #expect(error { _ = try client.resolved(for: neither) }?.code == .unsupportedProvider)
        #expect(!"\(basic)".contains("p+w") && !"\(basic)\(post)".contains("%2Bw"))
    }

    @Test func aPublicClientSendsItsNameOnly() throws {
        let endpoint = try EndpointURL("https://id.example/token", "token_endpoint")
        let request = Client("app").request(.token, endpoint, FormParameters())
        #expect(request.parameters == ["client_id": ["app"]])
        #expect(request.authorization == nil)
        #expect(request.method == "POST")
    }
}
