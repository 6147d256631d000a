// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography

/// Removes a configuration profile and the items that it has installed.
package struct RemoveProfile: VaultOperation {
    package static let name = "removeProfile"
    private let identifier: String

    package init(identifier: String) { self.identifier = identifier }

    package func change(_ result: Named<RemovedProfile>) -> String? {
        result.done.map { _ in "removed profile \(identifier.debugDescription)" }
    }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> Named<RemovedProfile> {
        try vault.removeProfile(identifier, dialogue)
    }
}
