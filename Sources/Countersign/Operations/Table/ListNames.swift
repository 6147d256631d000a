// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography

/// Lists the names that a site's line can give.
package struct ListNames: VaultOperation {
    package static let name = "listNames"

    package init() {}

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> StoredNames {
        StoredNames(
            credentials: Set(vault.contents?.credentialNames ?? []), identities: vault.contents?.identityNames ?? [])
    }
}

/// The names of a home's credentials and identities.
package struct StoredNames: Codable, Sendable {
    package let credentials: Set<String>
    package let identities: Set<String>
}
