// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import Logging
import CountersignProxy
import CountersignVault

/// What a delegate is asked when a site has refused the stored credential.
public struct CredentialQuestion: Equatable, Sendable {
    /// The site, its realm, and how it asks.
    public let protectionSpace: ProtectionSpace
    /// The name of the credential that was refused, `enrollment` unless the person chose another.
    public let credential: String
    /// The user name that was refused.
    public let user: String
}

/// A password for one site.
public struct SuppliedCredential: Equatable, Sendable {
    /// `jdoe`, `ACME\jdoe` or `jdoe@acme.example`.
    public var user: String
    /// The password.
    public var password: Password
    /// Whether the vault keeps it for the site, under a name such as `https_git.corp.example_443`, which `countersign
    /// credential list` shows; otherwise it is forgotten when the proxy stops.
    public var isKept: Bool

    /// A password that is forgotten when the proxy stops, unless `isKept`.
    public init(user: String, password: Password, isKept: Bool = false) {
        self.user = user
        self.password = password
        self.isKept = isKept
    }
}

/// Supplies passwords to sites that want another one than the stored.
public protocol CredentialDelegate: Sendable {
    /// The password for a site that has refused the stored one, or nil: then the site's 401 goes back.
    ///
    /// The request waits meanwhile, for two minutes at most; after that the answer is nil, and the task is cancelled. A
    /// client may give up earlier: `URLSession` does after 60 seconds, where `timeoutIntervalForRequest` says no more.
    /// Requests to the same site ask once, and a nil is not asked about again until the stored credential changes. What
    /// is supplied is used for this site only, and the delegate is asked again when the site refuses that too.
    func credential(for question: CredentialQuestion) async -> SuppliedCredential?
}

/// The proxy's question, put to a delegate of the API; what is to be kept goes into the vault.
struct AskedCredential: CredentialSupplier {
    let delegate: any CredentialDelegate
    let keeper: PolicyKeeper
    let logger: Logger

    func credential(
        insteadOf refused: PasswordCredential, for space: AuthenticationSpace
    ) async -> ReplacementCredential? {
        let question = CredentialQuestion(
            protectionSpace: ProtectionSpace(space), credential: refused.name, user: refused.user)
        guard let answer = await delegate.credential(for: question), !Task.isCancelled else { return nil }
        let name = Policy.credentialName(for: space.origin)
        if answer.isKept, let kept = keep(answer, as: name) {
            return ReplacementCredential(kept, isKept: true)
        }
        // As new as one that was enrolled: what is known of the refused one says nothing of it.
        let generation = Randomness.bytes(8).reduce(0) { $0 << 8 | UInt64($1) } | 1 << 63
        return ReplacementCredential(
            PasswordCredential(
                name: name, user: answer.user, password: answer.password.secret, generation: generation),
            isKept: false)
    }

    private func keep(_ answer: SuppliedCredential, as name: String) -> PasswordCredential? {
        guard let vault = keeper.vault else { return nil }
        do {
            let kept = try vault.update {
                try $0.setCredential(name: name, user: answer.user, password: answer.password.secret)
            }
            keeper.refresh(force: true)
            return kept
        } catch {
            for diagnostic in Diagnostic.all(in: error) {
                logger.error("the password for \(name) is not kept: \(diagnostic.message)")
            }
            return nil
        }
    }
}
