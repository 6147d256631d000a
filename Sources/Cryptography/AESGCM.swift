// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// AES-256 in Galois/Counter Mode (NIST SP 800-38D): 32-byte key, 12-byte nonce, 16-byte tag.
package enum AESGCM {
    package static let keyBytes = 32
    package static let nonceBytes = 12
    package static let tagBytes = 16

    /// Encrypts `plaintext` and appends the tag. A nonce must never be used twice under one key.
    package static func seal(
        _ plaintext: UnsafeRawBufferPointer, key: Secret, nonce: [UInt8], authenticating header: [UInt8]
    ) throws(CryptographyError) -> [UInt8] {
        let context = try CipherContext(key: key, nonce: nonce, encrypt: true)
        try context.authenticate(header)
        var sealed = try context.update(plaintext)
        try context.finish()
        sealed += try context.tag()
        return sealed
    }

    /// Decrypts the result of `seal`. Throws `authenticationFailed` if key, nonce, header or bytes differ.
    package static func open(
        _ sealed: [UInt8], key: Secret, nonce: [UInt8], authenticating header: [UInt8]
    ) throws(CryptographyError) -> Secret {
        guard sealed.count >= tagBytes else {
            throw CryptographyError(.authenticationFailed, "\(sealed.count) bytes are too few for a tag")
        }
        let context = try CipherContext(key: key, nonce: nonce, encrypt: false)
        try context.authenticate(header)
        var plaintext = try Array(sealed.dropLast(tagBytes)).withUnsafeBufferPointer {
            bytes throws(CryptographyError) in
            try context.update(UnsafeRawBufferPointer(bytes))
        }
        defer { plaintext.wipe() }
        try context.expect(tag: Array(sealed.suffix(tagBytes)))
        do { try context.finish() } catch {
            throw CryptographyError(.authenticationFailed, "the key is wrong, or the bytes were altered")
        }
        return Secret(plaintext)
    }
}

/// Owns one EVP_CIPHER_CTX.
final class CipherContext {
    let context: OpaquePointer

    init(key: Secret, nonce: [UInt8], encrypt: Bool) throws(CryptographyError) {
        guard key.count == AESGCM.keyBytes, nonce.count == AESGCM.nonceBytes else {
            throw CryptographyError(
                .invalidParameter,
                "AES-256-GCM needs a key of 32 bytes and a nonce of 12 bytes, not \(key.count) and \(nonce.count)")
        }
        guard let context = EVP_CIPHER_CTX_new() else {
            throw CryptographyError(.unavailable, "AES-256-GCM")
        }
        self.context = context
        let started = key.withBytes { key in
            EVP_CipherInit_ex(
                context, EVP_aes_256_gcm(), nil, key.assumingMemoryBound(to: UInt8.self).baseAddress, nonce,
                encrypt ? 1 : 0)
        }
        guard started == 1 else { throw CryptographyError(.unavailable, "AES-256-GCM") }
    }

    deinit { EVP_CIPHER_CTX_free(context) }

    func authenticate(_ header: [UInt8]) throws(CryptographyError) {
        var length: Int32 = 0
        guard header.isEmpty || EVP_CipherUpdate(context, nil, &length, header, Int32(header.count)) == 1 else {
            throw CryptographyError(.unavailable, "AES-256-GCM header")
        }
    }

    func update(_ bytes: UnsafeRawBufferPointer) throws(CryptographyError) -> [UInt8] {
        var done: Int32 = 1
        let output = [UInt8](unsafeUninitializedCapacity: bytes.count + 16) { output, count in
            var length: Int32 = 0
            if !bytes.isEmpty {
                done = EVP_CipherUpdate(
                    context, output.baseAddress, &length,
                    bytes.assumingMemoryBound(to: UInt8.self).baseAddress, Int32(bytes.count))
            }
            count = Int(length)
        }
        guard done == 1 else { throw CryptographyError(.unavailable, "AES-256-GCM") }
        return output
    }

    func finish() throws(CryptographyError) {
        var length: Int32 = 0
        var rest = [UInt8](repeating: 0, count: 16)
        guard EVP_CipherFinal_ex(context, &rest, &length) == 1 else {
            throw CryptographyError(.authenticationFailed, "AES-256-GCM")
        }
    }

    func tag() throws(CryptographyError) -> [UInt8] {
        var tag = [UInt8](repeating: 0, count: AESGCM.tagBytes)
        guard EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tag.count), &tag) == 1 else {
            throw CryptographyError(.unavailable, "AES-256-GCM tag")
        }
        return tag
    }

    func expect(tag: [UInt8]) throws(CryptographyError) {
        var tag = tag
        guard EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tag.count), &tag) == 1 else {
            throw CryptographyError(.unavailable, "AES-256-GCM tag")
        }
    }
}
