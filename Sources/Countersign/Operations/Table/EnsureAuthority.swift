// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates
package import CountersignCryptography
import CountersignHome
import FoundationEssentials

/// Returns the root of the interception CA, and creates the CA if needed.
package struct EnsureAuthority: VaultOperation {
    package static let name = "ensureAuthority"

    package init() {}

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> Certificate {
        let store = InterceptionStore(home: vault.home)
        let hosts = InterceptionStore.hosts(of: try vault.home.sites())
        return try store.root()
            ?? store.authority(for: hosts, in: try vault.opened(), at: vault.now()).authority.root
    }
}

/// As DER, so that an operation can return it.
extension Certificate: Codable {
    package convenience init(from decoder: any Decoder) throws {
        try self.init(der: Array(try decoder.singleValueContainer().decode(Data.self)))
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(Data(der))
    }
}
