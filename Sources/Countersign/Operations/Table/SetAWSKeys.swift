// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
package import CountersignCryptography
import CountersignHome
import CountersignVault

/// Stores keys of AWS. The secret is the JSON that a `credential_process` of AWS' tools writes.
package struct SetAWSKeys: VaultOperation {
    package static let name = "setAWSKeys"
    private let name: String

    package init(name: String) { self.name = name }

    package func change(_ result: StoredAWSKeys) -> String? { "set credential \(name.debugDescription)" }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> StoredAWSKeys {
        let text = try VaultOperations.needed(secret)
        try VaultOperations.check(name)
        let keys = try ProgramSecret.awsKeys(in: text, from: "standard input", now: vault.now())
        try vault.opened().update { try $0.setAWSKeys(name: name, keys) }
        try BreakerFile(home: vault.home, now: vault.now).nameChanged(name, to: nil)
        return StoredAWSKeys(accessKeyID: keys.accessKeyID, expires: keys.expires)
    }
}

/// Keys of AWS without their secrets.
package struct StoredAWSKeys: Codable, Sendable {
    package let accessKeyID: String
    /// In seconds since 1970; nil for keys that do not expire.
    package let expires: Int64?
}
