// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates

/// The contents of `Certs/anchors`: trust anchors in addition to the system's, and certificate revocation lists.
package struct AnchorFiles: Sendable {
    /// Without duplicates.
    package private(set) var certificates: [Certificate] = []
    package private(set) var revocationLists: [RevocationList] = []
    /// The anchors that are weak, as sentences for a warning.
    package private(set) var weaknesses: [String] = []
    /// The contents of the files with revocation lists, for comparison.
    private var revoking: [[UInt8]] = []

    package init() {}

    /// Adds the certificates and revocation lists of the PEM file `name`. Throws if the file is truncated or contains
    /// neither.
    package mutating func add(_ bytes: [UInt8], from name: String) throws(CertificateError) {
        let boundaries = bytes.split { $0 == 0x0A || $0 == 0x0D }.filter { $0.starts(with: "-----".utf8) }
        guard boundaries.count.isMultiple(of: 2) else {
            throw CertificateError(.malformed, "a block of the PEM text is truncated")
        }
        let label = Array("-----BEGIN X509 CRL-----".utf8)
        let hasLists = boundaries.contains { $0.starts(with: label) }
        var found: [Certificate] = []
        do throws(CertificateError) {
            found = try Certificate.readPEM(bytes)
        } catch {
            guard error.code == .noCertificate else { throw error }
            guard hasLists else {
                throw CertificateError(.noCertificate, "no certificate and no revocation list in the PEM text")
            }
        }
        if hasLists {
            revocationLists += try RevocationList.read(bytes)
            revoking.append(bytes)
        }
        for certificate in found where !certificates.contains(certificate) {
            certificates.append(certificate)
            let reasons = certificate.weaknessesAsAnchor
            guard !reasons.isEmpty else { continue }
            weaknesses.append(
                "trust anchor \"\(certificate.subject)\" in \(name) is weak: \(reasons.joined(separator: ", "))")
        }
    }
}

extension AnchorFiles: Equatable {
    package static func == (left: Self, right: Self) -> Bool {
        left.certificates == right.certificates && left.revoking == right.revoking
    }
}
