// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography

extension ProfilePlan.Surroundings {
    /// What `home` has before a profile is installed. `now` is in seconds since 1970.
    package init(
        of home: Home, at now: Int64, in vault: (VaultOperation, Secret?) throws -> VaultResult
    ) throws {
        self.init(now: now)
        guard case .profiles(let profiles) = try vault(.listProfiles, nil),
            case .names(_, let names) = try vault(.listNames, nil),
            case .identities(let found) = try vault(.listIdentities, nil)
        else { throw SignInPlan.unexpected }
        anchors = try AnchorStore(home: home).entries()
        interceptionRoot = try InterceptionStore(home: home).root()
        self.profiles = profiles
        for name in names.union(try home.identityNames()) { identities[name] = [] }
        for identity in found.identities where identity.key != .nowhere {
            guard let leaf = identity.chain.first else { continue }
            identities[identity.name] = Digest.sha256.hash(Array(leaf))
        }
    }
}
