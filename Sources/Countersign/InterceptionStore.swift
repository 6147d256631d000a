// SPDX-License-Identifier: Apache-2.0

import Certificates
import SitePolicy
import Vault

/// The interception CA of a home: its keys in the vault, its certificates in `Certs/interception`. Made when it is first needed.
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
        authority.serves(hosts, at: time) && authority.issuing.notAfter - time > renewal
    }

    /// The hosts that an authority for the list signs for.
    package static func hosts(of sites: SiteList) -> [String] {
        sites.interceptedNames.map { $0.includesSubdomains ? "*.\($0.name)" : $0.name }
            + sites.interceptedAddresses.map(\.text)
    }

    /// The authority for exactly `hosts`: as it is, with a new issuing certificate, or wholly new where there is none or its
    /// root nears its end. Blocks for file operations.
    package func authority(for hosts: [String], in vault: OpenVault, at time: Int64) throws -> Kept {
        if case .whole(let authority) = try stored(vault.contents.interception),
            Self.isFit(authority, for: hosts, at: time)
        {
            return Kept(authority: authority, hasNewRoot: false)
        }
        return try vault.update { contents in
            // Another process may have been here meanwhile.
            let stored = try stored(contents.interception)
            let made: InterceptionAuthority
            var hasNewRoot = false
            switch stored {
            case .whole(let authority) where Self.isFit(authority, for: hosts, at: time):
                return Kept(authority: authority, hasNewRoot: false)
            case .whole(let authority) where authority.root.notAfter - time > Self.renewal:
                made = try authority.reissued(permitting: hosts, at: time)
            case .rootOnly(let root, let key) where root.notAfter - time > Self.renewal:
                let (issuing, issuingKey) = try InterceptionAuthority.makeIssuing(
                    root: root, rootKey: key, permitting: hosts, at: time)
                made = try InterceptionAuthority(root: root, rootKey: key, issuing: issuing, issuingKey: issuingKey)
            case .whole, .rootOnly, .none:
                made = try InterceptionAuthority.create(permitting: hosts, at: time)
                hasNewRoot = true
            }
            // The certificates first: without their keys they are made again, and nobody has been shown them.
            try home.rootCertificate.replace(with: Array(made.root.pem.utf8))
            try home.issuingCertificate.replace(with: Array(made.issuing.pem.utf8))
            try contents.setInterception(.init(rootKey: made.rootKey.pkcs8, issuingKey: made.issuingKey.pkcs8))
            return Kept(authority: made, hasNewRoot: hasNewRoot)
        }
    }

    private enum Stored {
        case none
        /// The issuing certificate is missing, or not the keys'.
        case rootOnly(Certificate, PrivateKey)
        case whole(InterceptionAuthority)
    }

    private func stored(_ keys: InterceptionKeys?) throws -> Stored {
        guard let keys, let root = try root() else { return .none }
        let rootKey = try PrivateKey(pkcs8: keys.rootKey)
        guard rootKey.matches(root) else {
            throw CountersignError(
                .configuration, "\(home.rootCertificate.name) is not the certificate of the vault's interception CA",
                hint: "restore it, or move the file away to have a new interception CA made")
        }
        // Whatever is wrong with an issuing certificate, a new one mends it.
        guard let issuing = try? home.certificatesIfThere(in: home.issuingCertificate)?.first,
            let authority = try? InterceptionAuthority(
                root: root, rootKey: rootKey, issuing: issuing, issuingKey: PrivateKey(pkcs8: keys.issuingKey))
        else { return .rootOnly(root, rootKey) }
        return .whole(authority)
    }
}
