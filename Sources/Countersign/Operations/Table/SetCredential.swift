// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
package import CountersignCryptography
package import CountersignReporting
import CountersignVault

/// Stores a user name and its password, which is the secret. Returns the block if a site has already rejected them.
package struct SetCredential: VaultOperation {
    package static let name = "setCredential"
    private let name: String
    private let user: String

    package init(name: String, user: String) {
        self.name = name
        self.user = user
    }

    package func change(_ result: BlockedCredential?) -> String? { "set credential \(name.debugDescription)" }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> BlockedCredential? {
        let password = try VaultOperations.needed(secret)
        try VaultOperations.check(name)
        let open = try vault.opened()
        try open.update { try $0.setCredential(name: name, user: user, password: password) }
        return try vault.stored(name, CredentialTag(user: user, password: password, key: open.tagKey))
    }
}
