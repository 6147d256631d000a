// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates
package import CountersignVault

/// The client identities of a home: keys in the vault, with chains in `Certs/identities`.
///
/// The vault is authoritative: a chain belongs to a key if its leaf is the one named in the key's record. For an
/// identity enrolled over EST, the vault also has the chain, so that a damaged file or an interrupted renewal does not
/// make it unusable.
package struct EnrolledIdentities: Sendable {
    /// In the order in which they were added. One that is replaced or renewed keeps its place.
    package let identities: [Identity]
    /// The names whose key or chain is missing, or whose key and chain do not match.
    package let faults: [Fault]
    /// The chains of all complete identities, including those whose tokens were not read. Sorted by name.
    package let chains: [(name: String, chain: [Certificate])]
    /// The keys whose PIN a token has just refused, to be recorded with ``VaultContents/refusePIN(of:)``.
    package let refusedPINs: [TokenKey]
    /// The identities whose file is faulty, but which are complete because of the vault's copy.
    package let fileFaults: [Fault]

    package struct Fault: Equatable, Sendable {
        package let name: String
        package let reason: String
    }

    /// With `readsTokens`, logs in to tokens to find the keys in them.
    package init(_ contents: VaultContents?, home: Home, readsTokens: Bool = true) throws(CountersignError) {
        var identities: [Identity] = []
        var chains: [(name: String, chain: [Certificate])] = []
        var refusedPINs: [TokenKey] = []
        var faults: [Fault] = []
        var fileFaults: [Fault] = []
        let known = [contents?.identityKeys.keys.map(\.self), contents?.tokenKeys.keys.map(\.self)]
        for name in Set(known.compactMap(\.self).joined()).union(try home.identityNames()).sorted() {
            let stored = StoredIdentity(named: name, in: contents, home: home, readsTokens: readsTokens)
            if let key = stored.refusedPIN { refusedPINs.append(key) }
            if let identity = stored.identity { identities.append(identity) }
            if let chain = stored.chain {
                chains.append((name, chain))
                if let fault = stored.fileFault { fileFaults.append(Fault(name: name, reason: fault)) }
            } else {
                faults.append(Fault(name: name, reason: stored.fault ?? "it is incomplete"))
            }
        }
        let order = contents?.identityOrder ?? []
        self.identities = order.compactMap { name in identities.first { $0.name == name } }
        self.chains = chains
        self.refusedPINs = refusedPINs
        self.faults = faults
        self.fileFaults = fileFaults
    }
}
