// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
import CountersignVault

/// Removes a client identity: its key and its chain.
package struct RemoveIdentity: VaultOperation {
    package static let name = "removeIdentity"
    private let name: String

    package init(name: String) { self.name = name }

    package func change(_ result: RemovedRecords) -> String? {
        result.count == 0 ? nil : "removed identity \(name.debugDescription)"
    }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> RemovedRecords {
        try VaultOperations.check(name)
        let hadRecord = try vault.vault?.update { $0.removeIdentity(named: name) } ?? false
        let hadChain = try vault.home.identityChain(named: name).remove()
        return RemovedRecords(count: hadRecord || hadChain ? 1 : 0, known: Set(try vault.home.identityNames()))
    }
}

extension VaultContents {
    /// Removes an identity's key or token reference and its enrolment. Returns whether there was anything to remove.
    mutating func removeIdentity(named name: String) -> Bool {
        let removed = [
            removeIdentityKey(named: name), removeTokenKey(named: name), removeEnrollment(named: name),
            removePendingEnrollment(named: name),
        ]
        return removed.contains(true)
    }
}
