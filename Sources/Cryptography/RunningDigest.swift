// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// A digest of bytes that arrive in pieces.
package struct RunningDigest: ~Copyable {
    private let context: OpaquePointer
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

    /// The digest of all bytes so far.
    package consuming func finish() -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: digest.lengthBytes) { output, count in
            var length: UInt32 = 0
            let done = EVP_DigestFinal_ex(context, output.baseAddress, &length)
            precondition(done == 1, "a digest in memory cannot fail")
            count = Int(length)
        }
    }
}
