// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignOAuth

@Suite struct IDTokenTests {
    @Test func aTokenThatFitsIsAccepted() throws {
        let token = try check(claims(["name": #""Jo Doe""#, "preferred_username": #""jo@corp.example""#]))
        #expect(token.subject == "person-1")
        #expect(token.issuer == Provider.issuerText)
        #expect(token.accountName == "jo@corp.example")
        #expect(token.expiresAt == Provider.now + 300)
        #expect(try check(claims()).accountName == "person-1")
        #expect(try check(claims(["name": #""J\u001b[31m\u202eo""#])).accountName == "J.[31m...o")
    }

    /// Each is a claim that is missing, of another type, or not that of the request.
    @Test(
        arguments: [
            ("iss", #""https://id.example/tenant/""#), ("iss", #""https://id.example/other""#), ("iss", nil),
            ("iss", #"["https://id.example/tenant"]"#), ("aud", #""app-2""#), ("aud", #"["app-2","app-3"]"#),
            ("aud", "[]"), ("aud", nil), ("aud", "7"), ("aud", #"["app-1","app-2"]"#), ("azp", #""app-2""#),
            ("sub", nil), ("sub", #""""#), ("sub", "7"), ("sub", #""é""#), ("exp", nil), ("exp", "1899999880"),
            ("exp", #""1900000300""#), ("exp", "1e300"), ("iat", nil), ("iat", "1900000121"), ("nbf", "1900000121"),
            ("nonce", nil), ("nonce", #""other""#), ("nonce", "7"), ("at_hash", #""AAAA""#), ("at_hash", "7"),
            ("exp", "9223372036854775807"), ("exp", "-9223372036854775808"),
        ] as [(String, String?)])
    func aTokenWithAnotherClaimIsRefused(name: String, value: String?) throws {
        let found = error { _ = try check(claims([name: value])) }
        #expect(found?.code == .invalidIDToken, "\(name): \(value ?? "none")")
    }

    @Test(arguments: [
        ("exp", "1899999881"), ("exp", "1900000000.75"), ("iat", "1900000120"), ("nbf", "1900000120"), ("nbf", "0"),
        ("aud", #"["app-1"]"#), ("azp", #""app-1""#), ("extra", "[1]"),
    ])
    func theLimitsAreExact(name: String, value: String) throws {
        #expect(try check(claims([name: value])).subject == "person-1")
    }

    @Test func severalAudiencesNeedAnAuthorizedParty() throws {
        #expect(throws: Never.self) { try check(claims(["aud": #"["app-2","app-1"]"#, "azp": #""app-1""#])) }
        #expect(error { _ = try check(claims(["aud": #"["app-2","app-1"]"#])) }?.code == .invalidIDToken)
    }

    /// OpenID Connect Core appendix A.3: the access token and its hash under RS256.
    @Test func theAccessTokensHashIsThatOfTheStandardsExample() throws {
        let key = try SigningKey("a", SigningKey.rsa)
        func token(_ hash: String) throws -> SignedToken {
            try SignedToken(parsing: Secret(utf8: try key.token(claims(["at_hash": "\"\(hash)\""]), as: .rs256)))
        }
        var expected = expectation
        expected.accessToken = Secret(utf8: "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y")
        #expect(throws: Never.self) { try IDToken(token("77QmUPtjPfzWtF2AnpK9RQ"), expected) }
        #expect(error { _ = try IDToken(token("77QmUPtjPfzWtF2AnpK9RR"), expected) }?.code == .invalidIDToken)
        expected.accessToken = Secret(utf8: "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Z")
        #expect(error { _ = try IDToken(token("77QmUPtjPfzWtF2AnpK9RQ"), expected) }?.code == .invalidIDToken)
    }

    /// RFC 9470 §5: what was required is checked before the token is used.
    @Test(arguments: [
        (["acr": #""phr""#], true), (["acr": #""phrh""#], true), (["acr": #""PHR""#], false), (["acr": "7"], false),
        ([:], false),
    ])
    func theClassOfAuthenticationIsTheRequiredOne(more: [String: String], isAccepted: Bool) throws {
        var expected = expectation
        expected.acrValues = ["phr", "phrh"]
        let token = try SignedToken(parsing: Secret(utf8: try SigningKey.shared.get().token(claims(more))))
        let found = error { _ = try IDToken(token, expected) }
        #expect(found?.code == (isAccepted ? nil : .insufficientAuthentication), "\(more)")
    }

    /// The test's clock is at 1900000000, and the clocks may differ by 120 s.
    @Test(arguments: [
        ("1899999820", true), ("1899999819", false), ("1900000000", true), (nil, false), (#""now""#, false),
    ])
    func theSignInIsAsRecentAsRequired(time: String?, isAccepted: Bool) throws {
        var expected = expectation
        expected.maxAge = 60
        let token = try SignedToken(
            parsing: Secret(utf8: try SigningKey.shared.get().token(claims(["auth_time": time]))))
        let found = error { _ = try IDToken(token, expected) }
        #expect(found?.code == (isAccepted ? nil : .insufficientAuthentication), "\(time ?? "none")")
    }

    @Test func anotherSubjectAfterARefreshIsAnotherAccount() throws {
        var expected = expectation
        expected.nonce = nil
        expected.subject = "person-2"
        let token = try SignedToken(parsing: Secret(utf8: try SigningKey.shared.get().token(claims())))
        #expect(error { _ = try IDToken(token, expected) }?.code == .accountChanged)
        expected.subject = "person-1"
        #expect(throws: Never.self) { try IDToken(token, expected) }
    }

    @Test func claimsThatAreNotAnObjectAreRefused() throws {
        for text in ["", "[]", "7", "{", #"{"iss":"a","iss":"b"}"#, "\u{FEFF}{}"] {
            let token = try SignedToken(parsing: Secret(utf8: try SigningKey.shared.get().token(text)))
            #expect(error { _ = try IDToken(token, expectation) }?.code == .invalidIDToken, "\(text)")
        }
    }

    @Test func errorsDoNotContainTheToken() throws {
        let found = error { _ = try check(claims(["nonce": #""canary-in-nonce""#])) }
        #expect(found?.detail.contains("canary") == false)
        #expect(found?.detail.contains("nonce") == true)
    }

    private let expectation = IDToken.Expectation(
        issuer: Provider.issuerText, clientIdentifier: Provider.client, nonce: "nonce-1",
        accessToken: Secret(utf8: "access-1"), now: Provider.now)

    private func check(_ claims: String) throws -> IDToken {
        let token = try SignedToken(parsing: Secret(utf8: try SigningKey.shared.get().token(claims)))
        return try IDToken(token, expectation)
    }

    private func claims(_ changes: [String: String?] = [:]) -> String {
        var all = ["nonce": #""nonce-1""#] as [String: String?]
        all.merge(changes) { $1 }
        return Claims.text(all)
    }
}

enum Claims {
    /// The claims of a good token without a nonce, with `changes`; a change to nil removes a claim.
    static func text(_ changes: [String: String?] = [:]) -> String {
        var members = [
            "iss": #""\#(Provider.issuerText)""#, "sub": #""person-1""#, "aud": #""app-1""#,
            "exp": "\(Provider.now + 300)", "iat": "\(Provider.now)",
        ]
        for (name, value) in changes { members[name] = value }
        return "{\(members.sorted { $0.key < $1.key }.map { "\"\($0)\":\($1)" }.joined(separator: ","))}"
    }
}
