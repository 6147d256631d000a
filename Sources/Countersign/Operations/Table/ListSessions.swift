// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography

/// Lists the shared sessions of all groups, sorted by group and host, without the values of their cookies. Omits
/// expired cookies.
package struct ListSessions: VaultOperation {
    package static let name = "listSessions"

    package init() {}

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> [ListedSession] {
        (vault.contents?.sessions ?? [:]).sorted { $0.key < $1.key }.compactMap { key, _ in
            vault.session(key).map { ListedSession($0) }
        }
    }
}
