// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates
package import CountersignCryptography
import CountersignHome
import CountersignVault

/// Stores a client identity: the key in the vault and the chain in its file; on failure, neither. The secret is the
/// private key, PKCS#8 in DER.
package struct ImportIdentity: VaultOperation {
    package static let name = "importIdentity"
    private let name: String
    private let chain: [Certificate]
    private let replaces: Bool

    /// The leaf comes first in `chain`.
    package init(name: String, chain: [Certificate], replaces: Bool) {
        self.name = name
        self.chain = chain
        self.replaces = replaces
    }

    package func change(_ result: Done) -> String? { "imported identity \(name.debugDescription)" }

    package func perform(on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue) throws -> Done {
        let key = try PrivateKey(pkcs8: try VaultOperations.needed(secret))
        guard let leaf = chain.first, chain.count <= VaultLimits.certificates, key.matches(leaf) else {
            throw CountersignError(.configuration, "the private key does not belong to the certificate")
        }
        let record = IdentityKey(name: name, privateKey: try key.pkcs8, leafSHA256: leaf.sha256Fingerprint)
        try vault.importIdentity(name, chain, replaces: replaces) { try $0.setIdentityKey(record) }
        return Done()
    }
}
