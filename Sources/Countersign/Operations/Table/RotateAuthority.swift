// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates
package import CountersignCryptography
import CountersignHome

/// Replaces the interception CA, and returns its new root.
package struct RotateAuthority: VaultOperation {
    package static let name = "rotateAuthority"

    package init() {}

    package func change(_ result: Certificate) -> String? { "replaced the interception CA" }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> Certificate {
        let hosts = InterceptionStore.hosts(of: try vault.home.sites())
        return try InterceptionStore(home: vault.home).rotate(for: hosts, in: try vault.opened(), at: vault.now()).root
    }
}
