// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates
import CountersignHome
package import CountersignVault

extension VaultOperations {
    func renewal(_ dialogue: OperationDialogue) throws -> IdentityRenewal {
        IdentityRenewal(home: home, vault: try opened(), renewals: renewals, now: now, report: dialogue.report)
    }

    /// For a key in a token, which is not enrolled as a ``VaultOperation``.
    package func renewal(report: @escaping @Sendable (RenewalProgress) -> Void) throws -> IdentityRenewal {
        try renewal(OperationDialogue(report: report))
    }

    /// Stores a chain in its file, and its key in the vault with `store`; on failure, neither. A reference to a key in
    /// a token is stored without a ``VaultOperation``.
    package func importIdentity(
        _ name: String, _ chain: [Certificate], replaces: Bool, store: (inout VaultContents) throws -> Void
    ) throws {
        try Self.check(name)
        let chainFile = home.identityChain(named: name)
        let before = try chainFile.readIfThere(upTo: Home.fileLimitBytes)
        var isWritten = false
        do {
            try opened().update { contents in
                let isKnown = contents.hasKey(of: name) || contents.plan(of: name) != nil
                guard replaces || (!isKnown && before == nil) else {
                    throw CountersignError(
                        .nameInUse, "an identity \(name.debugDescription) already exists",
                        hint: "pass --replace to replace it, or choose another name with --name")
                }
                // Keeps the key until it is replaced, so that the identity keeps its place in the order.
                contents.removeEnrollment(named: name)
                contents.removePendingEnrollment(named: name)
                try store(&contents)
                isWritten = true
                try chainFile.replace(with: Array(chain.map(\.pem).joined().utf8))
            }
        } catch {
            guard isWritten else { throw error }
            if let before { try chainFile.replace(with: before) } else { try chainFile.remove() }
            throw error
        }
    }
}
