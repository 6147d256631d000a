// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHome
import CountersignOAuth
import CountersignSignIn
import CountersignTestOrigin
import Foundation
import Testing

@testable import Countersign

/// Grants that a machine signs with its own key, at endpoints that verify the signature with another library.
@Suite struct SignedGrantFlowTests {
    private let provider: MachineProvider

    init() throws { provider = try MachineProvider() }

    private func tokens(_ profile: String, key: String? = nil, late: Int64 = 0) async throws -> TokenSet {
        let now: @Sendable () -> Int64 = { Int64(time(nil)) + late }
        let client = ProviderClient(anchors: .implicit(additional: [], revocationLists: []), refusing: [], now: now)
        let read = try SignInProfile(Array(profile.utf8))
        let signing = try read.authenticated(with: Secret(TextFile.bytes(key ?? provider.key)))
        return try await GrantFlow(signing, client: client, now: now).run()
    }

    @Test func anAppGetsTheTokenOfItsInstallation() async throws {
        let tokens = try await tokens(provider.app(#", "permissions": {"contents": "read"}"#))
        #expect(tokens.accessToken.utf8Text?.hasPrefix("ghs_") == true && tokens.scope == "contents:read")
        let lifetime = try #require(tokens.expiresAt) - tokens.obtainedAt
        #expect((3590...3600).contains(lifetime))
        #expect(provider.requests == ["/app/installations/42/access_tokens 201"])
    }

    @Test func aServiceAccountGetsAToken() async throws {
        let tokens = try await tokens(provider.account())
        #expect(tokens.accessToken.utf8Text?.hasPrefix("ya29.c.") == true && tokens.scope == "api")
        #expect(provider.requests == ["/token 200"])
    }

    @Test func aRefusalEndsNothingAndSaysWhatToDo() async throws {
        let other = try MachineProvider()
        for (profile, key, late, words) in [
            (provider.app(), other.key, 0, "does not accept the signature"), (provider.app(), nil, 3600, "out of time"),
            (provider.app(client: "app-2"), nil, 0, "Integration not found"),
            (provider.app(installation: 43), nil, 0, "has no such installation"),
            (provider.app(#", "permissions": {"secrets": "read"}"#), nil, 0, "not granted"),
            (provider.account(), other.key, 0, "a wrong signature"),
            (provider.account(key: "key-2"), nil, 0, "account not found"),
        ] as [(String, String?, Int64, String)] {
            let error = await #expect(throws: OAuthError.self) { try await tokens(profile, key: key, late: late) }
            #expect(error?.code == .refused && error?.detail.contains(words) == true, "\(String(describing: error))")
            #expect(error?.hint?.isEmpty == false)
        }
    }

    @Test func withoutItsKeyNothingIsSent() async throws {
        let now: @Sendable () -> Int64 = { 0 }
        let client = ProviderClient(anchors: .implicit(additional: [], revocationLists: []), refusing: [], now: now)
        let profile = try SignInProfile(Array(provider.app().utf8))
        let error = await #expect(throws: CountersignError.self) {
            try await GrantFlow(profile, client: client, now: now).run()
        }
        #expect(error?.hint?.contains("--key") == true && provider.requests.isEmpty)
    }
}
