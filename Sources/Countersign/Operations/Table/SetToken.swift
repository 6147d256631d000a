// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
package import CountersignCryptography
package import CountersignReporting
import CountersignVault

/// Stores a bearer token, which is the secret. Returns the block if a site has already rejected it.
package struct SetToken: VaultOperation {
    package static let name = "setToken"
    private let name: String

    package init(name: String) { self.name = name }

    package func change(_ result: BlockedCredential?) -> String? { "set credential \(name.debugDescription)" }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> BlockedCredential? {
        let token = try VaultOperations.needed(secret)
        try VaultOperations.check(name)
        let open = try vault.opened()
        try open.update { try $0.setToken(name: name, token: token) }
        return try vault.stored(name, CredentialTag(token: token, key: open.tagKey))
    }
}
