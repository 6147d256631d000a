// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignChallenges
import CountersignSignIn
import CountersignVault

extension RenewalAttempt {
    /// Renews the access token of the certificate's sign-in if it has expired: the proxy does that only for requests
    /// that need it. Returns why the token cannot be used, in case the server asks for it.
    func renewToken() async throws -> EnrollmentSession.TokenFault? {
        let record = try record()
        guard signIn == nil, profile == nil, record.owner != nil else { return nil }
        guard let owner = vault.contents.signIn(of: record) else {
            return fault("the sign-in \"\(name)\" is not the one that has brought the certificate")
        }
        guard owner.hasService(at: record.server) else {
            return fault("the profile of the sign-in \"\(name)\" does not name \(record.server) any more")
        }
        guard owner.hasExpired(at: now), let token = vault.contents.tokens[name] else { return nil }
        switch try await context.renewToken(token.tagged(with: vault.tagKey).reference) {
        case .renewed, .unchanged:
            try vault.reload()
            return nil
        case .unavailable(let reason):
            return EnrollmentSession.TokenFault(
                detail: reason, hint: "`countersign status` shows the sign-in; `countersign enroll \(name)` renews it")
        }
    }

    private func fault(_ detail: String) -> EnrollmentSession.TokenFault {
        EnrollmentSession.TokenFault(detail: detail, hint: "sign in again with `countersign enroll \(name)`")
    }
}

extension RenewalContext {
    /// Renews an expired access token. Only one process does so at a time.
    func renewToken(_ token: CredentialReference) async throws -> TokenRenewer.Outcome {
        try await SignInRenewals.using(renewals, home: home, vault: vault, now: now) {
            await $0.renewer.renew(token, .expired)
        }
    }
}

extension VaultContents {
    /// The access token that may be sent to the server of an enrolment: that of the sign-in to which it belongs, if its
    /// profile names the server and the token has not expired.
    func accessToken(for record: EnrollmentRecord, at now: Int64) -> TokenCredential? {
        guard let owner = signIn(of: record), owner.hasService(at: record.server), !owner.hasExpired(at: now),
            owner.ended != SignInRecord.isSigningOut
        else { return nil }
        return tokens[record.name]
    }
}

extension SignInRecord {
    fileprivate func hasService(at server: String) -> Bool { certificates?.endpoint.description == server }

    fileprivate func hasExpired(at now: Int64) -> Bool { expires != 0 && expires <= now }
}
