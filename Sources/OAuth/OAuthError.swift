// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// Why signing in, or a request to the provider, failed. Never contains a code, token, secret or verifier; text of the
/// provider is printable and shortened.
package struct OAuthError: CodedError {
    package enum Code: Equatable, Sendable {
        /// The profile, or a setting that comes from it, cannot be used.
        case configuration
        /// The provider's metadata or keys cannot be used, or it lacks a required feature.
        case unsupportedProvider
        /// The metadata is that of another issuer (RFC 8414 §3.3).
        case issuerMismatch
        /// A response does not conform to its standard.
        case malformedResponse
        /// The redirect does not belong to this sign-in: its `state` is missing or another one (RFC 6749 §10.12).
        case stateMismatch
        /// The redirect comes from another issuer (RFC 9207 §2.4): a mix-up attack, or an error of the provider.
        case mixedUp
        /// The redirect is to another address than the registered one.
        case wrongRedirect
        /// The person, or a policy of the provider, has denied the request: `access_denied`.
        case denied
        /// The person did not act in time: `expired_token`, or no redirect.
        case expired
        /// The person, or the program, ended the sign-in.
        case cancelled
        /// The provider wants the person to sign in or to consent: `interaction_required` and the like.
        case interactionRequired
        /// The code or refresh token is not or no longer valid: `invalid_grant` (RFC 6749 §5.2) without a `suberror`
        /// that asks for something else.
        case invalidGrant
        /// The client is unknown to the provider, or its secret is wrong: `invalid_client`.
        case invalidClient
        /// An app protection policy must be applied first: `unauthorized_client` with the `suberror`
        /// `protection_policy_required`, regardless of the status. A browser does not help, and no token is discarded.
        case protectionPolicyRequired
        /// Any other error code of the provider: ``OAuthError/ProviderCode``.
        case refused
        /// The provider cannot answer now: status 5xx or 429, `temporarily_unavailable`, `server_error`.
        case unavailable
        /// There was no response: the network, the host's name or the time limit.
        case unreachable
        /// There was no response, and a repetition would not have one: a certificate that is not trusted, for example.
        case connectionFailed
        /// The ID token is forged, expired, for another client, or malformed (OpenID Connect Core §3.1.3.7).
        case invalidIDToken
        /// The person has not signed in as strongly or as recently as was required (RFC 9470).
        case insufficientAuthentication
        /// A refresh has returned an ID token of another person (OpenID Connect Core §12.2).
        case accountChanged
    }

    /// Who has to do something.
    package enum Fault: Equatable, Sendable {
        case provider
        case profile
        case person
        case network
    }

    /// The error as the provider wrote it (RFC 6749 §5.2), in printable characters.
    package struct ProviderCode: Equatable, Sendable {
        /// `invalid_grant`.
        package let error: String
        /// `suberror`, which some providers add.
        package let suberror: String?
        /// `claims`, as received: the claims that the next request has to ask for. Not part of any message.
        package let claims: String?
        /// `adi`: the name of the account that a protection policy is for. Not part of any message.
        package let account: String?
        /// `correlation_id`. Not part of any message.
        package var correlationID: String?
        /// `client_info`: that account in the directory. Not part of any message.
        package let clientInfo: ClientInfo?
        /// ``ClientInfo/homeAccountIdentifier`` of that account.
        package var homeAccount: String? { clientInfo?.homeAccountIdentifier }

        package init(
            error: String, suberror: String? = nil, claims: String? = nil, account: String? = nil,
            clientInfo: ClientInfo? = nil
        ) {
            self.clientInfo = clientInfo
            self.error = error
            self.suberror = suberror
            self.claims = claims
            self.account = account
        }
    }

    package let code: Code
    package let fault: Fault
    package let detail: String
    package let hint: String?
    package let providerCode: ProviderCode?
    /// The seconds until the next request that the provider demands, if any (RFC 9110 §10.2.3).
    package let retryAfter: Int64?

    package init(
        _ code: Code, _ fault: Fault, _ detail: String, hint: String? = nil, providerCode: ProviderCode? = nil,
        retryAfter: Int64? = nil
    ) {
        self.code = code
        self.fault = fault
        self.detail = detail
        self.hint = hint
        self.providerCode = providerCode
        self.retryAfter = retryAfter
    }

    /// Whether the same request may succeed later without any change.
    package var isTransient: Bool { code == .unreachable || code == .unavailable }

    /// A response of the provider that violates its standard; `what` is in lower case, as in `the provider's metadata`.
    static func malformed(_ what: String, _ reason: String) -> OAuthError {
        OAuthError(.malformedResponse, .provider, "\(what) cannot be used: \(reason)")
    }

    /// Reads a JSON document of the provider.
    static func reading<Value>(
        _ what: String, _ body: () throws(JSONError) -> Value
    ) throws(OAuthError) -> Value {
        do {
            return try body()
        } catch {
            throw malformed(what, error.detail)
        }
    }

    static func profile(_ detail: String, hint: String? = nil) -> OAuthError {
        OAuthError(.configuration, .profile, detail, hint: hint)
    }
}
