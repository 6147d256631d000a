// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignOAuth

/// Providers that publish no metadata, and clients with a secret.
@Suite struct NamedEndpointsTests {
    private static func metadata(hasIssuer: Bool = false) throws -> ProviderMetadata {
        var endpoints = ProviderEndpoints(token: try EndpointURL("https://git.example/token", "token_endpoint"))
        endpoints.authorization = try EndpointURL("https://git.example/authorize", "authorization_endpoint")
        return ProviderMetadata(endpoints, issuer: try Issuer("https://git.example"), hasIssuer: hasIssuer)
    }

    private static func signIn(
        _ authentication: Client.Authentication = .none, hasIssuer: Bool = false
    ) throws -> SignIn {
        SignIn(
            issuer: try Issuer("https://git.example"), try Provider.request(authentication, scopes: ["repo", "gist"]),
            by: .browser(try Provider.redirect()), secrets: Provider.secrets,
            metadata: try metadata(hasIssuer: hasIssuer))
    }

    private func redirect(_ machine: inout SignIn, more: String = "") -> SignIn.Redirection {
        machine.redirected(.query("code=c&state=\(Provider.secrets.state)\(more)"))
    }

    @Test func thePersonSignsInWithoutDiscovery() throws {
        var machine = try Self.signIn(.secret(Secret(utf8: "s3cret")))
        guard case .open(let url) = machine.start() else { throw Unexpected("no page") }
        #expect(url.description.hasPrefix("https://git.example/authorize?") && url.parameters["nonce"] == nil)
        guard case .accepted(.send(let request)) = redirect(&machine) else { throw Unexpected("not redeemed") }
        #expect(request.url.description == "https://git.example/token" && request.accept == "application/json")
        #expect(request.authorization?.utf8Text?.hasPrefix("Basic ") == true)
        // GitHub writes commas.
        let answer = #"{"access_token":"t","scope":"repo,gist","token_type":"bearer"}"#
        guard case .finish(let result) = machine.received(Provider.response(answer), now: 0) else {
            throw Unexpected("no tokens")
        }
        #expect(result.tokens.scope == "repo gist" && result.tokens.expiresAt == nil && result.idToken == nil)
    }

    /// GitHub sends errors with status 200.
    @Test func anErrorWithStatus200IsOne() throws {
        var machine = try Self.signIn()
        _ = machine.start()
        _ = redirect(&machine)
        let answer = #"{"error":"bad_verification_code","error_description":"The code passed is incorrect."}"#
        guard case .fail(let error) = machine.received(Provider.response(answer), now: 0) else {
            throw Unexpected("accepted")
        }
        #expect(error.detail.contains("bad_verification_code"))
    }

    /// Without an issuer in the profile, `iss` cannot be compared; with one, it must be right (RFC 9207).
    @Test func anotherIssuerIsNoticedIfTheProfileNamesOne() throws {
        var unnamed = try Self.signIn()
        _ = unnamed.start()
        guard case .accepted(.send) = redirect(&unnamed, more: "&iss=https://git.example/login") else {
            throw Unexpected("refused")
        }
        var named = try Self.signIn(hasIssuer: true)
        _ = named.start()
        guard case .accepted(.fail(let error)) = redirect(&named, more: "&iss=https://git.example/login") else {
            throw Unexpected("accepted")
        }
        #expect(error.code == .mixedUp)
    }

    @Test func commasSeparateScopesOnlyWhereNobodyAskedForOne() throws {
        func scope(_ text: String, for requested: String?) throws -> String? {
            let answer = Array(#"{"access_token":"t","scope":"\#(text)"}"#.utf8)
            return try TokenResponse(ProviderResponse(status: 200, contentType: "application/json", body: answer))
                .scope(for: requested)
        }
        #expect(try scope("a,b", for: "a b") == "a b")
        #expect(try scope("a,b", for: nil) == "a b")
        #expect(try scope("a,b", for: "a,b c") == "a,b")
        #expect(try scope("a,b c", for: nil) == "a,b c")
    }

    @Test func aSecretThatCannotBeSentIsRefused() {
        for text in ["", "two\nlines", "naïve", String(repeating: "x", count: 4097)] {
            let refusal = error { _ = try ClientAuthenticationMethod.basic.authentication(with: Secret(utf8: text)) }
            #expect(refusal?.code == .configuration && refusal?.detail.contains("naïve") == false)
        }
    }

    @Test func aPortTakesThePlaceOfTheRedirectURIsOwn() throws {
        for (text, moved) in [
            ("http://127.0.0.1/", "http://127.0.0.1:9/"), ("http://127.0.0.1", "http://127.0.0.1:9"),
            ("http://localhost:8080/cb", "http://localhost:9/cb"), ("http://[::1]:80/x", "http://[::1]:9/x"),
        ] {
            #expect(try RedirectURI(text).moved(toPort: 9) == RedirectURI(moved), "\(text)")
        }
        #expect(try RedirectURI("com.example.app:/cb").moved(toPort: 9) == nil)
    }
}
