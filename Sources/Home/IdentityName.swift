// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates
import CountersignSitePolicy
import CountersignVault

/// The name of an identity, which is a word in the allowed-sites list, a key in the vault and a file name.
package enum IdentityName {
    package static func isGood(_ name: String) -> Bool { SiteRule.isStoredName(name) && VaultLimits.isName(name) }

    /// The certificate's common name, with every run of characters other than letters, digits, `.` and `_` as `-`.
    package static func from(_ certificate: Certificate) throws -> String {
        let commonName = certificate.subject.split(separator: ",").first { $0.hasPrefix("CN=") }?.dropFirst(3) ?? ""
        var name = ""
        for byte in commonName.utf8.prefix(64) {
            let scalar = Unicode.Scalar(byte)
            let isKept = scalar.isASCII && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil)
            if isKept || scalar == "." || scalar == "_" {
                name.unicodeScalars.append(scalar)
            } else if name.last != "-" {
                name.append("-")
            }
        }
        let trimmed = name.trimming("-._")
        guard isGood(trimmed) else {
            throw CountersignError(
                .configuration,
                "cannot derive a name from the certificate's subject \(certificate.subject.debugDescription)",
                hint: "choose one with --name")
        }
        return trimmed
    }

    /// The error for a `name` that `home` does not have.
    package static func unknown(_ name: String, _ home: Home) throws -> CountersignError {
        .unknown("identity", name, known: try home.identityNames(), addedBy: "certificate import FILE")
    }
}

extension StringProtocol {
    /// The text without the leading and trailing characters that are in `marks`.
    package func trimming(_ marks: String) -> String {
        let rest = drop { marks.contains($0) }
        guard let last = rest.lastIndex(where: { !marks.contains($0) }) else { return "" }
        return String(rest[...last])
    }
}
