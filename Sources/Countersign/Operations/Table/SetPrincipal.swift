// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
package import CountersignCryptography
package import CountersignReporting
import CountersignVault

/// Stores a Kerberos principal. The secret is its password or, as `KeytabKeys` encodes them, its keys. Returns where
/// they are blocked already.
package struct SetPrincipal: VaultOperation {
    package static let name = "setPrincipal"
    private let name: String
    private let principal: String
    private let hasKeys: Bool

    package init(name: String, principal: String, hasKeys: Bool) {
        self.name = name
        self.principal = principal
        self.hasKeys = hasKeys
    }

    package func change(_ result: BlockedCredential?) -> String? { "set credential \(name.debugDescription)" }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> BlockedCredential? {
        let secret = try VaultOperations.needed(secret)
        try VaultOperations.check(name)
        let open = try vault.opened()
        try open.update {
            try $0.setPrincipal(name: name, principal: principal, proof: hasKeys ? .keys(secret) : .password(secret))
        }
        return try vault.stored(name, CredentialTag(user: principal, password: secret, key: open.tagKey))
    }
}
