// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

@testable import Countersign

/// Access tokens as values, and sign-ins without a document.
@Suite(.waiting) struct LibraryTokenTests {
    private func error(_ body: () async throws -> AccessToken) async throws -> ChallengeError {
        let thrown = await #expect(throws: ChallengeError.self) { _ = try await body() }
        return try #require(thrown)
    }

    // MARK: Tokens

    @Test func theProgramGetsTheTokenWithItsClaims() async throws {
        let home = try EnrollmentHome(["token": ["first"]])
        try await home.signIn()
        let token = try await home.signIns.token(for: "work", scopes: ["openid"])
        #expect(token.name == "work" && token.value.text == "first" && token.scopes == ["openid", "offline_access"])
        #expect(abs(try #require(token.expires).timeIntervalSinceNow - 3600) < 300)
        let claims = try #require(token.identityClaims)
        #expect(claims["sub"] == "248289761001" && claims["none"] == nil && claims.json.hasPrefix("{"))
        #expect(!"\(token)".contains("first"))
        #expect(!home.provider.requests.contains { $0.hasPrefix("POST /token refresh_token") })
    }

    @Test func anExpiredTokenIsRenewedFirstAndAnotherIfForced() async throws {
        let home = try EnrollmentHome(["lifetime": 0])
        try await home.signIn()
        try home.provider.change(["token": ["second", "third"]])
        #expect(try await home.signIns.token(for: "work").value.text == "second")
        #expect(try await home.signIns.token(for: "work").value.text == "second")
        #expect(try await home.signIns.token(for: "work", forcingRenewal: true).value.text == "third")
        #expect(try home.vault.tokens["work"]?.token.utf8Text == "third")
    }

    @Test func aControllerAnswersWithTheNewToken() async throws {
        let home = try EnrollmentHome()
        try await home.signIn()
        let controller = try ChallengeController(home: URL(filePath: home.path))
        try home.provider.change(["token": ["second"]])
        let signIns = SignIns(controller)
        #expect(try await signIns.token(for: "work", forcingRenewal: true).value.text == "second")
        let (_, credential) = await controller.handle(AuthenticationChallenge(protectionSpace: .git(.bearer)))
        guard case .token(let token)? = credential else {
            Issue.record("\(credential.debugDescription)")
            return
        }
        #expect(token.text == "second")
    }

    @Test func whatIsMissingSaysHowToObtainIt() async throws {
        let home = try EnrollmentHome()
        #expect(try await error { try await home.signIns.token(for: "work") }.code == .signInMissing)
        try await home.signIn()
        #expect(try await error { try await home.signIns.token(for: "other") }.code == .signInMissing)
        let lacking = try await error { try await home.signIns.token(for: "work", scopes: ["openid", "files"]) }
        #expect(lacking.code == .signInRequired && lacking.remedy == .signIn(name: "work", scopes: ["files"]))
        #expect(lacking.fault == .configuration)
    }

    @Test(arguments: [false, true]) func anEndedSignInHasTheProvidersWords(isForced: Bool) async throws {
        let home = try EnrollmentHome(["lifetime": 0])
        try await home.signIn()
        try home.provider.change(["error": "invalid_grant"])
        let ended = try await error { try await home.signIns.token(for: "work", forcingRenewal: isForced) }
        #expect(ended.code == .signInRequired && ended.remedy == .signIn(name: "work", scopes: []), "\(ended)")
        #expect(ended.oauthError == OAuthErrorResponse(error: "invalid_grant"))
        let again = try await error { try await home.signIns.token(for: "work", forcingRenewal: isForced) }
        #expect(again.code == .signInRequired, "\(again)")
    }

    @Test func anOutageIsTransient() async throws {
        let home = try EnrollmentHome(["lifetime": 0])
        try await home.signIn()
        try home.provider.change(["fail": ["/token": 503]])
        for isForced in [false, true] {
            let failed = try await error { try await home.signIns.token(for: "work", forcingRenewal: isForced) }
            #expect(failed.code == .providerUnreachable && failed.oauthError == nil, "\(failed)")
        }
    }

    // MARK: Options and values

    @Test func theOptionsAreSentWithOneSignIn() async throws {
        let home = try EnrollmentHome()
        let enrollment = try home.enrollment(["parameters": ["acr_values": "one", "kept": "yes"], "prompt": "login"])
        enrollment.options = SignInOptions(
            prompt: .selectAccount, loginHint: "jdoe@corp.example", parameters: ["acr_values": "two"])
        let progress = enrollment.progress
        try await enrollment.signIn(with: .custom(EnrollmentHome.Browser(home)))
        var query: [String: String] = [:]
        for await case .page(let url) in progress {
            for item in URLComponents(string: url)?.queryItems ?? [] { query[item.name] = item.value }
        }
        #expect(query["prompt"] == "select_account" && query["login_hint"] == "jdoe@corp.example", "\(query)")
        #expect(query["acr_values"] == "two" && query["kept"] == "yes")
        // The stored profile is the organisation's.
        #expect(try home.vault.signIns["work"]?.profile == enrollment.profile.description)
        enrollment.options = SignInOptions(parameters: ["state": "evil"])
        let refused = await #expect(throws: ChallengeError.self) {
            try await enrollment.signIn(with: .custom(EnrollmentHome.Browser(home)))
        }
        #expect(refused?.code == .profileFaulty && refused?.detail.contains("set by the protocol") == true)
    }

    @Test func aProfileIsMadeFromValues() async throws {
        let home = try EnrollmentHome()
        let profile = try EnrollmentProfile(
            issuer: home.provider.issuer, clientID: SignInProvider.client, sites: [EnrollmentHome.site],
            parameters: ["acr_values": "a\"b"], name: "work")
        #expect(profile.name == "work" && profile.scopes == ["openid", "offline_access"])
        #expect(profile.sites == [EnrollmentHome.site] && profile.source == "the program")
        let enrollment = try home.signIns.enrollment(profile)
        let signIn = try await enrollment.signIn(with: .custom(EnrollmentHome.Browser(home)))
        #expect(signIn.name == "work" && signIn.sites == enrollment.siteLines)
    }

    @Test func aWrongValueOfAProfileIsNamed() throws {
        for (issuer, client, scope, text) in [
            ("nonsense", "c", "openid", "issuer"), ("https://id.example", "", "openid", "client identifier"),
            ("https://id.example", "c", "two words", "is not a scope"),
        ] {
            let error = #expect(throws: ChallengeError.self) {
                try EnrollmentProfile(issuer: issuer, clientID: client, scopes: [scope])
            }
            #expect(error?.code == .profileFaulty && error?.detail.contains(text) == true, "\(error.debugDescription)")
        }
    }
}
