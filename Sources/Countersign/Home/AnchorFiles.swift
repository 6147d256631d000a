// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates

/// What `Certs/anchors` holds: whom to trust beside the system's anchors, and what the authorities have revoked.
package struct AnchorFiles: Sendable {
    /// Each once.
    package private(set) var certificates: [Certificate] = []
    package private(set) var revocationLists: [RevocationList] = []
    /// The files that have revocation lists in them.
    private var revoking: [[UInt8]] = []

    package init() {}

    /// Takes a PEM file's certificates and revocation lists. Throws for a file that is cut off, or has neither.
    mutating func add(_ bytes: [UInt8]) throws(CertificateError) {
        let boundaries = bytes.split { $0 == 0x0A || $0 == 0x0D }.filter { $0.starts(with: "-----".utf8) }
        guard boundaries.count.isMultiple(of: 2) else {
            throw CertificateError(.malformed, "a block of the PEM text is cut off")
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
        for certificate in found where !certificates.contains(certificate) { certificates.append(certificate) }
    }
}

extension AnchorFiles: Equatable {
    package static func == (left: Self, right: Self) -> Bool {
        left.certificates == right.certificates && left.revoking == right.revoking
    }
}
