// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
import CountersignVault

/// Removes the shared sessions of one group, or one host, or both; all if both are nil. The known names are the groups.
package struct ClearSessions: VaultOperation {
    package static let name = "clearSessions"
    private let group: String?
    private let host: String?

    package init(group: String?, host: String?) {
        self.group = group
        self.host = host
    }

    package func change(_ result: RemovedRecords) -> String? {
        guard result.count > 0 else { return nil }
        return "removed the sessions of group \((group ?? "*").debugDescription) at \((host ?? "*").debugDescription)"
    }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> RemovedRecords {
        let count = try vault.vault?.update { $0.removeSessions(group: group, host: host) } ?? 0
        let known = count > 0 ? [] : Set((vault.contents?.sessions ?? [:]).keys.map(\.group))
        return RemovedRecords(count: count, known: known)
    }
}
