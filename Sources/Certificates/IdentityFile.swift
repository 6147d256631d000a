// SPDX-License-Identifier: Apache-2.0

import Cryptography

/// Reads a client identity out of a file: PKCS#12 (RFC 7292) in DER, or PEM with a plain or encrypted private key. Which of
/// them it is, the content says.
package enum IdentityFile {
    /// The largest file that is read.
    package static let maximumBytes = 1 << 20

    /// The chain, leaf first and as far as the file has it, and the leaf's key. An expired certificate is no error here.
    ///
    /// `passwordNeeded` when the file is encrypted and `password` is nil; `wrongPassword` when it does not open the file;
    /// `noKey`, `noCertificate` and `keyMismatch` when the file is not a whole identity; `unsupported` for encryption that
    /// OpenSSL has not; `malformed` for everything else.
    package static func read(
        _ bytes: [UInt8], password: Secret?
    ) throws(CertificateError) -> (chain: [Certificate], key: PrivateKey) {
        guard bytes.count <= maximumBytes else {
            throw CertificateError(.malformed, "\(bytes.count) bytes are too many for an identity file")
        }
        let found: IdentityContents
        if bytes.first == 0x30 {
            found = try PKCS12File.read(bytes, password: password)
        } else if PEMFile.isPEM(bytes) {
            found = try PEMFile.read(bytes, password: password)
        } else {
            throw CertificateError(.malformed, "neither PKCS#12 nor PEM")
        }
        guard !found.certificates.isEmpty else { throw CertificateError(.noCertificate, "no certificate in the file") }
        guard let leaf = found.certificates.first(where: found.key.matches) else {
            throw CertificateError(.keyMismatch, "the private key belongs to none of the file's certificates")
        }
        return (chain(from: leaf, among: found.certificates), found.key)
    }

    /// `leaf`, its issuer, and so on, until a certificate that issued itself or whose issuer is not among them.
    private static func chain(from leaf: Certificate, among certificates: [Certificate]) -> [Certificate] {
        var chain = [leaf]
        var current = leaf
        while let issuer = certificates.first(where: { !chain.contains($0) && $0.issued(current) }) {
            chain.append(issuer)
            current = issuer
        }
        return chain
    }
}

/// What an identity file holds.
struct IdentityContents {
    var certificates: [Certificate]
    var key: PrivateKey
}
