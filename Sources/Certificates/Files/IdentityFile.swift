// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Reads a client identity from one file, PKCS#12 (RFC 7292) in DER or PEM with a plain or encrypted private key, or
/// from two files, one with the certificates and one with the key, in PEM or DER. Detects the format from the content.
package enum IdentityFile {
    /// The maximum file size.
    package static let maximumBytes = 1 << 20

    /// The leaf's key and the chain, leaf first. The file may lack a part of the chain. An expired certificate is not
    /// an error.
    ///
    /// Throws `passwordNeeded` if the file is encrypted and `password` is nil; `wrongPassword` if the password does not
    /// open the file; `noKey`, `noCertificate` or `keyMismatch` if the identity is incomplete; `unsupported` if OpenSSL
    /// does not support the encryption; `malformed` for any other error.
    package static func read(
        _ bytes: [UInt8], password: Secret?
    ) throws(CertificateError) -> (chain: [Certificate], key: PrivateKey) {
        let found: IdentityContents
        switch try form(of: bytes) {
        case .pem: found = try PEMFile.read(bytes, password: password)
        case .der:
            guard (try? Certificate(der: bytes)) == nil else {
                throw CertificateError(.noKey, "a certificate without its private key")
            }
            guard !DERKeyFile.isKey(bytes) else { throw .loneKey }
            found = try PKCS12File.read(bytes, password: password)
        }
        guard !found.certificates.isEmpty else { throw CertificateError(.noCertificate, "no certificate in the file") }
        return (try chain(of: found.key, among: found.certificates), found.key)
    }

    /// The certificates of a file without a private key: certificates or PKCS#7 (RFC 5652 §5) in PEM or DER.
    /// Throws like ``read(_:password:)``, and `malformed` if the file contains a key.
    package static func readCertificates(_ bytes: [UInt8]) throws(CertificateError) -> [Certificate] {
        switch try form(of: bytes) {
        case .pem:
            guard !PEMFile.hasKey(bytes) else {
                throw CertificateError(
                    .malformed, "the file contains a private key, but only certificates are expected")
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

    /// The only private key of a file, PEM or DER, plain or encrypted. Ignores certificates. Throws like
    /// ``read(_:password:)``.
    package static func readKey(_ bytes: [UInt8], password: Secret?) throws(CertificateError) -> PrivateKey {
        switch try form(of: bytes) {
        case .pem: try PEMFile.key(bytes, password: password)
        case .der: try DERKeyFile.read(bytes, password: password)
        }
    }

    /// The chain of `key`'s certificate from `certificates`. Throws `keyMismatch` if none has that key.
    package static func chain(
        of key: PrivateKey, among certificates: [Certificate]
    ) throws(CertificateError) -> [Certificate] {
        guard let leaf = certificates.first(where: key.matches) else {
            throw CertificateError(.keyMismatch, "the private key does not belong to any of the certificates")
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

    /// `leaf` followed by its issuers, up to a self-issued certificate or one whose issuer is missing.
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

/// The contents of an identity file.
struct IdentityContents {
    var certificates: [Certificate]
    var key: PrivateKey
}
