// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates
import CountersignCryptography
package import CountersignSitePolicy
package import CountersignVault

/// Stores the interception CA of a home: its keys in the vault, its certificates in `Certs/interception`.
///
/// A new root is written to `root.pem.next` first. Storing its keys in the vault makes it the root, atomically. Then it
/// is renamed to `root.pem`. If a process is stopped in between, the next one completes the change.
package struct InterceptionStore: Sendable {
    private let home: Home

    /// How long before its expiry the CA is renewed: 10 days, in seconds.
    package static let renewal: Int64 = 10 * 86_400

    package init(home: Home) {
        self.home = home
    }

    package struct Loaded: Sendable {
        package let authority: InterceptionAuthority
        /// Whether the root is new, so that clients must be configured to trust it.
        package let hasNewRoot: Bool
    }

    /// The root certificate, or nil if no CA has been created.
    package func root() throws(CountersignError) -> Certificate? {
        try home.certificatesIfThere(in: home.rootCertificate)?.first
    }

    /// Whether `authority` can continue to serve `hosts`; `time` is in seconds since 1970.
    package static func isFit(_ authority: InterceptionAuthority, for hosts: [String], at time: Int64) -> Bool {
        authority.serves(hosts, at: time) && authority.notAfter - time > renewal
    }

    /// The hosts for which a CA for this list must issue certificates.
    package static func hosts(of sites: SiteList) -> [String] {
        sites.interceptedNames.map { $0.includesSubdomains ? "*.\($0.name)" : $0.name }
            + sites.interceptedAddresses.map(\.text)
    }

    /// The CA for exactly `hosts`: the stored one, one with new issuing certificates, or a new one if none is stored or
    /// its root is about to expire. Reads the root's key only to issue certificates. Blocks for file operations.
    package func authority(for hosts: [String], in vault: OpenVault, at time: Int64) throws -> Loaded {
        if let authority = try stored(vault.contents.interception), Self.isFit(authority, for: hosts, at: time) {
            return Loaded(authority: authority, hasNewRoot: false)
        }
        let loaded = try vault.update { contents in
            // Another process may have changed it since.
            try settle(contents.interception)
            if let authority = try stored(contents.interception), Self.isFit(authority, for: hosts, at: time) {
                return Loaded(authority: authority, hasNewRoot: false)
            }
            if let keys = contents.interception, let root = try root(), root.notAfter - time > Self.renewal {
                let made = try InterceptionAuthority.issued(
                    by: root, rootKey: rootKey(keys, of: root), permitting: hosts, at: time)
                // Written before the vault: issuing certificates without a matching key are simply issued again.
                try write(made.issuing)
                try contents.setInterception(.init(rootKey: keys.rootKey, issuingKey: made.issuingKey.pkcs8))
                return Loaded(authority: made, hasNewRoot: false)
            }
            return Loaded(authority: try make(for: hosts, in: &contents, at: time), hasNewRoot: true)
        }
        if loaded.hasNewRoot { try publish(loaded.authority, vault) }
        return loaded
    }

    /// Replaces the CA by a new one for `hosts`. Blocks for file operations.
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

    /// Creates a CA, writes its root certificate to `root.pem.next`, and adds its keys to the vault's contents.
    private func make(
        for hosts: [String], in contents: inout VaultContents, at time: Int64
    ) throws -> InterceptionAuthority {
        let (root, key) = try InterceptionAuthority.newRoot(at: time)
        let made = try InterceptionAuthority.issued(by: root, rootKey: key, permitting: hosts, at: time)
        try nextRoot.replace(with: Array(root.pem.utf8))
        try contents.setInterception(.init(rootKey: key.pkcs8, issuingKey: made.issuingKey.pkcs8))
        return made
    }

    /// Moves the certificates to their final files. Holds the vault's lock, because another process may be creating a
    /// CA at the same time.
    private func publish(_ authority: InterceptionAuthority, _ vault: OpenVault) throws {
        try vault.update { contents in
            try settle(contents.interception)
            guard try root() == authority.root else { return }
            try write(authority.issuing)
        }
    }

    /// Renames `root.pem.next` to `root.pem` if it matches the vault's key, and removes it otherwise.
    private func settle(_ keys: InterceptionKeys?) throws {
        guard let bytes = try nextRoot.readIfThere(upTo: Home.fileLimitBytes) else { return }
        if let keys, let next = try? Certificate.readPEM(bytes).first, try PrivateKey(pkcs8: keys.rootKey).matches(next)
        {
            try home.rootCertificate.replace(with: bytes)
        }
        try nextRoot.remove()
    }

    // MARK: Stored certificates

    /// The largest file of issuing certificates that is read, in bytes: enough for a million names.
    private static let issuingLimitBytes = 64 << 20

    /// Writes all of them to one file, so that they always belong to the same key.
    private func write(_ issuing: [Certificate]) throws {
        try home.issuingCertificate.replace(with: issuing.flatMap { Array($0.pem.utf8) })
    }

    /// The CA in the files and the vault, or nil if they are incomplete or do not match.
    private func stored(_ keys: InterceptionKeys?) throws -> InterceptionAuthority? {
        // Faulty issuing certificates are not an error, because new ones can be issued.
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
                hint: "restore it, or move the file away to create a new interception CA")
        }
        return key
    }
}

/// When an interception CA is created, together with a vault for its keys if the home has none.
package enum InterceptionNeed: Equatable, Sendable {
    /// Never: nothing is written into the home, and no site can be intercepted.
    case never
    /// When the list first contains a site to intercept.
    case whenNeeded
    /// Immediately, so that clients can be configured to trust it beforehand.
    case always

    package func isMet(by sites: SiteList) -> Bool {
        switch self {
        case .never: false
        case .whenNeeded: !InterceptionStore.hosts(of: sites).isEmpty
        case .always: true
        }
    }
}
