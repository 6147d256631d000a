// SPDX-License-Identifier: Apache-2.0

public import Countersign
import CountersignChallenges
import CountersignCryptography
import CountersignHome
import Logging
import CountersignAnswering
import CountersignProxy
import CountersignSitePolicy
import CountersignVault

/// A question to a ``CredentialDelegate``: the credential for a site that has rejected the stored one.
public struct CredentialQuestion: Equatable, Sendable {
    /// The site, its realm and the method of authentication.
    public let protectionSpace: ProtectionSpace
    /// The name of the rejected credential: `enrollment`, unless the user chose another.
    public let credential: String
    /// The rejected user name.
    public let user: String

    /// Creates a question, for the tests of a program.
    public init(protectionSpace: ProtectionSpace, credential: String, user: String) {
        self.protectionSpace = protectionSpace
        self.credential = credential
        self.user = user
    }
}

/// A password for one site.
public struct SuppliedCredential: Equatable, Sendable {
    /// `jdoe`, `ACME\jdoe` or `jdoe@acme.example`.
    public var user: String
    /// The password.
    public var password: Password
    /// Whether to store it in the vault for this site and realm once the site has accepted it, under a name such as
    /// `https_git.corp.example_443_454349e4`, which `countersign credential list` shows. If the site rejects it later,
    /// the credential of the site's line is used again. Otherwise it is discarded when the proxy stops.
    public var isKept: Bool

    /// Creates a password, which is discarded when the proxy stops unless `isKept` is true.
    public init(user: String, password: Password, isKept: Bool = false) {
        self.user = user
        self.password = password
        self.isKept = isKept
    }
}

/// Supplies passwords for sites that reject the stored one.
public protocol CredentialDelegate: Sendable {
    /// Returns the password for a site that has rejected the stored one, or nil to deliver the site's 401.
    ///
    /// The request waits for up to two minutes; after that, the 401 is delivered and the task is cancelled. A client
    /// may time out earlier: `URLSession` does after 60 seconds, unless `timeoutIntervalForRequest` is longer. Requests
    /// to the same site share one question. After nil, the delegate gets no question about the site until the stored
    /// credential changes. The supplied password is used for this site and realm only. If the site rejects it, the
    /// delegate gets another question. A user name and password that were rejected before are not sent, and count as
    /// nil.
    func credential(for question: CredentialQuestion) async -> SuppliedCredential?
}

/// Passes the proxy's questions to a delegate of the public API, and stores passwords in the vault.
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
        let version = Randomness.bytes(8).reduce(0) { $0 << 8 | UInt64($1) }
        let credential = PasswordCredential(
            name: Self.name(for: space), user: answer.user, password: answer.password.secret, source: .supplied(version)
        )
        return ReplacementCredential(tagged(credential), storing: answer.isKept ? .onceAccepted : .no)
    }

    func store(_ credential: PasswordCredential, for space: AuthenticationSpace) async -> PasswordCredential? {
        guard let vault = keeper.vault else { return nil }
        let name = Self.name(for: space)
        do {
            let stored = try vault.update {
                try $0.setCredential(name: name, user: credential.user, password: credential.password)
            }
            keeper.refresh(force: true)
            return tagged(stored)
        } catch {
            for diagnostic in Diagnostic.all(in: error) {
                logger.error("cannot store the password for \(name): \(diagnostic.message)")
            }
            return nil
        }
    }

    private static func name(for space: AuthenticationSpace) -> String {
        OriginCredentialName(space.origin, realm: space.realm).text
    }

    /// With the tag that the breaker knows from other credentials with the same user name and password.
    private func tagged(_ credential: PasswordCredential) -> PasswordCredential {
        keeper.vault.map { credential.tagged(with: $0.tagKey) } ?? credential
    }
}
