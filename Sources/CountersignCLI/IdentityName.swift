// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import Countersign
import CountersignSitePolicy
import CountersignVault

/// What an identity may be called: a word of the list, a record of the vault and a file name at once.
enum IdentityName {
    static func isGood(_ name: String) -> Bool { SiteRule.isStoredName(name) && VaultLimits.isName(name) }

    /// The common name with everything else made `-`.
    static func from(_ certificate: Certificate) throws -> String {
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
                .configuration, "the certificate \(certificate.subject.debugDescription) has no name to call it by",
                hint: "give one with --name")
        }
        return trimmed
    }
}
