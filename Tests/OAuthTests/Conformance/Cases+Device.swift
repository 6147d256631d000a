// SPDX-License-Identifier: Apache-2.0

@testable import CountersignOAuth

/// The device flow (RFC 8628), whose ID token has no nonce.
extension ConformanceCase {
    private static func pending(_ error: String) -> ScriptedProvider.Reply {
        .init(status: 400, body: #"{"error":"\#(error)"}"#)
    }

    private static func device(
        _ verdict: Verdict, _ name: String, _ script: @escaping @Sendable (inout ScriptedProvider) -> Void = { _ in }
    ) -> Self {
        Self(
            name: "device: \(name)", verdict: verdict,
            script: {
                $0.isOnDevice = true
                script(&$0)
            }, also: { $0.page == nil })
    }

    static let device: [ConformanceCase] = [
        device(.accepted, "the person confirms") {
            $0.polls = [pending("authorization_pending"), pending("slow_down")]
        },
        device(.refused(.denied, "access_denied"), "the person declines") { $0.polls = [pending("access_denied")] },
        device(.refused(.expired, "expired_token"), "the code expires") { $0.polls = [pending("expired_token")] },
        device(.refused(.expired, "not confirmed in time"), "nobody confirms") {
            $0.device["expires_in"] = "20"
            $0.polls = Array(repeating: pending("authorization_pending"), count: 10)
        },
        device(.refused(.malformedResponse, "it is not https"), "the page is http") {
            $0.device["verification_uri"] = #""http://id.example/device""#
        },
        device(.refused(.malformedResponse, "\"user_code\""), "the code is not printable") {
            $0.device["user_code"] = #""A\u0007B""#
        },
        device(.refused(.unsupportedProvider, "device authorization endpoint"), "there is no device flow") {
            $0.metadata["device_authorization_endpoint"] = nil
        },
        device(.refused(.invalidIDToken, "for another client"), "the ID token is for another client") {
            $0.tokens.claims["aud"] = #""app-2""#
        },
        device(.refused(.invalidIDToken, "its signature"), "the ID token is forged") {
            $0.tokens.signer = .stranger
        },
    ]
}
