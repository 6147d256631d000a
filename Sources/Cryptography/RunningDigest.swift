// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// A digest of bytes that arrive in pieces, or one digest after another.
package struct RunningDigest: ~Copyable, Sendable {
    /// Unsafe because of the pointer: only the owner of the value uses it.
    private nonisolated(unsafe) let context: OpaquePointer
    private let digest: Digest

    package init(_ digest: Digest) {
        guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex(context, digest.evp, nil) == 1 else {
            fatalError("OpenSSL does not have \(digest), which is part of its default provider")
        }
        self.context = context
        self.digest = digest
    }

    deinit { EVP_MD_CTX_free(context) }

    package func update(_ bytes: UnsafeRawBufferPointer) {
        let done = EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
        precondition(done == 1, "a digest in memory cannot fail")
    }

    package func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update($0) } }

    /// Writes the digest of all bytes since the last call to `output`, which has room for exactly its lower-case
    /// hexadecimal digits. Later bytes belong to the next digest.
    package mutating func finish(digits output: UnsafeMutableRawBufferPointer) {
        precondition(output.count == 2 * digest.lengthBytes, "room for two digits for each byte")
        var length: UInt32 = 0
        let done = EVP_DigestFinal_ex(context, output.baseAddress, &length)
        precondition(done == 1, "a digest in memory cannot fail")
        Hex.expand(output)
        // Keeps OpenSSL's allocation, which costs more than the digest of a short text.
        precondition(EVP_DigestInit_ex(context, nil, nil) == 1, "a digest in memory cannot fail")
    }
}
