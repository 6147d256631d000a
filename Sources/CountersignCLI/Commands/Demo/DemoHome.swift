// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCertificates
import CountersignCryptography
import CountersignHome
import CountersignVault
import Glibc

/// The entries that the demo adds to a home under the name `demo` and removes afterwards: a list of sites, a trust
/// anchor, a credential, an identity and the profile of its provider. Everything else in the home is left alone.
struct DemoHome {
    static let name = "demo"

    let home: Home
    let vault: OpenVault

    private var sites: HomeFile { home.file("\(Home.sitesFolder)/demo.sites") }
    private var anchor: HomeFile { home.file("\(Home.anchorsFolder)/demo.pem") }
    private var chain: HomeFile { home.identityChain(named: Self.name) }
    private var profile: HomeFile { home.file(Self.profileName) }

    /// The file that `countersign enroll` reads.
    static let profileName = "demo-profile.json"

    private static let mark = "# Made by `countersign demo`, and removed when it ends."

    /// Throws if the user has an entry of that name. The first line of the sites file marks leftovers of an earlier
    /// demo.
    func refuseToReplace() throws {
        if let bytes = try sites.readIfThere(upTo: 64 * 1024) {
            guard !String(decoding: bytes, as: UTF8.self).hasPrefix(Self.mark) else { return }
        } else {
            let contents = vault.contents
            let isTaken =
                try contents.credentialNames.contains(Self.name) || contents.identityKeys[Self.name] != nil
                || contents.tokenKeys[Self.name] != nil || contents.signIns[DemoProvider.name] != nil
                || profile.readIfThere(upTo: 1 << 20) != nil
                || chain.readIfThere(upTo: 1 << 20) != nil || anchor.readIfThere(upTo: 1 << 20) != nil
            guard isTaken else { return }
        }
        throw CountersignError(
            .nameInUse,
            "this home already has an entry named \"\(Self.name)\" or \"\(DemoProvider.name)\", which the demo would "
                + "replace",
            hint: "run the demo in another home: `countersign demo --home DIR`")
    }

    /// The password is random and new for each run; only the demo's sites accept it.
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
        try sites.replace(with: Array((Self.mark + "\n" + lines.map { $0 + "\n" }.joined()).utf8))
    }

    /// Ends the sign-in at the demo's provider, if there is one: of this demo, or of one that was killed. It was stored
    /// by another process.
    func signOut() {
        guard (try? vault.reload()) != nil, vault.contents.signIns[DemoProvider.name] != nil else { return }
        let operations = VaultOperations(home: home, vault: vault, now: { Int64(time(nil)) })
        do {
            _ = try operations.perform(RemoveSignIn(name: DemoProvider.name))
        } catch {
            Console.warning(
                "the sign-in \(DemoProvider.name.debugDescription) is still there",
                hint: "`countersign unenroll \(DemoProvider.name)` removes it")
        }
    }

    func write(profile text: String) throws {
        try profile.replace(with: Array(text.utf8))
    }

    func remove() throws {
        try profile.remove()
        try anchor.remove()
        try chain.remove()
        try vault.update { contents in
            contents.removeCredential(named: Self.name)
            contents.removeIdentityKey(named: Self.name)
        }
        // Last, because this file marks the other entries as the demo's.
        try sites.remove()
    }
}
