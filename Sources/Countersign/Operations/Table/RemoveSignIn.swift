// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography

/// Ends a sign-in: revokes its tokens at the provider, and removes them and the sites.
package struct RemoveSignIn: VaultOperation {
    package static let name = "removeSignIn"
    private let name: String

    package init(name: String) { self.name = name }

    package var isLong: Bool { true }

    package func change(_ result: Named<SignedOut>) -> String? {
        result.done.map { _ in "removed sign-in \(name.debugDescription)" }
    }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> Named<SignedOut> {
        guard let open = vault.vault, open.contents.signIns[name] != nil else {
            return .unknown(known: vault.signInNames)
        }
        let locks = try vault.removalLocks(of: name, in: open, dialogue)
        return try vault.removeSignIn(name, locks, dialogue)
    }
}
