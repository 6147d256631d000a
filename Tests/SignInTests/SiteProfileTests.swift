// SPDX-License-Identifier: Apache-2.0

import CountersignOAuth
import Foundation
import Testing

@testable import CountersignSignIn

/// MCP's scenarios for the scopes of a site that has no profile.
@Suite struct SiteProfileTests {
    private static func profile(
        challenge scopes: [String], metadata: String? = nil, at text: String = "https://api.example/mcp"
    ) throws -> SiteProfile {
        let site = try EndpointURL(text, "the site's address")
        let supported = metadata.map { #","scopes_supported":\#($0)"# } ?? ""
        let document =
            #"{"resource":"https://api.example/mcp","authorization_servers":["https://id.example"]\#(supported)}"#
        return SiteProfile(
            site, ProviderClient.SiteChallenge(metadata: nil, scopes: scopes),
            try ProtectedResourceMetadata(parsing: Array(document.utf8), for: site, issuer: nil))
    }

    private static func provider(_ scopes: String? = nil) throws -> ProviderMetadata {
        let supported = scopes.map { #","scopes_supported":\#($0)"# } ?? ""
        let document = #"{"issuer":"https://id.example","token_endpoint":"https://id.example/token"\#(supported)}"#
        return try ProviderMetadata(parsing: Array(document.utf8), issuer: try Issuer("https://id.example"))
    }

    @Test(
        arguments: [
            // auth/scope-from-www-authenticate
            (["read"], #"["read","write"]"#, nil, ["read"]),
            // auth/scope-from-scopes-supported
            ([], #"["read","write"]"#, nil, ["read", "write"]),
            // auth/scope-omitted-when-undefined
            ([], nil, nil, []),
            // auth/offline-access: if the provider has it
            (["read"], nil, #"["read","offline_access"]"#, ["read", "offline_access"]),
            (["read"], nil, #"["read"]"#, ["read"]),
            (["offline_access"], nil, #"["offline_access"]"#, ["offline_access"]),
        ] as [([String], String?, String?, [String])])
    func theScopesAreThoseOfTheChallengeOrElseOfTheMetadata(
        challenge: [String], metadata: String?, provider: String?, expected: [String]
    ) throws {
        let profile = try Self.profile(challenge: challenge, metadata: metadata)
        #expect(profile.scopes(at: try Self.provider(provider)) == expected)
    }

    @Test func aSiteThatListsManyScopesGetsTheFirst() throws {
        let many = (1...40).map { "\"s\($0)\"" }.joined(separator: ",")
        #expect(try Self.profile(challenge: [], metadata: "[\(many)]").scopes == (1...16).map { "s\($0)" })
    }

    @Test func theTokenIsForTheResourceAndTheSiteAlone() throws {
        let site = try Self.profile(challenge: ["read"])
        let text = site.document(
            try Issuer("https://id.example"), client: "https://app.example/client.json",
            try RedirectURI("http://127.0.0.1/"), scopes: ["read"])
        let profile = try SignInProfile(Array(text.utf8))
        #expect(profile.request.resources == ["https://api.example/mcp"] && profile.sites == ["https://api.example"])
        #expect(profile.request.client.identifier == "https://app.example/client.json")
        #expect(SiteProfile.isOne(text, from: "https://api.example/mcp"))
        #expect(!SiteProfile.isOne(text, from: "https://other.example/mcp"))
    }
}
