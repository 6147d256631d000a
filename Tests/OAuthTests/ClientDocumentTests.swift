// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignOAuth

/// draft-ietf-oauth-client-id-metadata-document.
@Suite struct ClientDocumentTests {
    private static let identifier = "https://app.example/oauth/client.json"

    private func read(
        _ members: [String: String?] = [:], status: Int = 200, type: String? = "application/json"
    ) throws -> ClientDocument {
        var all: [String: String?] = [
            "client_id": "\"\(Self.identifier)\"", "client_name": #""An app""#,
            "redirect_uris": #"["https://app.example/cb","http://127.0.0.1/callback","http://localhost/"]"#,
        ]
        all.merge(members) { $1 }
        let text = ScriptedProvider.Tokens.object(all)
        return try ClientDocument(Provider.response(status, type: type, text), for: Self.identifier)
    }

    @Test func theFirstRedirectURIOfThisMachineIsUsed() throws {
        #expect(try read().redirect.text == "http://127.0.0.1/callback")
        let local = try read(["redirect_uris": #"["http://localhost:3000/cb"]"#])
        #expect(local.redirect.text == "http://localhost:3000/cb")
        #expect(try read(["token_endpoint_auth_method": #""none""#]).redirect.text == "http://127.0.0.1/callback")
    }

    @Test(
        arguments: [
            ("client_id", #""https://app.example/oauth/client.json/""#, .malformedResponse),
            ("client_id", #""https://APP.example/oauth/client.json""#, .malformedResponse),
            ("client_id", nil, .malformedResponse), ("client_id", "7", .malformedResponse),
            ("redirect_uris", #"["https://app.example/cb"]"#, .configuration), ("redirect_uris", "[]", .configuration),
            ("redirect_uris", nil, .configuration), ("redirect_uris", #"["http://10.0.0.1/"]"#, .configuration),
            ("token_endpoint_auth_method", #""private_key_jwt""#, .configuration),
            ("token_endpoint_auth_method", #""client_secret_basic""#, .configuration),
        ] as [(String, String?, OAuthError.Code)])
    func theDocumentOfAnotherKindOfClientIsRefused(name: String, value: String?, code: OAuthError.Code) {
        #expect(error { _ = try read([name: value]) }?.code == code)
    }

    @Test func onlyADocumentIsRead() {
        #expect(error { _ = try read(status: 404) }?.code == .malformedResponse)
        #expect(error { _ = try read(status: 302) }?.code == .malformedResponse)
        #expect(error { _ = try read(type: "text/html") }?.code == .malformedResponse)
        let failure = ProviderOutcome.failure(ProviderFailure("no route"))
        #expect(error { _ = try ClientDocument(failure, for: Self.identifier) }?.code == .unreachable)
    }

    @Test(arguments: [
        "https://app.example", "http://app.example/c", "https://u@app.example/c", "https://app.example/c#f",
        "https://app.example/a/../c", "https://app.example/a/%2E%2e/c", "https://app.example/./c",
    ])
    func anAddressThatIsNotAnIdentifierIsRefused(text: String) {
        #expect(error { _ = try ClientDocument.location(text) }?.code == .configuration)
    }

    @Test func anAddressIsFetchedAsItIs() throws {
        #expect(try ClientDocument.location("https://app.example:8443/c").description == "https://app.example:8443/c")
        #expect(ClientDocument.isOne("https://app.example/c") && !ClientDocument.isOne("app-1"))
    }
}
