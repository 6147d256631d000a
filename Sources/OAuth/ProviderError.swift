// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// An error that the provider reports: in an error response (RFC 6749 §5.2) or in the redirect (§4.1.2.1).
struct ProviderError: Equatable {
    let error: String
    let suberror: String?
    let description: String?
    /// The claims that the provider wants the next request to ask for, as JSON.
    let claims: String?
    /// `adi`: the name of the account that the error is about.
    let account: String?
    /// `correlation_id`: finds the request in the provider's log.
    private(set) var correlationID: String?
    /// `client_info`: that account in the directory.
    let clientInfo: ClientInfo?

    /// The longest `claims` that are kept, in bytes.
    static let maximumClaimsBytes = 16 * 1024

    /// From parameters as received. Nil if `error` has characters that §5.2 does not permit. `secrets` are those of the
    /// request: texts that repeat them are not shown.
    init?(
        error: String, suberror: String? = nil, description: String? = nil, claims: String? = nil,
        account: String? = nil, clientInfo: String? = nil, hiding secrets: [Secret] = []
    ) {
        guard !error.isEmpty, error.utf8.count <= 200,
            error.utf8.allSatisfy({ (0x20...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C })
        else { return nil }
        self.error = ProviderText.code(error, hiding: secrets)
        self.suberror = suberror.flatMap { $0.isEmpty ? nil : ProviderText.code($0, hiding: secrets) }
        self.description = description.map { ProviderText.sentence($0, hiding: secrets) }
        self.claims = claims.flatMap { $0.utf8.count <= Self.maximumClaimsBytes ? $0 : nil }
        self.clientInfo = clientInfo.flatMap { ClientInfo($0) }
        self.account = account.flatMap { Self.isAccount($0) ? $0 : nil }
    }

    private static func isAccount(_ text: String) -> Bool {
        (1...256).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
    }

    /// An app protection policy must be applied. The two words belong together; each has another meaning alone.
    private var requiresProtectionPolicy: Bool {
        error == "unauthorized_client" && suberror == "protection_policy_required"
    }

    /// From the body of a response of any status: providers do not agree on it. Nil if it has no `error`.
    init?(_ response: ProviderResponse, hiding secrets: [Secret] = []) {
        guard response.isJSON,
            let value = try? JSONParser.parse(response.body, secrets: TokenResponse.secretMembers),
            case .string(let error)? = value["error"]?.content
        else { return nil }
        func text(_ name: String) -> String? {
            if case .string(let text)? = value[name]?.content { text } else { nil }
        }
        let secrets = secrets + response.secrets
        self.init(
            error: error, suberror: text("suberror"), description: text("error_description"), claims: text("claims"),
            account: text("adi"), clientInfo: text("client_info"), hiding: secrets)
        correlationID = text("correlation_id").flatMap { id in
            Self.isCorrelation(id) && !ProviderText.repeats(secrets, id) ? id : nil
        }
    }

    private static func isCorrelation(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }

    /// The error for a response that is not a success. `secrets` are those of the request.
    static func error(
        _ response: ProviderResponse, at purpose: ProviderRequest.Purpose, hiding secrets: [Secret] = []
    ) -> OAuthError {
        let isOutage = response.status >= 500 || response.status == 429 || response.status == 408
        if let reported = ProviderError(response, hiding: secrets), !isOutage || reported.requiresProtectionPolicy {
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
        let (code, fault, general) = meaning
        let hint = description.flatMap { DirectoryError.advice(in: $0) } ?? general
        let more = (suberror.map { ", \($0)" } ?? "") + (description.map { ": \($0)" } ?? "")
        var providerCode = OAuthError.ProviderCode(
            error: error, suberror: suberror, claims: claims, account: account, clientInfo: clientInfo)
        providerCode.correlationID = correlationID
        return OAuthError(
            code, fault, "\(place) reports \(error)\(more)", hint: hint, providerCode: providerCode,
            retryAfter: retryAfter)
    }

    private var meaning: (OAuthError.Code, OAuthError.Fault, hint: String?) {
        if requiresProtectionPolicy {
            return (.protectionPolicyRequired, .person, "apply the organisation's protection policy first")
        }
        return switch error {
        case "access_denied":
            (.denied, .person, "sign in again and accept, or ask who administers the account")
        case "expired_token":
            (.expired, .person, "start again")
        case "login_required", "consent_required", "interaction_required", "account_selection_required":
            (.interactionRequired, .person, "sign in again")
        // Any other suberror wants something of the person, and the refresh token stays valid.
        case "invalid_grant" where suberror == nil || suberror == "bad_token" || suberror == "token_expired":
            (.invalidGrant, .person, "sign in again")
        case "invalid_grant":
            (.interactionRequired, .person, "sign in again")
        case "invalid_client":
            (.invalidClient, .profile, "check the client identifier and how the client authenticates")
        case "temporarily_unavailable", "server_error":
            (.unavailable, .provider, "try again later")
        case "invalid_scope", "invalid_target", "unauthorized_client", "invalid_request", "unsupported_response_type",
            "unsupported_grant_type":
            (.refused, .profile, "check the profile against the client's registration")
        // RFC 9449 §5 and §8.
        case "invalid_dpop_proof", "use_dpop_nonce":
            (
                .refused, .profile,
                "check that the profile has \"dpop\": true, which this provider demands, and that the clock is right"
            )
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
