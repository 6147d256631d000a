// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
package import CountersignHome

extension ProfilePlan.Surroundings {
    /// The content of `home` before the installation of a profile. `now` is in seconds since 1970.
    package init(of home: Home, at now: Int64, in vault: any OperationPerformer) throws {
        self.init(now: now)
        profiles = try vault.perform(ListProfiles())
        let names = try vault.perform(ListNames()).identities
        let found = try vault.perform(ListIdentities())
        anchors = try AnchorStore(home: home).entries()
        interceptionRoot = try InterceptionStore(home: home).root()
        for name in names.union(try home.identityNames()) { identities[name] = [] }
        for identity in found.identities where identity.key != .nowhere {
            guard let leaf = identity.chain.first else { continue }
            identities[identity.name] = Digest.sha256.hash(Array(leaf))
        }
    }
}
