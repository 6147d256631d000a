// SPDX-License-Identifier: Apache-2.0

// Where a vault is stored.
//
// `SealedVault` and `OpenVault` encrypt, decrypt and change a vault; a `VaultStorage` stores the bytes and knows
// nothing about them. There are three named items: the vault itself, the version before its last change, and the random
// key that opens a vault without a passphrase. The first implementation is `VaultFolder`, which stores the items as
// files of one folder. A database that serves a gateway of many users would be another: a row per item with a version
// column, an advisory lock per vault.
//
// A writer takes the lock, reads the vault and its version, and replaces the vault on condition that the version is
// still the same. The lock saves writers from conflicts. The condition protects the vault from writers that do not hold
// the lock: a lease that expired during a slow write, or a person who restores a backup. `OpenVault` repeats a change
// that lost such a race. Two items have no common condition, so a change of the key needs a lock that holds: with
// conditions alone, two processes that change the key at the same time could leave a vault that neither key opens.

/// Stores the items of one vault. Calls block, for as long as a file system or a database takes: none is made on an
/// event loop. Any thread may call.
///
/// Every implementation has to guarantee:
/// - **Atomic**: `replace` and `remove` happen wholly or not at all, also for a process that is killed halfway and a
///   machine that loses power. A reader sees the old bytes or the new bytes.
/// - **Durable and in order**: when a call returns, its effect survives a crash, and it does so before any later call
///   takes effect. A new key is written this way before the vault that it opens.
/// - **Private**: the items are not readable for others. `read` throws `permissions` if they are. The vault and its
///   backup are encrypted, the key is not. A storage that cannot protect a key throws `permissions` for it; its vaults
///   then need a passphrase.
package protocol VaultStorage: Sendable {
    /// Where an item is, for messages: an absolute path, or a table and row.
    func location(of item: VaultItem) -> String

    /// How a person puts the backup in the vault's place: for files, the `mv` command.
    var restoreCommand: String { get }

    /// Creates the container of the items, such as a folder, if it does not exist.
    func prepare() throws(VaultError)

    /// The stored version of an item; nil if it does not exist. Cheap enough to be polled several times per second.
    func version(of item: VaultItem) throws(VaultError) -> VaultItemVersion?

    /// An item's bytes and version; nil if it does not exist. Throws `tooLarge` for more than `limitBytes`.
    func read(_ item: VaultItem, upTo limitBytes: Int) throws(VaultError) -> StoredVaultItem?

    /// Stores `bytes` as the item if `condition` holds; otherwise throws `changed` and leaves the item untouched. The
    /// caller holds the lock.
    func replace(
        _ item: VaultItem, with bytes: UnsafeRawBufferPointer, if condition: VaultWriteCondition
    ) throws(VaultError)

    /// Removes an item, if there is one. The caller holds the lock.
    func remove(_ item: VaultItem) throws(VaultError)

    /// Keeps out every other writer that asks for the lock, in this process and in others, until it is released. Throws
    /// `locked` if another writer holds it for too long. Cleans up after a writer that was killed.
    func lockForWriting() throws(VaultError) -> VaultLock

    /// The same, waiting for `patience` at most; nil for the default.
    func lockForWriting(patience: Duration?) throws(VaultError) -> VaultLock

    /// Cleans up after a writer that was killed, if there was one. Errors are left to the next writer.
    func removeAbandonedFiles()
}

extension VaultStorage {
    package func removeAbandonedFiles() {}

    /// For a storage whose lock needs no waiting.
    package func lockForWriting(patience: Duration?) throws(VaultError) -> VaultLock { try lockForWriting() }

    func replace(
        _ item: VaultItem, with bytes: [UInt8], if condition: VaultWriteCondition = .always
    ) throws(VaultError) {
        try bytes.withUnsafeBufferPointer { bytes throws(VaultError) in
            try replace(item, with: UnsafeRawBufferPointer(bytes), if: condition)
        }
    }
}

/// A named part of a stored vault.
package enum VaultItem: Equatable, Sendable, CaseIterable {
    /// The encrypted vault.
    case vault
    /// The random key that opens a vault without a passphrase, in the format of ``KeyFileText``.
    case key
    /// The encrypted vault before its last change.
    case backup
}

/// An item's version: a different value after every write. Says nothing about order.
package struct VaultItemVersion: Hashable, Sendable {
    private let token: String

    package init(_ token: String) {
        self.token = token
    }
}

/// The stored form of an item.
package struct StoredVaultItem: Sendable {
    package var bytes: [UInt8]
    package let version: VaultItemVersion

    package init(bytes: [UInt8], version: VaultItemVersion) {
        self.bytes = bytes
        self.version = version
    }
}

/// The condition for a write.
package enum VaultWriteCondition: Equatable, Sendable {
    case always
    /// There is no such item.
    case absent
    /// The item is the one that was read (compare-and-swap).
    case unchanged(since: VaultItemVersion)

    /// Whether it holds for an item of that version, nil for a missing item.
    package func holds(for version: VaultItemVersion?) -> Bool {
        switch self {
        case .always: true
        case .absent: version == nil
        case .unchanged(let expected): version == expected
        }
    }
}

/// The right to write a vault.
package struct VaultLock: Sendable {
    private let unlock: @Sendable () -> Void

    package init(unlock: @escaping @Sendable () -> Void) {
        self.unlock = unlock
    }

    package func release() {
        unlock()
    }
}

/// Detects writes to a vault or its key, by this process or by another: remembers the versions and compares them when
/// asked.
package struct VaultWatch: Sendable {
    private let storage: any VaultStorage
    private var versions: [VaultItemVersion?]

    /// Begins with the versions that are stored now.
    package init(_ storage: any VaultStorage) {
        self.storage = storage
        versions = Self.versions(in: storage)
    }

    /// Whether the vault or its key was written, created or removed since this was last asked. Reports each change
    /// once; several changes in between are one.
    package mutating func takeChange() -> Bool {
        let now = Self.versions(in: storage)
        guard now != versions else { return false }
        versions = now
        return true
    }

    /// An item whose version cannot be determined counts as missing: reading it reports why.
    private static func versions(in storage: any VaultStorage) -> [VaultItemVersion?] {
        [.vault, .key].map { (item: VaultItem) in try? storage.version(of: item) }
    }
}

/// Facts about a vault that has not been opened.
package struct VaultStatus: Equatable, Sendable {
    package let location: String
    /// The kind of key that opens it.
    package let key: VaultKey
    package let sizeBytes: Int
    /// Where its key is stored, whether it exists or not.
    package let keyLocation: String
    package let hasKey: Bool
    /// Whether the version before the last change is stored.
    package let hasBackup: Bool
}
