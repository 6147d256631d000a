// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignChallenges
import CountersignCryptography
import CountersignHome
import CountersignOAuth
import CountersignVault

/// The access token of a sign-in with its record, for a program that uses the token itself.
struct FreshToken: Sendable {
    let record: SignInRecord
    let token: TokenCredential
}

/// Why a sign-in has no access token that can be used.
struct TokenUnavailable: DiagnosableError {
    let detail: String
    let hint: String?
    /// The sign-in as it is now.
    let record: SignInRecord
    /// Why the sign-in is not used at present, such as a policy; nil if that is not so.
    var refusal: Refusal?
    /// The provider's error, if that is the cause.
    var cause: OAuthError?
}

extension TokenUnavailable {
    /// A token that is bound to a key is of no use to another program (RFC 9449).
    static func bound(_ record: SignInRecord) -> TokenUnavailable {
        TokenUnavailable(
            detail: "the access token of \"\(record.name)\" is bound to a key that stays in the vault (DPoP)",
            hint: "send the request through the proxy, which adds the token with a proof of the key", record: record)
    }
}

/// The access tokens of a home's sign-ins as values.
struct FreshTokens: Sendable {
    let home: Home
    let vault: OpenVault
    /// Those of the server or of the library; nil in the process of a command.
    let renewals: SignInRenewals?
    /// Seconds since 1970.
    let now: @Sendable () -> Int64

    /// The access token of a sign-in; nil if there is none of that name. A token that expires soon is renewed first,
    /// and with `isForced` every one. One that cannot be renewed is returned as long as it is valid, unless `isForced`.
    /// Throws ``TokenUnavailable``, and the errors of the vault.
    func token(of name: String, isForced: Bool = false) async throws -> FreshToken? {
        try await SignInRenewals.using(renewals, home: home, vault: vault, now: now) {
            try await token(of: name, isForced, $0)
        }
    }

    private func token(of name: String, _ isForced: Bool, _ renewals: SignInRenewals) async throws -> FreshToken? {
        _ = try await renewals.onQueue { [vault] in try vault.reload() }
        guard let present = try stored(name) else { return nil }
        guard isForced || present.record.renewalTime(delayedBy: 0).map({ $0 <= now() }) ?? false else { return present }
        var failure: (text: String?, cause: OAuthError?) = (nil, nil)
        if isForced {
            guard present.record.ended.isEmpty, present.record.isRenewable else {
                throw unavailable(
                    present.record, "the access token of \"\(name)\" cannot be renewed", present.record.ended)
            }
            if let error = await renewals.renewNow(name) {
                let detail = SignInRenewals.text(error)
                failure = (
                    "the access token of \"\(name)\" cannot be renewed: \(detail)", error as? OAuthError
                )
            }
        } else if case .unavailable(let reason) = await renewals.renewer.renew(present.token.reference, .expired) {
            failure = (reason, renewals.lastFailure(of: name) as? OAuthError)
        }
        _ = try await renewals.onQueue { [vault] in try vault.reload() }
        guard let newest = try stored(name, failure.cause) else { return nil }
        let isValid = newest.record.expires == 0 || newest.record.expires > now()
        guard let text = failure.text, isForced || newest.token.reference == present.token.reference && !isValid else {
            return newest
        }
        throw TokenUnavailable(detail: text, hint: nil, record: newest.record, cause: failure.cause)
    }

    /// Throws if the sign-in is not used at present.
    private func stored(_ name: String, _ cause: OAuthError? = nil) throws -> FreshToken? {
        let contents = vault.contents
        guard let record = contents.signIns[name], let token = contents.tokens[name] else { return nil }
        if let refusal = contents.withheld[name] {
            throw TokenUnavailable(
                detail: refusal.text, hint: nil, record: record, refusal: refusal, cause: cause)
        }
        if record.ended == SignInRecord.isSigningOut {
            throw TokenUnavailable(detail: record.shownEnd, hint: nil, record: record)
        }
        guard token.bound == nil else { throw TokenUnavailable.bound(record) }
        return FreshToken(record: record, token: token.tagged(with: vault.tagKey))
    }

    private func unavailable(_ record: SignInRecord, _ text: String, _ reason: String) -> TokenUnavailable {
        TokenUnavailable(
            detail: reason.isEmpty ? "\(text): the provider sent nothing to renew it" : "\(text): \(reason)",
            hint: "sign in again with `countersign enroll \(record.name)`", record: record)
    }
}
