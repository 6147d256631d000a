// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCryptography

/// A private key in DER: PKCS#8, encrypted or not (RFC 5958 §2, §3), or the specific formats for RSA (RFC 8017 §A.1.2)
/// and elliptic curves (RFC 5915 §3).
enum DERKeyFile {
    static func read(_ bytes: [UInt8], password: Secret?) throws(CertificateError) -> PrivateKey {
        guard let parts = try? DERItem.single(bytes, tag: DERItem.sequence).items(), parts.count >= 2 else {
            throw CertificateError(.malformed, "not a private key")
        }
        // EncryptedPrivateKeyInfo begins with its algorithm, all others with a version.
        if parts[0].tag == DERItem.sequence, parts[1].tag == DERItem.octetString {
            return try PEMFile.key(pem(bytes), password: password)
        }
        guard parts[0].tag == DERItem.integer else { throw CertificateError(.noKey, "no private key in the file") }
        ERR_clear_error()
        let key = bytes.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            var position = buffer.baseAddress
            return d2i_AutoPrivateKey(nil, &position, buffer.count)
        }
        guard let key else {
            ERR_clear_error()
            // A PFX begins with a version too.
            guard parts[1].tag != DERItem.sequence || parts.count != 3 || parts[0].content != [3] else {
                throw CertificateError(.malformed, "expected a private key, not a PKCS#12 file")
            }
            throw CertificateError(.malformed, "not a private key")
        }
        return try PrivateKey(adopting: key)
    }

    /// Whether it is a private key, encrypted or not.
    static func isKey(_ bytes: [UInt8]) -> Bool {
        do throws(CertificateError) {
            _ = try read(bytes, password: nil)
            return true
        } catch {
            return error.code == .passwordNeeded
        }
    }

    private static func pem(_ encrypted: [UInt8]) -> [UInt8] {
        var text = "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
        var rest = Base64.encode(encrypted)[...]
        while !rest.isEmpty {
            text += rest.prefix(64) + "\n"
            rest = rest.dropFirst(64)
        }
        return Array((text + "-----END ENCRYPTED PRIVATE KEY-----\n").utf8)
    }
}
