// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
package import CountersignVault

/// Lists the installed configuration profiles, sorted by identifier, without the contents of files.
package struct ListProfiles: VaultOperation {
    package static let name = "listProfiles"

    package init() {}

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> [ProfileRecord] {
        // Of a command that was killed before it has changed anything.
        vault.home.removeAbandonedFiles()
        return (vault.contents?.profiles ?? [:]).values.sorted { $0.identifier < $1.identifier }.map { record in
            var record = record
            record.journal?.written = []
            return record
        }
    }
}
