// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Reads a client identity out of a file: PKCS#12 (RFC 7292) in DER, or PEM with a plain or encrypted private key; or
/// out of two, of which one has the certificates and the other the key, in PEM or DER. Which of them it is, the content
/// says.
package enum IdentityFile {
    /// The largest file that is read.
    package static let maximumBytes = 1 << 20

    /// The chain, leaf first and as far as the file has it, and the leaf's key. An expired certificate is no error
    /// here.
    ///
    /// `passwordNeeded` when the file is encrypted and `password` is nil; `wrongPassword` when it does not open the
    /// file; `noKey`, `noCertificate` and `keyMismatch` when the file is not a whole identity; `unsupported` for
    /// encryption that OpenSSL has not; `malformed` for everything else.
    package static func read(
        _ bytes: [UInt8], password: Secret?
    ) throws(CertificateError) -> (chain: [Certificate], key: PrivateKey) {
        let found: IdentityContents
        switch try form(of: bytes) {
        case .pem: found = try PEMFile.read(bytes, password: password)
        case .der:
            guard (try? Certificate(der: bytes)) == nil else {
                throw CertificateError(.noKey, "a certificate alone, without its private key")
            }
            found = try PKCS12File.read(bytes, password: password)
        }
        guard !found.certificates.isEmpty else { throw CertificateError(.noCertificate, "no certificate in the file") }
        return (try chain(of: found.key, among: found.certificates), found.key)
    }

    /// The certificates of a file that has no private key: PEM, one certificate in DER, or PKCS#7 in DER (RFC 5652 §5).
    /// Errors as in ``read(_:password:)``; `malformed` also for a file that has a key.
    package static func readCertificates(_ bytes: [UInt8]) throws(CertificateError) -> [Certificate] {
        switch try form(of: bytes) {
        case .pem:
            guard !PEMFile.hasKey(bytes) else {
                throw CertificateError(
                    .malformed, "a private key beside the certificates, where another file has the key")
            }
            return try PEMFile.certificates(bytes)
        case .der:
            if let certificate = try? Certificate(der: bytes) { return [certificate] }
            do throws(CertificateError) {
                return try PKCS7Message.certificates(inPKCS7: bytes)
            } catch {
                guard error.code == .malformed else { throw error }
                throw CertificateError(.malformed, "neither a certificate nor PKCS#7")
            }
        }
    }

    /// The one private key of a file, PEM or DER, plain or encrypted. Certificates beside it are passed over. Errors as
    /// in ``read(_:password:)``.
    package static func readKey(_ bytes: [UInt8], password: Secret?) throws(CertificateError) -> PrivateKey {
        switch try form(of: bytes) {
        case .pem: try PEMFile.key(bytes, password: password)
        case .der: try DERKeyFile.read(bytes, password: password)
        }
    }

    /// `key`'s certificate among `certificates`, its issuer, and so on: `keyMismatch` when none is the key's.
    package static func chain(
        of key: PrivateKey, among certificates: [Certificate]
    ) throws(CertificateError) -> [Certificate] {
        guard let leaf = certificates.first(where: key.matches) else {
            throw CertificateError(.keyMismatch, "the private key belongs to none of the certificates")
        }
        return chain(from: leaf, among: certificates)
    }

    private enum Form {
        case pem
        case der
    }

    private static func form(of bytes: [UInt8]) throws(CertificateError) -> Form {
        guard bytes.count <= maximumBytes else {
            throw CertificateError(.malformed, "\(bytes.count) bytes are too many for an identity file")
        }
        guard !bytes.isEmpty else { throw CertificateError(.malformed, "the file is empty") }
        if bytes.first == 0x30 { return .der }
        guard PEMFile.isPEM(bytes) else { throw CertificateError(.malformed, "neither PEM nor DER") }
        return .pem
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
