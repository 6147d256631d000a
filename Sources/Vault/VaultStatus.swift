// SPDX-License-Identifier: Apache-2.0

/// Which vault file it is: another one after every write.
package struct VaultFingerprint: Equatable, Sendable {
    /// When it was written, since 1970, with the nanoseconds beside it.
    package let seconds: Int
    package let nanoseconds: Int
    package let inode: UInt64
    package let sizeBytes: Int
    /// The permission bits.
    package let mode: UInt32
}

/// What can be said of a vault without opening it.
package struct VaultStatus: Equatable, Sendable {
    package let path: String
    /// What opens it.
    package let key: VaultKey
    package let sizeBytes: Int
    /// The permission bits.
    package let mode: UInt32
    /// `vault.key`, whether it is there or not.
    package let keyFilePath: String
    package let hasKeyFile: Bool
    /// Whether the version before the last write is kept.
    package let hasBackup: Bool
}
