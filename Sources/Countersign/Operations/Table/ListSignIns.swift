// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography

/// Lists the sign-ins of all profiles, sorted by name.
package struct ListSignIns: VaultOperation {
    package static let name = "listSignIns"

    package init() {}

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> [ListedSignIn] {
        (vault.contents?.signIns ?? [:]).values.sorted { $0.name < $1.name }.map { vault.listed($0) }
    }
}
