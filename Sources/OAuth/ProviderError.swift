// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// An error that the provider reports: in an error response (RFC 6749 §5.2) or in the redirect (§4.1.2.1).
struct ProviderError: Equatable {
    let error: String
    let suberror: String?
    let description: String?

    /// From parameters as received. Nil if `error` has characters that §5.2 does not permit.
    init?(error: String, suberror: String? = nil, description: String? = nil) {
        guard !error.isEmpty, error.utf8.count <= 200,
            error.utf8.allSatisfy({ (0x20...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C })
        else { return nil }
        self.error = PrintableText.plain(error)
        self.suberror = suberror.map { PrintableText.plain($0) }
        self.description = description.map { PrintableText.longer($0) }
    }

    /// From the body of a response of any status: providers do not agree on it. Nil if it has no `error`.
    init?(_ response: ProviderResponse) {
        guard response.isJSON,
            let value = try? JSONParser.parse(response.body, secrets: TokenResponse.secretMembers),
            case .string(let error)? = value["error"]?.content
        else { return nil }
        func text(_ name: String) -> String? {
            if case .string(let text)? = value[name]?.content { text } else { nil }
        }
        self.init(error: error, suberror: text("suberror"), description: text("error_description"))
    }

    /// The error for a response that is not a success.
    static func error(_ response: ProviderResponse, at purpose: ProviderRequest.Purpose) -> OAuthError {
        let isOutage = response.status >= 500 || response.status == 429 || response.status == 408
        if let reported = ProviderError(response), !isOutage {
            return reported.error(from: purpose.place, retryAfter: response.retryAfter)
        }
        if isOutage {
            return OAuthError(
                .unavailable, .provider, "\(purpose.place) cannot answer now (\(response.summary))",
                hint: "try again later", retryAfter: response.retryAfter)
        }
        return .malformed("the response of \(purpose.place)", "unexpected \(response.summary)")
    }

    /// `place` is who has reported it: `the token endpoint`.
    func error(from place: String, retryAfter: Int64? = nil) -> OAuthError {
        let (code, fault, hint) = meaning
        let more = (suberror.map { ", \($0)" } ?? "") + (description.map { ": \($0)" } ?? "")
        return OAuthError(
            code, fault, "\(place) reports \(error)\(more)", hint: hint,
            providerCode: OAuthError.ProviderCode(error: error, suberror: suberror), retryAfter: retryAfter)
    }

    private var meaning: (OAuthError.Code, OAuthError.Fault, hint: String?) {
        switch error {
        case "access_denied":
            (.denied, .person, "sign in again and accept, or ask who administers the account")
        case "expired_token":
            (.expired, .person, "start again")
        case "login_required", "consent_required", "interaction_required", "account_selection_required":
            (.interactionRequired, .person, "sign in again")
        case "invalid_grant":
            (.invalidGrant, .person, "sign in again")
        case "invalid_client":
            (.invalidClient, .profile, "check the client identifier and how the client authenticates")
        case "unauthorized_client" where suberror == "protection_policy_required":
            (.protectionPolicyRequired, .person, "apply the organisation's protection policy first")
        case "temporarily_unavailable", "server_error":
            (.unavailable, .provider, "try again later")
        case "invalid_scope", "invalid_target", "unauthorized_client", "invalid_request", "unsupported_response_type",
            "unsupported_grant_type":
            (.refused, .profile, "check the profile against the client's registration")
        default:
            (.refused, .provider, nil)
        }
    }
}

extension ProviderFailure {
    func error(at purpose: ProviderRequest.Purpose) -> OAuthError {
        OAuthError(
            isTransient ? .unreachable : .connectionFailed, .network, "\(purpose.place): \(detail)",
            hint: hint ?? (isTransient ? "check the connection and try again" : nil))
    }
}
