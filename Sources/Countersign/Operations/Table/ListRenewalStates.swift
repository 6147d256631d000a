// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography

/// Lists the renewal states of one identity or all, sorted by name.
package struct ListRenewalStates: VaultOperation {
    package static let name = "listRenewalStates"
    private let name: String?

    package init(of name: String? = nil) { self.name = name }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> [RenewalState] {
        let contents = vault.contents
        let names: Set<String>
        if let name {
            try VaultOperations.check(name)
            names = [name]
        } else {
            names = (contents?.identityNames ?? []).union(try vault.home.identityNames())
        }
        return names.sorted().compactMap { name in
            RenewalState(named: name, in: contents, home: vault.home, now: vault.now())
        }
    }
}
