// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography

/// The name of a credential that the vault stores for one origin alone: `https_git.corp.example_8443`, followed by a
/// digest of the realm if it is for one realm. Everything after the scheme is a digest if the name would be too long or
/// contain characters that are not allowed in names.
package struct OriginCredentialName: Hashable, Sendable {
    package let text: String

    package init(_ origin: Origin, realm: String? = nil) {
        let scheme = origin.scheme.rawValue
        let suffix = realm.map { "_\(Self.digest($0).prefix(8))" } ?? ""
        let name = "\(scheme)_\(origin.host)_\(origin.port)\(suffix)"
        text = SiteRule.isStoredName(name) ? name : "\(scheme)_\(Self.digest(origin.description))\(suffix)"
    }

    private static func digest(_ text: String) -> String {
        Hex.encode(Digest.sha256.hash(Array(text.utf8)).prefix(16))
    }

    /// Whether a credential's name has this form.
    package static func isOne(_ name: String) -> Bool {
        guard let scheme = name.split(separator: "_", maxSplits: 1, omittingEmptySubsequences: false).first else {
            return false
        }
        return name.utf8.count > scheme.utf8.count && Origin.Scheme(rawValue: String(scheme)) != nil
    }
}
