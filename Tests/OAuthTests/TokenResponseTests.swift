// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignOAuth

@Suite struct TokenResponseTests {
    /// RFC 6749 §5.1.
    @Test func theExampleOfTheStandard() throws {
        let response = try read(
            """
            {
              "access_token":"2YotnFZFEjr1zCsicMWpAA",
              "token_type":"example",
              "expires_in":3600,
              "refresh_token":"tGzv3JOkF0XG5Qx2TlKWIA",
              "example_parameter":"example_value"
            }
            """.replacing("\"example\"", with: "\"bEARER\""))
        #expect(response.accessToken.utf8Text == "2YotnFZFEjr1zCsicMWpAA")
        #expect(response.refreshToken?.utf8Text == "tGzv3JOkF0XG5Qx2TlKWIA")
        #expect(response.lifetime == 3600)
        #expect(response.scope == nil)
        #expect(!"\(response)".contains("2Yotn") && !"\(response)".contains("tGzv"))
    }

    @Test(
        arguments: [
            ("\"3599\"", 3599), ("3599.9", 3599), ("0", 0), ("99999999999", TokenResponse.longestLifetime),
        ] as [(String, Int64)])
    func lifetimesAreReadInEveryForm(text: String, seconds: Int64) throws {
        #expect(try read(body(["expires_in": text])).lifetime == seconds)
        #expect(try read(body(["expires_in": nil])).lifetime == nil)
    }

    @Test(
        arguments: [
            ("access_token", nil), ("access_token", "\"\""), ("access_token", "7"), ("access_token", #""a b""#),
            ("access_token", #""a\u000ab""#), ("access_token", #""é""#), ("token_type", "7"),
            ("refresh_token", "\"\""), ("refresh_token", "{}"),
        ] as [(String, String?)])
    func aResponseThatDoesNotConformIsRefused(name: String, value: String?) {
        let found = error { _ = try read(body([name: value])) }
        #expect(found?.code == .malformedResponse)
        #expect(found?.detail.contains("canary") == false)
    }

    @Test func aTokenMayNotBeHuge() {
        let token = String(repeating: "a", count: TokenResponse.maximumTokenBytes + 1)
        #expect(error { _ = try read(body(["access_token": "\"\(token)\""])) }?.code == .malformedResponse)
        #expect(throws: Never.self) { try read(body(["access_token": "\"\(token.dropLast())\""])) }
    }

    @Test func onlyBearerTokensAreOfUse() {
        #expect(error { _ = try read(body(["token_type": "\"DPoP\""])) }?.code == .unsupportedProvider)
    }

    @Test(arguments: ["text/html", "text/plain", "application/x-www-form-urlencoded", nil] as [String?])
    func aResponseOfAnotherTypeIsRefused(type: String?) {
        #expect(error { _ = try read(body(), type: type) }?.code == .malformedResponse)
        #expect(throws: Never.self) { try read(body(), type: "Application/JSON ; charset=UTF-8") }
    }

    /// RFC 6749 §5.2, and the deviations of providers.
    @Test func errorsAreReadWhateverTheStatus() throws {
        for status in [200, 400, 401, 403] {
            let found = error {
                _ = try read(#"{"error":"invalid_grant","suberror":"bad_token","error_description":"x"}"#, status)
            }
            #expect(found?.code == .invalidGrant)
            #expect(found?.fault == .person)
            #expect(found?.providerCode == .init(error: "invalid_grant", suberror: "bad_token"))
        }
        let microsoft = error {
            _ = try read(
                #"{"error":"x","correlation_id":"2b8a1cf2-1","client_info":"eyJ1aWQiOiJ1IiwidXRpZCI6InQifQ"}"#, 400)
        }
        #expect(microsoft?.providerCode?.correlationID == "2b8a1cf2-1" && microsoft?.providerCode?.homeAccount == "u.t")
        let strange = error { _ = try read(#"{"error":"x","correlation_id":"a b","client_info":"?"}"#, 400) }
        #expect(strange?.providerCode == .init(error: "x"))
        let policy = #"{"error":"unauthorized_client","suberror":"protection_policy_required","adi":"jo"}"#
        for status in [200, 400, 401, 403, 429, 500, 503] {
            let found = error { _ = try read(policy, status) }
            #expect(found?.code == .protectionPolicyRequired, "\(status)")
            #expect(found?.providerCode?.account == "jo" && found?.isTransient == false)
        }
        let alone = #"{"error":"unauthorized_client","suberror":"other"}"#
        #expect(error { _ = try read(alone, 400) }?.code == .refused)
        #expect(error { _ = try read(#"{"error":"unauthorized_client"}"#, 400) }?.code == .refused)
        #expect(error { _ = try read(#"{"error":"invalid_client"}"#, 401) }?.fault == .profile)
    }

    /// A response with an outage's status says nothing about a token, with any content.
    @Test(arguments: [500, 502, 503, 504, 429, 408])
    func anOutageIsNoVerdict(status: Int) {
        let found = error { _ = try read(#"{"error":"invalid_grant"}"#, status, retryAfter: 7) }
        #expect(found?.code == .unavailable)
        #expect(found?.isTransient == true)
        #expect(found?.retryAfter == 7)
        #expect(error { _ = try read("<html>", status, type: "text/html") }?.code == .unavailable)
    }

    @Test(arguments: [301, 302, 307, 204, 404, 100])
    func anotherStatusIsMalformed(status: Int) {
        #expect(error { _ = try read(body(), status) }?.code == .malformedResponse)
    }

    @Test func theClientInformationNamesTheAccount() throws {
        let text = Base64URL.encode(Array(#"{"uid":"u-1","utid":"t-1"}"#.utf8))
        #expect(try read(body(["client_info": "\"\(text)\""])).clientInfo?.homeAccountIdentifier == "u-1.t-1")
        for other in ["", "e30", "!!", Base64URL.encode(Array(#"{"uid":"a\u000a","utid":"b"}"#.utf8))] {
            #expect(try read(body(["client_info": "\"\(other)\""])).clientInfo == nil)
        }
    }

    @Test func theTextOfTheProviderIsPrintableAndShort() {
        let long = String(repeating: "x", count: 5000)
        let found = error { _ = try read(#"{"error":"x","error_description":"\u001b]0;\u202e\#(long)"}"#, 400) }
        #expect(found.map { $0.detail.utf8.count < 300 } == true)
        #expect(found?.detail.utf8.allSatisfy { (0x20...0x7E).contains($0) } == true)
    }

    @Test func aRefreshKeepsWhatTheResponseLeavesOut() throws {
        let first = TokenSet(
            try read(body(["refresh_token": "\"r1\"", "id_token": "\"i1\""])), requestedScope: "a b", now: 1000)
        #expect(first.scope == "a b")
        #expect(first.expiresAt == 4600)
        let next = first.refreshed(
            try read(body(["access_token": "\"a2\"", "expires_in": nil])), idToken: nil, now: 5000)
        #expect(next.accessToken.utf8Text == "a2")
        #expect(next.refreshToken?.utf8Text == "r1")
        #expect(next.idToken?.utf8Text == "i1")
        #expect(next.scope == "a b")
        #expect(next.expiresAt == nil)
        let last = next.refreshed(
            try read(body(["refresh_token": "\"r2\"", "scope": "\"a\""])), idToken: nil, now: 6000)
        #expect(last.refreshToken?.utf8Text == "r2")
        #expect(last.scope == "a")
    }

    @Test func aTokenIsFreshUntilTheMargin() throws {
        let tokens = TokenSet(try read(body()), requestedScope: nil, now: 1000)
        #expect(tokens.isFresh(now: 4539))
        #expect(!tokens.isFresh(now: 4540))
        #expect(tokens.isFresh(now: 4599, margin: 0))
        #expect(!tokens.isFresh(now: 4600, margin: 0))
        #expect(TokenSet(try read(body(["expires_in": nil])), requestedScope: nil, now: 0).isFresh(now: .max))
    }

    private func body(_ changes: [String: String?] = [:]) -> String {
        var members = ["access_token": #""canary-1""#, "token_type": #""Bearer""#, "expires_in": "3600"]
        for (name, value) in changes { members[name] = value }
        return "{\(members.map { "\"\($0)\":\($1)" }.joined(separator: ","))}"
    }

    private func read(
        _ body: String, _ status: Int = 200, type: String? = "application/json", retryAfter: Int64? = nil
    ) throws -> TokenResponse {
        try TokenResponse(
            ProviderResponse(status: status, contentType: type, retryAfter: retryAfter, body: Array(body.utf8)))
    }
}
