// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
import CountersignHome
import CountersignVault

/// Removes a credential that is not the access token of a sign-in.
package struct RemoveCredential: VaultOperation {
    package static let name = "removeCredential"
    private let name: String

    package init(name: String) { self.name = name }

    package func change(_ result: RemovedRecords) -> String? {
        result.count == 0 ? nil : "removed credential \(name.debugDescription)"
    }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> RemovedRecords {
        guard vault.contents?.signIns[name] == nil else {
            throw CountersignError(
                .refused, "credential \(name.debugDescription) is the access token of a sign-in",
                hint: "sign out with `countersign unenroll \(name)`")
        }
        guard let open = vault.vault, try open.update({ $0.removeCredential(named: name) }) else {
            return RemovedRecords(count: 0, known: Set(vault.contents?.credentialNames ?? []))
        }
        try BreakerFile(home: vault.home, now: vault.now).nameChanged(name, to: nil)
        return RemovedRecords(count: 1, known: [])
    }
}
