// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography

/// As ``RemoveSignIn``, but completed even after an interruption.
package struct WipeSignIn: VaultOperation {
    package static let name = "wipe"
    private let name: String

    package init(name: String) { self.name = name }

    package var isLong: Bool { true }

    package func change(_ result: Named<SignedOut>) -> String? {
        result.done.map { _ in "wiped sign-in \(name.debugDescription)" }
    }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> Named<SignedOut> {
        try vault.wipe(name, dialogue)
    }
}
