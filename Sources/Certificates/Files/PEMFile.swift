// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCryptography

/// An identity file in PEM (RFC 7468): certificates and one private key, in any order.
enum PEMFile {
    static func isPEM(_ bytes: [UInt8]) -> Bool { !labels(in: bytes).isEmpty }

    static func hasKey(_ bytes: [UInt8]) -> Bool { labels(in: bytes).contains { $0.hasSuffix(keyLabel) } }

    static func read(_ bytes: [UInt8], password: Secret?) throws(CertificateError) -> IdentityContents {
        try checkKeyCount(bytes)
        let certificates = try certificates(bytes)
        return IdentityContents(certificates: certificates, key: try readKey(bytes, password: password))
    }

    static func certificates(_ bytes: [UInt8]) throws(CertificateError) -> [Certificate] {
        let labels = labels(in: bytes)
        let hasMessages = labels.contains(where: PKCS7Message.labels.contains)
        guard hasMessages || labels.contains(where: { $0.hasSuffix("CERTIFICATE") }) else {
            guard !labels.contains(where: { $0.hasSuffix(keyLabel) }) else { throw .loneKey }
            throw CertificateError(.noCertificate, "no certificate in the file")
        }
        try checkBoundaries(bytes)
        guard hasMessages else { return try Certificate.readPEM(bytes) }
        let plain = labels.contains { $0.hasSuffix("CERTIFICATE") } ? try Certificate.readPEM(bytes) : []
        return plain + (try PKCS7Message.certificates(inPEM: bytes))
    }

    static func key(_ bytes: [UInt8], password: Secret?) throws(CertificateError) -> PrivateKey {
        try checkKeyCount(bytes)
        try checkBoundaries(bytes)
        return try readKey(bytes, password: password)
    }

    private static let keyLabel = "PRIVATE KEY"

    private static func checkKeyCount(_ bytes: [UInt8]) throws(CertificateError) {
        let keys = labels(in: bytes).count { $0.hasSuffix(keyLabel) }
        guard keys > 0 else { throw CertificateError(.noKey, "no private key in the file") }
        guard keys == 1 else {
            throw CertificateError(.malformed, "\(keys) private keys in the file, expected one")
        }
    }

    private static func checkBoundaries(_ bytes: [UInt8]) throws(CertificateError) {
        guard boundaries(in: bytes).count.isMultiple(of: 2) else {
            throw CertificateError(.malformed, "a block of the PEM text is truncated")
        }
    }

    private static func readKey(_ bytes: [UInt8], password: Secret?) throws(CertificateError) -> PrivateKey {
        let prompt = PasswordPrompt(password)
        if let key = readKey(bytes, prompt: prompt, library: nil) { return try PrivateKey(adopting: key) }
        let reasons = OpenSSLErrors.drain()
        if prompt.wasAsked, password != nil, let legacy = LegacyProviderContext() {
            if let key = readKey(bytes, prompt: prompt, library: legacy.context) {
                // The key belongs to the library context of `legacy`, which is about to be freed.
                defer { EVP_PKEY_free(key) }
                return try PrivateKey.copy(of: key)
            }
            ERR_clear_error()
        }
        guard prompt.wasAsked else {
            throw CertificateError(.malformed, "the private key cannot be read: \(reasons.joined(separator: "; "))")
        }
        guard password != nil else { throw CertificateError(.passwordNeeded, "the private key is encrypted") }
        throw CertificateError(.wrongPassword, "the password does not open the private key, or the file was altered")
    }

    private static func readKey(_ bytes: [UInt8], prompt: PasswordPrompt, library: OpaquePointer?) -> OpaquePointer? {
        ERR_clear_error()
        return bytes.withUnsafeBytes { buffer in
            guard let input = BIO_new_mem_buf(buffer.baseAddress, Int32(buffer.count)) else { return nil }
            defer { BIO_free(input) }
            return withExtendedLifetime(prompt) {
                PEM_read_bio_PrivateKey_ex(
                    input, nil,
                    { buffer, room, _, prompt in
                        guard let prompt else { return -1 }
                        return Unmanaged<PasswordPrompt>.fromOpaque(prompt).takeUnretainedValue().answer(buffer, room)
                    },
                    Unmanaged.passUnretained(prompt).toOpaque(), library, nil)
            }
        }
    }

    /// The labels of the blocks, in their order.
    private static func labels(in bytes: [UInt8]) -> [String] {
        let opening = Array("-----BEGIN ".utf8)
        return boundaries(in: bytes).filter { $0.starts(with: opening) }.map { line in
            String(decoding: line.dropFirst(opening.count).prefix { $0 != 0x2D }, as: UTF8.self)
        }
    }

    /// The first and last lines of blocks.
    private static func boundaries(in bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        bytes.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }).filter { $0.starts(with: Array("-----".utf8)) }
    }
}

/// Supplies the password to OpenSSL's callback, and records whether it was requested.
private final class PasswordPrompt {
    let password: Secret?
    private(set) var wasAsked = false

    init(_ password: Secret?) { self.password = password }

    /// Writes the password into OpenSSL's buffer and returns its length. Returns −1 if there is no password, if it is
    /// too long, or if it contains a zero byte, which OpenSSL would treat as its end.
    func answer(_ buffer: UnsafeMutablePointer<CChar>?, _ room: Int32) -> Int32 {
        wasAsked = true
        guard let password, let buffer, password.count <= Int(room), !password.withBytes({ $0.contains(0) }) else {
            return -1
        }
        password.withBytes { UnsafeMutableRawBufferPointer(start: buffer, count: Int(room)).copyMemory(from: $0) }
        return Int32(password.count)
    }
}
