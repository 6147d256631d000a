// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
import CountersignHome
import CountersignVault

/// Returns the identity of that name, with the chain from the vault if it is enrolled, else from its file; nil without
/// one.
package struct ShowIdentity: VaultOperation {
    package static let name = "showIdentity"
    private let name: String

    package init(name: String) { self.name = name }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> ListedIdentity? {
        try VaultOperations.check(name)
        let contents = vault.contents
        var chain = contents?.enrollments[name].flatMap { _ in
            StoredIdentity(named: name, in: contents, home: vault.home, readsTokens: false).chain
        }
        if chain == nil { chain = try vault.home.chain(named: name) }
        guard let chain, !chain.isEmpty else { return nil }
        return ListedIdentity(name, chain, in: contents)
    }
}
