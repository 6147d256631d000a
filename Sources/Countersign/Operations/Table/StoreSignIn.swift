// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
import CountersignHome

/// Stores a sign-in that a person has completed, its sites, and the certificate that its profile asks for. The secret
/// is ``SignInTokens/encoded``.
package struct StoreSignIn: VaultOperation {
    package static let name = "storeSignIn"
    private let signIn: NewSignIn

    package init(_ signIn: NewSignIn) { self.signIn = signIn }

    package var isLong: Bool { true }

    package func change(_ result: Done) -> String? { "stored sign-in \(signIn.name.debugDescription)" }

    package func perform(on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue) throws -> Done {
        guard let tokens = SignInTokens(decoding: try VaultOperations.needed(secret)) else {
            throw CountersignError(.refused, "the tokens are malformed")
        }
        try vault.storeSignIn(signIn, tokens, dialogue)
        return Done()
    }
}
