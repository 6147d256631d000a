// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
package import CountersignCryptography
import CountersignHome
import CountersignVault

/// Stores the access token that a person has obtained because one site requires more of it than others do. The tokens
/// must be those of the person who has signed in. The secret is ``SignInTokens/encoded``.
package struct StoreSiteToken: VaultOperation {
    package static let name = "storeSiteToken"
    /// Of the sign-in.
    private let signIn: String
    private let subject: String
    private let issuer: String
    /// The client's identifier.
    private let client: String
    private let host: String
    private let port: UInt16
    private let scopes: [String]
    private let claims: String?
    private let acrValues: [String]
    private let maxAge: Int64?
    /// In seconds since 1970; 0 if the provider does not say.
    private let expires: Int64

    package init(
        signIn: String, subject: String, issuer: String, client: String, for demand: SiteDemand, expires: Int64
    ) {
        self.signIn = signIn
        self.subject = subject
        self.issuer = issuer
        self.client = client
        host = demand.origin.host
        port = demand.origin.port
        scopes = demand.stepUp.scopes
        claims = demand.stepUp.claims
        acrValues = demand.stepUp.acrValues
        maxAge = demand.stepUp.maxAge
        self.expires = expires
    }

    package var isLong: Bool { true }

    package func change(_ result: Done) -> String? {
        "stored the token of sign-in \(signIn.debugDescription) for \(HostText.joined(host, port))"
    }

    package func perform(on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue) throws -> Done {
        guard let tokens = SignInTokens(decoding: try VaultOperations.needed(secret)) else {
            throw CountersignError(.refused, "the tokens are malformed")
        }
        guard (try? HostName(canonicalizing: host))?.text == host else {
            throw CountersignError(.configuration, "\(host.debugDescription) is no host")
        }
        let demand = SiteDemand(
            StepUp(scopes: scopes, claims: claims, acrValues: acrValues, maxAge: maxAge),
            of: Origin(scheme: .https, host: host, port: port))
        try vault.storeSiteToken(demand, of: signIn, tokens, expires: expires, dialogue) { record in
            record.issuer == issuer && (try? record.signInProfile())?.request.client.identifier == client
        } isSamePerson: {
            !subject.isEmpty && $0.subject == subject
        }
        return Done()
    }
}

extension VaultOperations {
    /// Waits without end for a renewal of the sign-in, because the tokens would be lost otherwise.
    fileprivate func storeSiteToken(
        _ demand: SiteDemand, of name: String, _ tokens: SignInTokens, expires: Int64, _ dialogue: OperationDialogue,
        isSameClient: (SignInRecord) -> Bool, isSamePerson: (SignInRecord) -> Bool
    ) throws {
        let vault = try opened()
        let lock = try renewalLock(name, dialogue, patience: Self.withoutEnd)
        defer { withExtendedLifetime(lock) {} }
        if dialogue.isAbandoned?() == true { throw Self.interrupted }
        _ = try vault.update { contents in
            guard let record = contents.signIns[name], record.ended.isEmpty else {
                throw CountersignError(
                    .refused, "the sign-in \(name.debugDescription) has ended",
                    hint: "sign in again with `countersign enroll \(name)`")
            }
            guard isSameClient(record) else {
                throw CountersignError(
                    .refused, "the profile of \(name.debugDescription) names another client or provider now",
                    hint: "sign in with it for all sites first: `countersign enroll \(name)`")
            }
            // The new refresh token is bound to the key of its access token, and is renewed with that of the sign-in.
            guard BoundToken(decoding: tokens.access)?.key == contents.tokens[name]?.bound?.key else {
                throw CountersignError(
                    .refused, "the sign-in \(name.debugDescription) has tokens of another key or kind now",
                    hint: "sign in with it for all sites first: `countersign enroll \(name)`")
            }
            guard isSamePerson(record) else {
                throw CountersignError(
                    .refused,
                    "another person has signed in than \(record.account.debugDescription); nothing was changed")
            }
            _ = try contents.store(tokens, of: name, for: demand, expires: expires, at: now())
        }
    }
}
