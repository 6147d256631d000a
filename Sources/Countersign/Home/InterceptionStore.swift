// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignSitePolicy
import CountersignVault

/// The interception CA of a home: its keys in the vault, its certificates in `Certs/interception`. Made when it is first needed.
///
/// A new root is first written as `root.pem.next`; the vault with its keys decides, in one step, that it is the root from then
/// on; then it takes the place of `root.pem`. Whoever is stopped between leaves what the next process finishes.
package struct InterceptionStore: Sendable {
    private let home: Home

    /// An authority is renewed this long before its end: 10 days, in seconds.
    package static let renewal: Int64 = 10 * 86_400

    package init(home: Home) {
        self.home = home
    }

    package struct Kept: Sendable {
        package let authority: InterceptionAuthority
        /// Whether the root is a new one that clients have to be told of.
        package let hasNewRoot: Bool
    }

    /// The root's certificate, or nil where no authority has been made.
    package func root() throws(CountersignError) -> Certificate? {
        try home.certificatesIfThere(in: home.rootCertificate)?.first
    }

    /// Whether `authority` can go on serving `hosts`; `time` is in seconds since 1970.
    package static func isFit(_ authority: InterceptionAuthority, for hosts: [String], at time: Int64) -> Bool {
        authority.serves(hosts, at: time) && authority.notAfter - time > renewal
    }

    /// The hosts that an authority for the list signs for.
    package static func hosts(of sites: SiteList) -> [String] {
        sites.interceptedNames.map { $0.includesSubdomains ? "*.\($0.name)" : $0.name }
            + sites.interceptedAddresses.map(\.text)
    }

    /// The authority for exactly `hosts`: as it is, with new issuing certificates, or wholly new where there is none or its
    /// root nears its end. The root's key is read for new issuing certificates only. Blocks for file operations.
    package func authority(for hosts: [String], in vault: OpenVault, at time: Int64) throws -> Kept {
        if let authority = try stored(vault.contents.interception), Self.isFit(authority, for: hosts, at: time) {
            return Kept(authority: authority, hasNewRoot: false)
        }
        let kept = try vault.update { contents in
            // Another process may have been here meanwhile.
            try settle(contents.interception)
            if let authority = try stored(contents.interception), Self.isFit(authority, for: hosts, at: time) {
                return Kept(authority: authority, hasNewRoot: false)
            }
            if let keys = contents.interception, let root = try root(), root.notAfter - time > Self.renewal {
                let made = try InterceptionAuthority.issued(
                    by: root, rootKey: rootKey(keys, of: root), permitting: hosts, at: time)
                // Before the vault: issuing certificates without their key are made again.
                try write(made.issuing)
                try contents.setInterception(.init(rootKey: keys.rootKey, issuingKey: made.issuingKey.pkcs8))
                return Kept(authority: made, hasNewRoot: false)
            }
            return Kept(authority: try make(for: hosts, in: &contents, at: time), hasNewRoot: true)
        }
        if kept.hasNewRoot { try publish(kept.authority, vault) }
        return kept
    }

    /// A wholly new authority for `hosts` in the place of the one there is, if any. Blocks for file operations.
    package func rotate(for hosts: [String], in vault: OpenVault, at time: Int64) throws -> InterceptionAuthority {
        let made = try vault.update { contents in
            try settle(contents.interception)
            return try make(for: hosts, in: &contents, at: time)
        }
        try publish(made, vault)
        return made
    }

    // MARK: A new root

    private var nextRoot: HomeFile { home.file("\(Home.interceptionFolder)/root.pem.next") }

    /// Writes the root's certificate beside the one in force, and its keys into the contents that are about to be written.
    private func make(
        for hosts: [String], in contents: inout VaultContents, at time: Int64
    ) throws -> InterceptionAuthority {
        let (root, key) = try InterceptionAuthority.newRoot(at: time)
        let made = try InterceptionAuthority.issued(by: root, rootKey: key, permitting: hosts, at: time)
        try nextRoot.replace(with: Array(root.pem.utf8))
        try contents.setInterception(.init(rootKey: key.pkcs8, issuingKey: made.issuingKey.pkcs8))
        return made
    }

    /// Puts the certificates where programs look for them. Under the vault's lock, because another process may be making an
    /// authority at the same time.
    private func publish(_ authority: InterceptionAuthority, _ vault: OpenVault) throws {
        try vault.update { contents in
            try settle(contents.interception)
            guard try root() == authority.root else { return }
            try write(authority.issuing)
        }
    }

    /// Makes `root.pem.next` the root if the vault's key is its own, and takes it away if not.
    private func settle(_ keys: InterceptionKeys?) throws {
        guard let bytes = try nextRoot.readIfThere(upTo: Home.fileLimitBytes) else { return }
        if let keys, let next = try? Certificate.readPEM(bytes).first, try PrivateKey(pkcs8: keys.rootKey).matches(next)
        {
            try home.rootCertificate.replace(with: bytes)
        }
        try nextRoot.remove()
    }

    // MARK: What there is

    /// The largest file of issuing certificates that is read: those of a million names.
    private static let issuingLimitBytes = 64 << 20

    /// All in one file, so that it is those of one key whoever is stopped.
    private func write(_ issuing: [Certificate]) throws {
        try home.issuingCertificate.replace(with: issuing.flatMap { Array($0.pem.utf8) })
    }

    /// The authority that the files and the vault's keys make, or nil where they make none.
    private func stored(_ keys: InterceptionKeys?) throws -> InterceptionAuthority? {
        // Whatever is wrong with issuing certificates, new ones mend it.
        guard let keys, let root = try root(),
            let issuing = try? home.certificatesIfThere(in: home.issuingCertificate, upTo: Self.issuingLimitBytes)
        else { return nil }
        return try? InterceptionAuthority(
            root: root, issuing: issuing, issuingKey: PrivateKey(pkcs8: keys.issuingKey))
    }

    private func rootKey(_ keys: InterceptionKeys, of root: Certificate) throws -> PrivateKey {
        let key = try PrivateKey(pkcs8: keys.rootKey)
        guard key.matches(root) else {
            throw CountersignError(
                .configuration, "\(home.rootCertificate.name) is not the certificate of the vault's interception CA",
                hint: "restore it, or move the file away to have a new interception CA made")
        }
        return key
    }
}
