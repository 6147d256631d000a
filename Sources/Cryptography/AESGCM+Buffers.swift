// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// The same for content that is too large to copy, and not secret enough for a ``Secret``.
extension AESGCM {
    /// Encrypts `plaintext` into `sealed`, which is ``tagBytes`` longer and ends with the tag. A nonce must never be
    /// used twice under one key.
    package static func seal(
        _ plaintext: UnsafeRawBufferPointer, into sealed: UnsafeMutableRawBufferPointer, key: Secret, nonce: [UInt8]
    ) throws(CryptographyError) {
        precondition(sealed.count == plaintext.count + tagBytes, "the buffer has no room for the tag")
        let context = try CipherContext(key: key, nonce: nonce, encrypt: true)
        try context.update(plaintext, into: sealed)
        try context.finish()
        sealed[plaintext.count...].copyBytes(from: try context.tag())
    }

    /// Decrypts the result of ``seal(_:into:key:nonce:)`` into `plaintext`, which is ``tagBytes`` shorter. Throws
    /// `authenticationFailed` if key, nonce or bytes differ; `plaintext` is not valid then.
    package static func open(
        _ sealed: UnsafeRawBufferPointer, into plaintext: UnsafeMutableRawBufferPointer, key: Secret, nonce: [UInt8]
    ) throws(CryptographyError) {
        precondition(sealed.count == plaintext.count + tagBytes, "the buffer is not as long as the plaintext")
        let context = try CipherContext(key: key, nonce: nonce, encrypt: false)
        try context.update(UnsafeRawBufferPointer(rebasing: sealed[..<plaintext.count]), into: plaintext)
        try context.expect(tag: Array(sealed[plaintext.count...]))
        try context.finish()
    }
}

extension CipherContext {
    /// AES-GCM is a stream cipher: the output is as long as the input.
    fileprivate func update(
        _ bytes: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) throws(CryptographyError) {
        var length: Int32 = 0
        let done = EVP_CipherUpdate(
            context, output.assumingMemoryBound(to: UInt8.self).baseAddress, &length,
            bytes.assumingMemoryBound(to: UInt8.self).baseAddress, Int32(bytes.count))
        guard done == 1, length == bytes.count else { throw CryptographyError(.unavailable, "AES-256-GCM") }
    }
}
