// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import CountersignOAuth

extension SignIns {
    /// The access token of a sign-in. One that expires soon is renewed first, and with `forcingRenewal` every one: for
    /// a token that a server has called invalid. One that cannot be renewed is returned as long as it is valid, unless
    /// `forcingRenewal` is set. No page is opened.
    ///
    /// The call does not ask for `countersign token allow`: your program has opened the vault itself.
    ///
    /// Throws `CancellationError` if the task is cancelled, and ``ChallengeError``:
    ///
    /// - `signInMissing`: there is no sign-in of that name.
    /// - `signInRequired`: the sign-in has ended, the token has expired and the provider sent nothing to renew it, or
    ///   it does not have all of `scopes`. ``ChallengeError/remedy`` has the scopes to ask for; pass them to
    ///   ``enrollment(again:addingScopes:)``.
    /// - `protectionPolicyRequired`: apply the policy with a ``ComplianceManager``.
    /// - `providerUnreachable`, `providerRefused`: ``ChallengeError/oauthError`` is what the provider reported.
    /// - the codes of the home and the vault.
    public func token(
        for name: String, scopes: [String] = [], forcingRenewal: Bool = false
    ) async throws -> AccessToken {
        let missing = ChallengeError(
            .signInMissing, "there is no sign-in \(name.debugDescription)", hint: "list them with `countersign status`")
        do {
            guard let open = try await vault.blocking({ [vault] in try vault.opened(creates: false) }) else {
                throw missing
            }
            let tokens = FreshTokens(
                home: home, vault: open, renewals: vault.controller?.signInRenewals, now: ChallengeController.now)
            guard let fresh = try await tokens.token(of: name, isForced: forcingRenewal) else { throw missing }
            if let controller = vault.controller { await controller.reading { $0.refresh() } }
            let token = AccessToken(fresh)
            let lacked = scopes.filter { !token.scopes.contains($0) }
            guard lacked.isEmpty else { throw ChallengeError(lacking: lacked, for: name) }
            return token
        } catch {
            try Task.checkCancellation()
            if let controller = vault.controller { await controller.reading { $0.refresh() } }
            throw ChallengeError(obtainingToken: error)
        }
    }
}

extension ChallengeError {
    fileprivate init(lacking scopes: [String], for name: String) {
        let text = scopes.joined(separator: " ")
        self.init(
            .signInRequired, "the access token of \(name.debugDescription) does not have the scope \(text)",
            hint: "sign in again and ask for it")
        remedy = .signIn(name: name, scopes: scopes)
    }

    /// Converts an error of obtaining an access token.
    fileprivate init(obtainingToken error: any Error) {
        guard let error = error as? TokenUnavailable else {
            self.init(signingIn: error)
            return
        }
        let record = error.record
        self.init(Self.code(of: error), error.detail, hint: error.hint)
        oauthError = error.cause.flatMap { OAuthErrorResponse($0) }
        switch code {
        case .signInRequired: remedy = .signIn(name: record.name, scopes: [])
        case .protectionPolicyRequired:
            accountID = error.cause?.providerCode?.account ?? record.account
            remedy = .remediate(signIn: record.name)
        default: break
        }
    }

    private static func code(of error: TokenUnavailable) -> Code {
        if case .notCompliant? = error.refusal?.cause { return .protectionPolicyRequired }
        if error.refusal != nil { return .signInMissing }
        if !error.record.ended.isEmpty || !error.record.isRenewable { return .signInRequired }
        guard let cause = error.cause else { return .providerUnreachable }
        switch cause.code {
        case .invalidGrant, .interactionRequired: return .signInRequired
        default: return ChallengeError(signingIn: cause).code
        }
    }
}
