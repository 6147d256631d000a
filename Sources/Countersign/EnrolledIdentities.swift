// SPDX-License-Identifier: Apache-2.0

import Certificates
import Vault

/// The client identities of a home: keys of the vault that have their chain in `Certs/identities`.
package struct EnrolledIdentities: Sendable {
    /// In the order of their names.
    package let identities: [Identity]
    /// A sentence for each name that has not both halves, or two that do not belong together.
    package let faults: [Fault]

    package struct Fault: Equatable, Sendable {
        package let name: String
        package let reason: String
    }

    package init(keys: [String: IdentityKey], home: Home) throws(CountersignError) {
        var identities: [Identity] = []
        var faults: [Fault] = []
        for name in Set(keys.keys).union(try home.identityNames()).sorted() {
            do throws(CountersignError) {
                identities.append(try Self.identity(named: name, key: keys[name], home: home))
            } catch {
                faults.append(Fault(name: name, reason: error.detail))
            }
        }
        self.identities = identities
        self.faults = faults
    }

    private static func identity(named name: String, key: IdentityKey?, home: Home) throws(CountersignError) -> Identity
    {
        let file = home.identityChain(named: name)
        guard let chain = try home.chain(named: name), let leaf = chain.first else {
            throw CountersignError(.configuration, "\(file.name) is missing")
        }
        guard let key else { throw CountersignError(.configuration, "the vault has no private key for \(file.name)") }
        guard leaf.sha256Fingerprint == key.leafSHA256 else {
            throw CountersignError(
                .configuration, "the first certificate of \(file.name) is not the one that was imported")
        }
        do {
            return try Identity(name: name, chain: chain, key: PrivateKey(pkcs8: key.privateKey))
        } catch {
            throw CountersignError(.configuration, error.detail)
        }
    }
}
