// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
package import CountersignCryptography
import CountersignVault

/// Removes all trust exceptions for a server. The known names are the servers that have one.
package struct RemoveTrustExceptions: VaultOperation {
    package static let name = "removeTrustExceptions"
    private let host: String
    private let port: UInt16

    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    package func change(_ result: RemovedRecords) -> String? {
        result.count == 0 ? nil : "removed the trust exceptions for \(host.debugDescription), port \(port)"
    }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> RemovedRecords {
        let count = try vault.vault?.update { $0.removeTrustExceptions(host: host, port: port) } ?? 0
        let known = vault.contents?.trustExceptions.map { HostText.joined($0.host, $0.port) } ?? []
        return RemovedRecords(count: count, known: count > 0 ? [] : Set(known))
    }
}
