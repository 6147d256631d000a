// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
import CountersignHome
import CountersignSignIn

/// Throws if a sign-in may not have this name, its lines for the list of sites are faulty, or the vault cannot be
/// written: a full disk is better noticed before a person has signed in. Returns the sign-in that would be replaced;
/// nil without one. With `obtainsCertificate`, also throws if an identity of that name is not the sign-in's.
package struct CheckSignIn: VaultOperation {
    package static let name = "checkSignIn"
    private let name: String
    private let sites: [String]
    private let obtainsCertificate: Bool

    package init(name: String, sites: [String], obtainsCertificate: Bool) {
        self.name = name
        self.sites = sites
        self.obtainsCertificate = obtainsCertificate
    }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> ListedSignIn? {
        try SignInName.check(name)
        let open = try vault.opened()
        let before = open.contents.signIns[name]?.allSites ?? []
        try SignInSites(home: vault.home, name: name).check(sites, replacing: before)
        let former = try open.update { contents in
            if contents.signIns[name] == nil, contents.credentialNames.contains(name) {
                throw CountersignError(
                    .nameInUse, "credential \(name.debugDescription) exists and is no sign-in",
                    hint: "choose another name with --name, or remove it with `countersign credential remove \(name)`")
            }
            guard contents.wipes[name] == nil else { throw VaultOperations.isBeingWiped(name) }
            if obtainsCertificate { try vault.checkIdentity(of: name, in: contents) }
            contents.touch()
            return contents.signIns[name]
        }
        return former.map { vault.listed($0) }
    }
}
