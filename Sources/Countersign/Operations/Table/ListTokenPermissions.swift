// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography

/// Lists the sign-ins, sorted by name, and whether their access tokens are given out.
package struct ListTokenPermissions: VaultOperation {
    package static let name = "listTokenPermissions"

    package init() {}

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> [ListedTokenPermission] {
        guard let contents = vault.contents else { return [] }
        return contents.signIns.values.sorted { $0.name < $1.name }.map { record in
            ListedTokenPermission(
                name: record.name, account: record.account, issuer: record.issuer,
                permitted: contents.tokenPermissions[record.name]?.permitted)
        }
    }
}

/// Whether the access token of a sign-in is given out.
package struct ListedTokenPermission: Equatable, Sendable, Codable {
    package let name: String
    /// Empty if the provider gives none.
    package let account: String
    package let issuer: String
    /// When the person permitted it, in seconds since 1970; nil if it is not given out.
    package let permitted: Int64?
}
