// SPDX-License-Identifier: Apache-2.0

/// Keeps fetched documents beyond the life of a process. They are verified each time they are read, so the storage need
/// not be trusted, and may forget any of them. Both closures block and are called on any thread.
package struct RevocationStorage: Sendable {
    /// The bytes that were written last under this name; nil without any, or if they cannot be read.
    let read: @Sendable (_ name: String) -> [UInt8]?
    let write: @Sendable (_ name: String, _ bytes: [UInt8]) -> Void

    package init(
        read: @escaping @Sendable (_ name: String) -> [UInt8]?,
        write: @escaping @Sendable (_ name: String, _ bytes: [UInt8]) -> Void
    ) {
        self.read = read
        self.write = write
    }

    package static let none = RevocationStorage(read: { _ in nil }, write: { _, _ in })
}
