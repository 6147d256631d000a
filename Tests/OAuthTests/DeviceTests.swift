// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignOAuth

@Suite struct DeviceTests {
    @Test func aSignInOnAnotherDevice() throws {
        var signIn = try Scene.signIn(by: .device)
        _ = signIn.start()
        let request = try Scene.sent(signIn.received(Scene.metadata(), now: now))
        #expect(request.purpose == .deviceAuthorization)
        #expect(request.parameters == ["client_id": ["app-1"], "scope": ["openid"]])

        guard case .show(let shown, let seconds) = signIn.received(Provider.response(example), now: now) else {
            throw Unexpected("nothing to show")
        }
        #expect(shown.userCode == "WDJB-MJHT" && seconds == 5)
        #expect(shown.verificationURL.description == "https://example.com/device")
        #expect(shown.completeVerificationURL?.description == "https://example.com/device?user_code=WDJB-MJHT")
        #expect(shown.expiresAt == now + 1800)
        #expect(!"\(shown)".contains("GmRhmh"))

        let poll = try Scene.sent(signIn.waited(now: now + 5))
        #expect(
            poll.parameters == [
                "grant_type": ["urn:ietf:params:oauth:grant-type:device_code"], "client_id": ["app-1"],
                "device_code": ["GmRhmhcxhwAzkoEqiMEg_DnyEysNkuNhszIySk9eS"],
            ])
        #expect(signIn.received(pending("authorization_pending"), now: now + 5) == .wait(seconds: 5))
        _ = signIn.waited(now: now + 10)
        // The device flow has no nonce.
        let token = try SigningKey.shared.get().token(Claims.text())
        #expect(try Scene.sent(signIn.received(try Scene.tokens(idToken: token), now: now + 10)).purpose == .keys)
        guard case .finish(let result) = signIn.received(try Scene.keys(), now: now + 10) else {
            throw Unexpected("no end")
        }
        #expect(result.idToken?.subject == "person-1")
    }

    /// RFC 8628 §3.5: the response to each poll, and the seconds until the next.
    @Test func pollingSlowsDownAndNeverSpeedsUp() throws {
        var signIn = try Self.polling(example)
        let table: [(ProviderOutcome, Int64)] = [
            (pending("authorization_pending"), 5), (pending("slow_down"), 10), (pending("authorization_pending"), 10),
            (pending("slow_down"), 15), (.failure(ProviderFailure("timed out", timedOut: true)), 30),
            (pending("authorization_pending"), 30), (.failure(ProviderFailure("timed out", timedOut: true)), 60),
            (.failure(ProviderFailure("connection refused")), 65), (Provider.response(503, ""), 70),
            (Provider.response(429, retryAfter: 100, ""), 100), (pending("authorization_pending"), 100),
            (.failure(ProviderFailure("timed out", timedOut: true)), 200),
            (.failure(ProviderFailure("timed out", timedOut: true)), 400),
            (.failure(ProviderFailure("timed out", timedOut: true)), 600),
            (.failure(ProviderFailure("timed out", timedOut: true)), 600),
        ]
        for (row, (outcome, seconds)) in table.enumerated() {
            #expect(signIn.received(outcome, now: now + 10) == .wait(seconds: seconds), "row \(row)")
            _ = signIn.waited(now: now + 10)
        }
    }

    @Test(
        arguments: [
            ("access_denied", OAuthError.Code.denied), ("expired_token", .expired), ("invalid_grant", .invalidGrant),
            ("invalid_client", .invalidClient), ("anything", .refused),
        ] as [(String, OAuthError.Code)])
    func anyOtherErrorEndsThePolling(error: String, code: OAuthError.Code) throws {
        var signIn = try Self.polling(example)
        #expect(Scene.failure(signIn.received(pending(error), now: now)) == code)
    }

    @Test func anUntrustedServerEndsThePolling() throws {
        var signIn = try Self.polling(example)
        let outcome = ProviderOutcome.failure(ProviderFailure("untrusted certificate", isTransient: false))
        #expect(Scene.failure(signIn.received(outcome, now: now)) == .connectionFailed)
    }

    @Test func theCodeExpiresHere() throws {
        var signIn = try Self.polling(example)
        #expect(signIn.received(pending("authorization_pending"), now: now + 1799) == .wait(seconds: 5))
        _ = signIn.waited(now: now + 1804)
        #expect(Scene.failure(signIn.received(pending("authorization_pending"), now: now + 1804)) == .expired)
    }

    @Test(
        arguments: [
            ("device_code", nil), ("device_code", "\"\""), ("user_code", nil), ("user_code", #""a\u001b[2J""#),
            ("user_code", #""a b""#), ("verification_uri", nil), ("verification_uri", #""http://example.com/""#),
            ("verification_uri", #""javascript:alert(1)""#),
            ("expires_in", nil), ("expires_in", "0"), ("expires_in", "-5"),
        ] as [(String, String?)])
    func aResponseThatDoesNotConformIsRefused(name: String, value: String?) throws {
        var signIn = try Scene.signIn(by: .device)
        _ = signIn.start()
        _ = signIn.received(Scene.metadata(), now: now)
        let outcome = Provider.response(response([name: value]))
        #expect(Scene.failure(signIn.received(outcome, now: now)) == .malformedResponse)
    }

    @Test func theIntervalIsFiveSecondsUnlessTheProviderSaysMore() throws {
        for (text, seconds) in [(nil, 5), ("0", 1), ("-1", 1), ("7", 7), ("99999", 600)] as [(String?, Int64)] {
            var signIn = try Scene.signIn(by: .device)
            _ = signIn.start()
            _ = signIn.received(Scene.metadata(), now: now)
            let outcome = Provider.response(response(["interval": text]))
            guard case .show(_, let wait) = signIn.received(outcome, now: now) else { throw Unexpected("no code") }
            #expect(wait == seconds)
        }
    }

    @Test func theEarlyNameOfTheAddressIsRead() throws {
        let changes = ["verification_uri": nil, "verification_url": #""https://example.com/old""#] as [String: String?]
        let outcome = ProviderResponse(
            status: 200, contentType: "application/json", body: Array(response(changes).utf8))
        #expect(
            try DeviceAuthorization(outcome, .secure, now: now).verificationURL.description
                == "https://example.com/old")
    }

    @Test func aProviderWithoutTheFlowIsNamed() throws {
        var signIn = try Scene.signIn(by: .device)
        _ = signIn.start()
        let outcome = Scene.metadata(["device_authorization_endpoint": nil])
        #expect(Scene.failure(signIn.received(outcome, now: now)) == .unsupportedProvider)
    }

    private let now = Provider.now

    /// RFC 8628 §3.2.
    private let example = """
        {
          "device_code": "GmRhmhcxhwAzkoEqiMEg_DnyEysNkuNhszIySk9eS",
          "user_code": "WDJB-MJHT",
          "verification_uri": "https://example.com/device",
          "verification_uri_complete": "https://example.com/device?user_code=WDJB-MJHT",
          "expires_in": 1800,
          "interval": 5
        }
        """

    private func response(_ changes: [String: String?]) -> String {
        var members = [
            "device_code": #""d""#, "user_code": #""U""#, "verification_uri": #""https://example.com/device""#,
            "expires_in": "1800",
        ]
        for (name, value) in changes { members[name] = value }
        return "{\(members.map { "\"\($0)\":\($1)" }.joined(separator: ","))}"
    }

    private func pending(_ error: String) -> ProviderOutcome {
        Provider.response(400, #"{"error":"\#(error)"}"#)
    }

    /// The first poll was sent.
    private static func polling(_ response: String) throws -> SignIn {
        var signIn = try Scene.signIn(by: .device)
        _ = signIn.start()
        _ = signIn.received(Scene.metadata(), now: Provider.now)
        _ = signIn.received(Provider.response(response), now: Provider.now)
        _ = signIn.waited(now: Provider.now)
        return signIn
    }
}
