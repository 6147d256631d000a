// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc
import Synchronization

@testable import CountersignVault

/// A vault in memory, stored as a database would store it: each item is a row with a version, which every write
/// increments.
final class MemoryStorage: VaultStorage {
    private struct Row {
        var bytes: [UInt8]
        let version: UInt64
    }

    private struct State {
        var rows: [VaultItem: Row] = [:]
        var writes: UInt64 = 0
        var isLocked = false
    }

    private let state = Mutex(State())
    /// How long a writer waits for the lock.
    private let patience: Duration

    init(patience: Duration = .seconds(120)) {
        self.patience = patience
    }

    func location(of item: VaultItem) -> String { "row \(item)" }

    var restoreCommand: String { "update vaults set vault = backup" }

    func prepare() throws(VaultError) {}

    func version(of item: VaultItem) throws(VaultError) -> VaultItemVersion? {
        state.withLock { Self.version($0.rows[item]) }
    }

    func read(_ item: VaultItem, upTo limitBytes: Int) throws(VaultError) -> StoredVaultItem? {
        guard let row = state.withLock({ $0.rows[item] }) else { return nil }
        guard row.bytes.count <= limitBytes else { throw VaultError(.tooLarge, "\(location(of: item)) is too large") }
        return StoredVaultItem(bytes: row.bytes, version: VaultItemVersion("\(row.version)"))
    }

    func replace(
        _ item: VaultItem, with bytes: UnsafeRawBufferPointer, if condition: VaultWriteCondition
    ) throws(VaultError) {
        let row = Array(bytes)
        let isWritten = state.withLock { state in
            guard condition.holds(for: Self.version(state.rows[item])) else { return false }
            state.writes += 1
            state.rows[item] = Row(bytes: row, version: state.writes)
            return true
        }
        guard isWritten else { throw VaultError(.changed, "\(location(of: item)) was changed by somebody else") }
    }

    func remove(_ item: VaultItem) throws(VaultError) {
        state.withLock { $0.rows[item] = nil }
    }

    func lockForWriting() throws(VaultError) -> VaultLock {
        let deadline = ContinuousClock.now + patience
        while !state.withLock({ state in
            defer { state.isLocked = true }
            return !state.isLocked
        }) {
            guard ContinuousClock.now < deadline else { throw VaultError(.locked, "another writer holds the lock") }
            usleep(UInt32.random(in: 100...1_000))
        }
        return VaultLock { self.state.withLock { $0.isLocked = false } }
    }

    private static func version(_ row: Row?) -> VaultItemVersion? {
        row.map { VaultItemVersion("\($0.version)") }
    }
}

/// A storage without its lock, for a writer whose lease has expired. Calls `before` before each write of the vault.
struct UnlockedStorage: VaultStorage {
    let base: any VaultStorage
    var before: @Sendable () throws -> Void = {}

    func location(of item: VaultItem) -> String { base.location(of: item) }

    var restoreCommand: String { base.restoreCommand }

    func prepare() throws(VaultError) { try base.prepare() }

    func version(of item: VaultItem) throws(VaultError) -> VaultItemVersion? { try base.version(of: item) }

    func read(_ item: VaultItem, upTo limitBytes: Int) throws(VaultError) -> StoredVaultItem? {
        try base.read(item, upTo: limitBytes)
    }

    func replace(
        _ item: VaultItem, with bytes: UnsafeRawBufferPointer, if condition: VaultWriteCondition
    ) throws(VaultError) {
        if item == .vault {
            do { try before() } catch { throw error as? VaultError ?? VaultError(.missing, "\(error)") }
        }
        try base.replace(item, with: bytes, if: condition)
    }

    func remove(_ item: VaultItem) throws(VaultError) { try base.remove(item) }

    func lockForWriting() throws(VaultError) -> VaultLock { VaultLock {} }
}
