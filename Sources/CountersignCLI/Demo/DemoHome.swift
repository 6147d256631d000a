// SPDX-License-Identifier: Apache-2.0

import Certificates
import Countersign
import Cryptography
import Vault

/// What the demo puts into a home, under the name `demo`, and takes out again: a file of sites, a trust anchor, a credential and
/// an identity. Whatever else the home holds is left alone.
struct DemoHome {
    static let name = "demo"

    let home: Home
    let vault: OpenVault

    private var sites: HomeFile { home.file("\(Home.sitesFolder)/demo.sites") }
    private var anchor: HomeFile { home.file("\(Home.anchorsFolder)/demo.pem") }
    private var chain: HomeFile { home.identityChain(named: Self.name) }

    /// The credential's password is new each time: it opens nothing but the demo's own sites.
    func enroll(user: String, password: Secret, identity: Identity, anchor root: Certificate) throws {
        try vault.update { contents in
            try contents.setCredential(name: Self.name, user: user, password: password)
            try contents.setIdentityKey(
                IdentityKey(
                    name: Self.name, privateKey: identity.key.pkcs8, leafSHA256: identity.leaf.sha256Fingerprint))
        }
        try chain.replace(with: Array(identity.chain.map(\.pem).joined().utf8))
        try anchor.replace(with: Array(root.pem.utf8))
    }

    func list(_ lines: [String]) throws {
        let head = "# Made by `countersign demo`, and removed when it ends.\n"
        try sites.replace(with: Array((head + lines.map { $0 + "\n" }.joined()).utf8))
    }

    func remove() throws {
        try sites.remove()
        try anchor.remove()
        try chain.remove()
        try vault.update { contents in
            contents.removeCredential(named: Self.name)
            contents.removeIdentityKey(named: Self.name)
        }
    }
}
