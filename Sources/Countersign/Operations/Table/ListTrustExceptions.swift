// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
package import CountersignVault

/// Lists the trust exceptions.
package struct ListTrustExceptions: VaultOperation {
    package static let name = "listTrustExceptions"

    package init() {}

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> [TrustExceptionRecord] {
        vault.contents?.trustExceptions ?? []
    }
}
