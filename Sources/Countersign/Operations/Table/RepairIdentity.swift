// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography

/// Writes the chain's file of an enrolled identity again if it is damaged. Returns whether it was.
package struct RepairIdentity: VaultOperation {
    package static let name = "repairIdentity"
    private let name: String

    package init(name: String) { self.name = name }

    package func perform(on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue) throws -> Bool {
        try VaultOperations.check(name)
        return try vault.renewal(dialogue).repairFile(of: name)
    }
}
