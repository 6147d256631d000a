// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// Bytes that must not leak: a password, a private key, a key-encryption key.
///
/// Held in OpenSSL's secure heap where the process has set one up (`OPENSSL_secure_malloc`), wiped on release, compared
/// in constant time. Its description says nothing, it has no `Codable`, and nothing copies it but ``withBytes(_:)``.
///
/// Unchecked because of the pointer: the memory is written by an initialiser only, before any other thread can see it.
package final class Secret: @unchecked Sendable {
    private let memory: UnsafeMutableRawPointer
    /// The number of bytes.
    package let count: Int

    /// Room for `count` bytes, which `fill` writes.
    package init(count: Int, fill: (UnsafeMutableRawBufferPointer) -> Void) {
        // The secure heap has a fixed size; what no longer fits is held in ordinary memory, and wiped all the same.
        guard
            let memory = CRYPTO_secure_zalloc(Swift.max(count, 1), #file, #line)
                ?? CRYPTO_zalloc(Swift.max(count, 1), #file, #line)
        else {
            // A secret is short, whoever it comes from: there is no memory left for anything.
            fatalError("out of memory for a secret of \(count) bytes")
        }
        self.memory = memory
        self.count = count
        fill(UnsafeMutableRawBufferPointer(start: memory, count: count))
    }

    /// A copy of `bytes`.
    package convenience init(_ bytes: some Collection<UInt8>) {
        self.init(count: bytes.count) { $0.copyBytes(from: bytes) }
    }

    /// The UTF-8 bytes of `text`.
    package convenience init(utf8 text: some StringProtocol) {
        self.init(Array(text.utf8))
    }

    deinit {
        CRYPTO_secure_clear_free(memory, Swift.max(count, 1), #file, #line)
    }

    /// The bytes, for as long as `body` runs.
    package func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(start: memory, count: count))
    }

    /// The bytes read as UTF-8, or nil if they are not UTF-8. The string is an ordinary one: keep it short-lived.
    package var utf8Text: String? {
        withBytes { String(validating: $0, as: UTF8.self) }
    }
}

extension Secret: Equatable {
    /// In a time that depends on the lengths only.
    package static func == (left: Secret, right: Secret) -> Bool {
        left.count == right.count && CRYPTO_memcmp(left.memory, right.memory, left.count) == 0
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(secret)" }
    package var debugDescription: String { "(secret)" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension [UInt8] {
    /// Overwrites bytes that were a secret.
    package mutating func wipe() {
        withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) }
    }
}
