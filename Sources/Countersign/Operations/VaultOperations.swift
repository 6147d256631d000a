// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
package import CountersignCryptography
package import CountersignHome
import CountersignReporting
import CountersignSitePolicy
package import CountersignVault

/// Performs ``VaultOperation``s on an opened vault: in the process of a command, or in a running server for a command.
///
/// Calls block for file operations, and for an EST server as long as it takes to respond.
package struct VaultOperations: Sendable {
    let home: Home
    /// Nil if the home has none.
    let vault: OpenVault?
    /// Nil in the process of a command.
    let policy: ServedPolicy?
    /// The server's, which keep tokens that cannot be stored; nil in the process of a command.
    let renewals: SignInRenewals?
    /// Seconds since 1970.
    let now: @Sendable () -> Int64

    package init(
        home: Home, vault: OpenVault?, policy: ServedPolicy? = nil, renewals: SignInRenewals? = nil,
        now: @escaping @Sendable () -> Int64
    ) {
        self.home = home
        self.vault = vault
        self.policy = policy
        self.renewals = renewals
        self.now = now
    }

    /// Performs one operation. `secret` is the one that belongs to it. Throws ``CountersignError``, ``VaultError`` and
    /// others with a text for people.
    package func perform<Operation: VaultOperation>(
        _ operation: Operation, secret: Secret? = nil, _ dialogue: OperationDialogue = .silent
    ) throws -> Operation.Result {
        // An operation on profiles that cannot be completed reports that itself.
        try? finishProfiles()
        return try operation.perform(on: self, secret: secret, dialogue)
    }

    // MARK: Parts

    /// Nil if the home has no vault.
    var contents: VaultContents? { vault?.contents }

    func opened() throws -> OpenVault {
        guard let vault else { throw CountersignError(.unknownName, "there is no vault in \(home.path)") }
        return vault
    }

    /// The policy of the server. Throws in the process of a command.
    func served() throws -> ServedPolicy {
        guard let policy else { throw CountersignError(.refused, "only a running server has a policy") }
        return policy
    }

    /// The secret of an operation that has one.
    static func needed(_ secret: Secret?) throws -> Secret {
        guard let secret else { throw CountersignError(.refused, "the secret is missing or empty") }
        return secret
    }

    /// Throws unless `name` can name an identity and its file.
    static func check(_ name: String) throws {
        guard SiteRule.isStoredName(name), VaultLimits.isName(name) else {
            throw CountersignError(.configuration, "\(name.debugDescription) is not a name")
        }
    }

    /// Makes the breaker forget the name's previous credential. Returns the block if a site has already rejected the
    /// new one.
    func stored(_ name: String, _ tag: CredentialTag) throws -> BlockedCredential? {
        let file = BreakerFile(home: home, now: now)
        try file.nameChanged(name, to: .tag(tag))
        return BlockedCredential.all(in: try file.read(), only: [tag], at: now()).first
    }
}

/// The policy of a running server, for the operations that ask about it or use it.
package struct ServedPolicy: Sendable {
    let report: @Sendable (PolicyQuestion) throws -> PolicyReport
    let runProxy: @Sendable (_ spoolBytes: Int) throws -> UnansweredReport

    /// `runProxy` returns when the command has ended, and throws ``OperationUnavailable`` if it cannot serve it.
    package init(
        report: @escaping @Sendable (PolicyQuestion) throws -> PolicyReport,
        runProxy: @escaping @Sendable (_ spoolBytes: Int) throws -> UnansweredReport
    ) {
        self.report = report
        self.runProxy = runProxy
    }
}

/// The server cannot perform an operation, and has done nothing.
package struct OperationUnavailable: Error {
    package let reason: String

    package init(reason: String) { self.reason = reason }
}
