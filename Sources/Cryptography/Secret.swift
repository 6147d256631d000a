// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// Bytes that must not leak: a password, a private key, a key that encrypts another key.
///
/// Stored in OpenSSL's secure heap if the process has set one up (`OPENSSL_secure_malloc`), overwritten on release and
/// compared in constant time. The description is redacted, there is no `Codable`, and ``withBytes(_:)`` is the only
/// access to the bytes.
///
/// Unchecked because of the pointer: only the initialiser writes the memory, before any other thread can see it.
package final class Secret: @unchecked Sendable {
    @usableFromInline let memory: UnsafeMutableRawPointer
    /// The number of bytes.
    package let count: Int

    /// Allocates `count` bytes, which `fill` initialises. `isBrief`: they are about to be copied to ordinary memory,
    /// such as the buffer of a request, so the secure heap and its lock are not needed.
    package init(count: Int, isBrief: Bool = false, fill: (UnsafeMutableRawBufferPointer) -> Void) {
        // The secure heap has a fixed size. Once it is full, secrets go to ordinary memory and are still overwritten on
        // release.
        let secure = isBrief ? nil : CRYPTO_secure_zalloc(Swift.max(count, 1), #file, #line)
        guard let memory = secure ?? CRYPTO_zalloc(Swift.max(count, 1), #file, #line) else {
            // Secrets are short, so a failed allocation means that the process is out of memory.
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

    /// A copy of `bytes`, which are overwritten.
    package convenience init(wiping bytes: inout [UInt8]) {
        self.init(bytes)
        bytes.wipe()
    }

    /// The UTF-8 bytes of `text`.
    package convenience init(utf8 text: some StringProtocol) {
        self.init(text.utf8)
    }

    deinit {
        CRYPTO_secure_clear_free(memory, Swift.max(count, 1), #file, #line)
    }

    /// The bytes, for as long as `body` runs.
    @inlinable package func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(start: memory, count: count))
    }

    /// The bytes as a string, or nil if they are not UTF-8. The string is in ordinary memory: keep it short-lived.
    package var utf8Text: String? {
        withBytes { String(validating: $0, as: UTF8.self) }
    }
}

extension Secret: Equatable {
    /// Takes a time that depends on the lengths only.
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

extension String {
    /// Overwrites text that was a secret. The string must not be a copy of one that is still in use.
    package mutating func wipe() {
        withUTF8 { OPENSSL_cleanse(UnsafeMutableRawPointer(mutating: $0.baseAddress), $0.count) }
        self = ""
    }
}
