// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignOAuth

/// `private_key_jwt`: RFC 7523 §2.2 and §3, OpenID Connect Core §9.
@Suite struct ClientAssertionTests {
    private static let random = [UInt8](0..<16)

    /// A key whose signature is the message's length.
    private func key(_ algorithms: [SignatureAlgorithm] = [.rs256, .ps256], _ identifier: String? = nil) -> ClientKey {
        var key = ClientKey(name: "work", certificate: [1, 2, 3], algorithms: algorithms) { message, algorithm in
            Array("\(algorithm.rawValue) \(message.count)".utf8)
        }
        key.identifier = identifier
        return key
    }

    private func parts(_ assertion: String) throws -> [String] {
        try assertion.split(separator: ".").map {
            String(decoding: try #require(Base64URL.decode($0)), as: UTF8.self)
        }
    }

    private func assertion(_ key: ClientKey, at metadata: ProviderMetadata) throws -> ClientAssertion {
        let client = try Client("app-1", .key(key)).resolved(for: metadata)
        guard case .assertion(let assertion) = client.authentication else { throw Unexpected(client) }
        return assertion
    }

    @Test func theWholeAssertion() throws {
        let made = try assertion(key(), at: Provider.metadata()).signed(at: 1_900_000_000, random: Self.random)
        let parts = try parts(made)
        #expect(
            parts[0] == """
                {"alg":"RS256","typ":"JWT","x5t":"cDeAcZjCKn0rCAc3HXY3eahP388",\
                "x5t#S256":"A5BYxvLAy0ksUzsKTRTvd8wPeKvMztUofYShogEc-4E"}
                """)
        #expect(
            parts[1] == """
                {"iss":"app-1","sub":"app-1","aud":"https://id.example/tenant",\
                "jti":"AAECAwQFBgcICQoLDA0ODw","iat":1900000000,"exp":1900000120}
                """)
        #expect(parts[2] == "RS256 \(made.split(separator: ".").prefix(2).joined(separator: ".").utf8.count)")
    }

    @Test func aKeyIdentifierIsSentIfTheProfileHasOne() throws {
        let made = try assertion(key([.es256], "k\"1"), at: Provider.metadata()).signed(at: 0, random: Self.random)
        #expect(try parts(made)[0].contains(#""kid":"k\"1""#))
    }

    @Test(
        arguments: [
            (nil, [SignatureAlgorithm.rs256, .ps256], SignatureAlgorithm.rs256),
            (#"["PS256","ES256"]"#, [.rs256, .ps256], .ps256), (#"["ES384","RS256"]"#, [.rs256, .ps256], .rs256),
            (#"["ES384","RS256"]"#, [.es384], .es384), (#"["rs256","ES384"]"#, [.rs256, .ps256], nil),
            (#"[]"#, [.es256], nil),
        ] as [(String?, [SignatureAlgorithm], SignatureAlgorithm?)])
    func theProviderAndTheKeyDecideTheAlgorithm(
        list: String?, own: [SignatureAlgorithm], chosen: SignatureAlgorithm?
    ) throws {
        let metadata = try Provider.metadata(["token_endpoint_auth_signing_alg_values_supported": list])
        guard let chosen else {
            let failure = error { _ = try assertion(key(own), at: metadata) }
            #expect(failure?.code == .unsupportedProvider && failure?.detail.contains("\"work\"") == true)
            return
        }
        #expect(try assertion(key(own), at: metadata).algorithm == chosen)
    }

    /// A profile may name the endpoints of one provider and the issuer of another, which must not be able to use what
    /// the first one gets.
    @Test func anIssuerThatHasNotPublishedItsEndpointsIsNotTheAudience() throws {
        let endpoints = ProviderEndpoints(token: try EndpointURL("https://other.example/token", "it"))
        let metadata = ProviderMetadata(endpoints, issuer: try Provider.issuer(), hasIssuer: true)
        #expect(try assertion(key(), at: metadata).audience == "https://other.example/token")
        #expect(try assertion(key(), at: Provider.metadata()).audience == Provider.issuerText)
    }

    /// One of the servers could use the assertion at the token endpoint.
    @Test(arguments: ["device", "revocation"])
    func endpointsOfAProfileOnSeveralServersGetNoAssertion(endpoint: String) throws {
        func url(_ name: String) throws -> EndpointURL {
            try EndpointURL("https://\(name == endpoint ? "evil" : "other").example/\(name)", "it")
        }
        var endpoints = ProviderEndpoints(token: try url("token"))
        endpoints.deviceAuthorization = try url("device")
        endpoints.revocation = try url("revocation")
        let metadata = ProviderMetadata(endpoints, issuer: try Provider.issuer(), hasIssuer: true)
        let failure = error { _ = try assertion(key(), at: metadata) }
        #expect(failure?.code == .unsupportedProvider && failure?.detail.contains("several servers") == true)
    }

    @Test func eachRequestGetsAnAssertionOfItsOwn() throws {
        let client = try Client("app-1", .key(key())).resolved(for: Provider.metadata())
        let request = client.request(.token, try Provider.metadata().tokenEndpoint, FormParameters())
        #expect(request.parameters == ["client_id": ["app-1"]])
        let first = try request.completed(at: 10) { _ in Self.random }
        let second = try request.completed(at: 11) { [UInt8](repeating: 7, count: $0) }
        #expect(first.parameters["client_assertion"] != second.parameters["client_assertion"])
        #expect(
            first.parameters["client_assertion_type"] == ["urn:ietf:params:oauth:client-assertion-type:jwt-bearer"])
        #expect(first.parameters["client_id"] == ["app-1"] && first.authorization == nil)
        let plain = Client("app-1").request(.token, try Provider.metadata().tokenEndpoint, FormParameters())
        #expect(try plain.completed(at: 10) { _ in Self.random } == plain)
    }

    /// Not with the request that a machine knows, which has no assertion yet, but with the one that was sent.
    @Test func aTextThatRepeatsTheAssertionIsNotShown() throws {
        let client = try Client("app-1", .key(key())).resolved(for: Provider.metadata())
        let request = client.request(.token, try Provider.metadata().tokenEndpoint, FormParameters())
        #expect(request.mayBlock && request.secrets.isEmpty)
        let sent = try request.completed(at: 10) { _ in Self.random }
        let assertion = try #require(sent.parameters["client_assertion"]?.first)
        let body = #"{"error":"invalid_client","error_description":"bad assertion: \#(assertion)"}"#
        func detail(_ secrets: [Secret]) -> String {
            let response = ProviderResponse(
                status: 401, contentType: "application/json", to: secrets, body: Array(body.utf8))
            return ProviderError.error(response, at: .token, hiding: request.secrets).detail
        }
        #expect(detail([]).contains("bad assertion"))
        #expect(detail(sent.secrets).hasSuffix("(a text that repeats a secret)"), "\(detail(sent.secrets))")
    }

    @Test func theRevocationEndpointGetsOne() throws {
        let tokens = TokenSet(
            accessToken: Secret(utf8: "a"), expiresAt: nil, obtainedAt: 0, refreshToken: nil, scope: nil, idToken: nil,
            clientInfo: nil)
        let requests = try TokenRevocation.requests(
            tokens, client: Client("app-1", .key(key())), at: Provider.metadata())
        #expect(requests.count == 1 && requests.allSatisfy { $0.assertion?.client == "app-1" })
    }

    @Test func aKeyThatCannotSignSendsNothing() throws {
        let key = ClientKey(name: "work", certificate: [], algorithms: [.es256]) { _, _ in nil }
        let client = try Client("app-1", .key(key)).resolved(for: Provider.metadata())
        let request = client.request(.token, try Provider.metadata().tokenEndpoint, FormParameters())
        let failure = error { _ = try request.completed(at: 0) { _ in Self.random } }
        #expect(failure?.code == .configuration && failure?.detail.contains("\"work\"") == true)
    }
}
