// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
import CountersignHome

/// Lists the client identities without their keys.
package struct ListIdentities: VaultOperation {
    package static let name = "listIdentities"

    package init() {}

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> IdentityListing {
        let contents = vault.contents
        let enrolled = try EnrolledIdentities(contents, home: vault.home, readsTokens: false)
        return IdentityListing(
            identities: enrolled.chains.map { ListedIdentity($0.name, $0.chain, in: contents) },
            pending: contents.map(ListedRequest.all) ?? [],
            faults: enrolled.faults.map { IdentityListing.Fault(name: $0.name, reason: $0.reason) },
            fileFaults: enrolled.fileFaults.map { IdentityListing.Fault(name: $0.name, reason: $0.reason) })
    }
}
