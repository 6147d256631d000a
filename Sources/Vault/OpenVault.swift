// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Synchronization

/// An opened vault. Any thread may use it. Writes block for a few operations of the storage, and for up to ten seconds
/// while another process is writing.
package final class OpenVault: Sendable {
    private let vault: SealedVault
    private let state: Mutex<VaultSnapshot>

    /// The number of times that a write is repeated after a lost compare-and-swap. Under the lock, even one is rare.
    private static let maximumConflicts = 5

    init(vault: SealedVault, state: VaultSnapshot) {
        self.vault = vault
        self.state = Mutex(state)
    }

    private var storage: any VaultStorage { vault.storage }

    /// As last read or written by this process.
    package var contents: VaultContents { state.withLock { $0.contents } }

    /// The kind of key that opens the vault.
    package var key: VaultKey { state.withLock { $0.header.derivation.key } }

    /// The key of the tags by which the breaker identifies a user name and password. It is as well protected as the
    /// passwords, and does not change when the vault is rekeyed.
    package var tagKey: Secret { state.withLock { $0.tagKey } }

    /// Reads the vault again and returns whether its contents are different. Throws `rolledBack` if the stored vault is
    /// older than the contents known here, and `passphraseNeeded` if another process has changed the passphrase.
    @discardableResult
    package func reload() throws(VaultError) -> Bool {
        let known = state.withLock { $0 }
        return try reread(after: known).snapshot.contents != known.contents
    }

    /// Applies `change` to the newest contents and stores the result; the version before becomes the backup. Stores
    /// nothing if `change` throws, which is rethrown, or changes nothing. Calls `change` again with newer contents if a
    /// writer without the lock was faster. If a ``VaultError`` is thrown, the stored vault is the old one, unless the
    /// very last step failed.
    ///
    /// `keepsBackup`: without it, the backup stays unchanged, for changes that are not worth one. `patience` is how
    /// long to wait while another process is writing; nil for the storage's default.
    @discardableResult
    package func update<Result>(
        keepsBackup: Bool = true, patience: Duration? = nil, _ change: (inout VaultContents) throws -> Result
    ) throws -> Result {
        var conflicts = 0
        while true {
            let lock = try storage.lockForWriting(patience: patience)
            defer { lock.release() }
            let (current, stored) = try reread(after: state.withLock { $0 })
            var contents = current.contents
            let result = try change(&contents)
            guard contents != current.contents else { return result }
            try finishRekey(current.header)
            if keepsBackup { try storage.replace(.backup, with: stored.bytes) }
            do throws(VaultError) {
                try vault.write(
                    contents, header: current.header, dataKey: current.dataKey, if: .unchanged(since: stored.version))
            } catch {
                try Self.count(error, in: &conflicts)
                continue
            }
            adopt(VaultSnapshot(header: current.header, dataKey: current.dataKey, contents: contents))
            return result
        }
    }

    /// Replaces the key that opens the vault, and the data key under it. Removes the backup, which the old key opens,
    /// and the stored key if a passphrase replaces it.
    package func rekey(to key: NewVaultKey) throws(VaultError) {
        let wrapping = try vault.passphraseKey(for: key)
        let lock = try storage.lockForWriting()
        defer { lock.release() }
        var conflicts = 0
        while true {
            let (current, stored) = try reread(after: state.withLock { $0 })
            var contents = current.contents
            contents.advance()
            contents.tagKey = current.tagKey
            let dataKey = Randomness.secret(AESGCM.keyBytes)
            let header: VaultHeader
            if let wrapping {
                header = try vault.wrap(dataKey, under: wrapping.key, wrapping.derivation)
            } else {
                // The old key stays beside the new one until the vault is written: a crash in between leaves a vault
                // that opens.
                let new = Randomness.secret(KeyFileText.keyBytes)
                let old = current.header.derivation.key == .file ? [try vault.fittingKey(of: current.header).key] : []
                try vault.writeKeys([new] + old)
                header = try vault.wrap(dataKey, under: new, .none)
            }
            do throws(VaultError) {
                try vault.write(contents, header: header, dataKey: dataKey, if: .unchanged(since: stored.version))
            } catch {
                try Self.count(error, in: &conflicts)
                continue
            }
            adopt(VaultSnapshot(header: header, dataKey: dataKey, contents: contents))
            try finishRekey(header)
            try storage.remove(.backup)
            return
        }
    }

    /// Throws `error` unless it is a lost compare-and-swap that may be tried again.
    private static func count(_ error: VaultError, in conflicts: inout Int) throws(VaultError) {
        conflicts += 1
        guard error.code == .changed, conflicts <= maximumConflicts else { throw error }
    }

    /// Removes every stored key but the one that opens the vault: a process that was killed while rekeying leaves the
    /// old one.
    private func finishRekey(_ header: VaultHeader) throws(VaultError) {
        switch header.derivation.key {
        case .passphrase:
            try storage.remove(.key)
        case .file:
            if let keys = try vault.storedKeys(), keys.count > 1 {
                try vault.writeKeys([try vault.fittingKey(of: header).key])
            }
        }
    }

    /// Reads the vault and remembers it.
    private func reread(
        after known: VaultSnapshot
    ) throws(VaultError) -> (snapshot: VaultSnapshot, stored: StoredVaultItem) {
        let (snapshot, stored) = try vault.snapshot(known: known) { () throws(VaultError) in
            throw VaultError(
                .passphraseNeeded, "another process has changed the vault's passphrase",
                hint: "`countersign vault unlock` gives a running server the new passphrase")
        }
        let (read, newest) = (snapshot.contents.generation, known.contents.generation)
        guard read >= newest else {
            throw VaultError(
                .rolledBack, "\(vault.place) was replaced by an older version: generation \(read), not \(newest)",
                hint: "if you restored it on purpose, restart this process")
        }
        let contents = snapshot.contents.sharingSecrets(with: known.contents)
        let shared = VaultSnapshot(header: snapshot.header, dataKey: snapshot.dataKey, contents: contents)
        adopt(shared)
        return (shared, stored)
    }

    /// Remembers `snapshot`, unless another thread has meanwhile read or written a newer one.
    private func adopt(_ snapshot: VaultSnapshot) {
        state.withLock { known in
            guard snapshot.contents.generation >= known.contents.generation else { return }
            known = snapshot
        }
    }
}

// MARK: Opening and creating

extension SealedVault {
    /// Opens the vault. `passphrase` is called once, and only if the vault needs one; its result goes into scrypt
    /// unchanged, which then takes about a second. `again` is called after a wrong passphrase. Blocks: call it off the
    /// event loops.
    package func open(
        again: PassphraseRetry? = nil, passphrase: () throws -> Secret
    ) throws(VaultError) -> OpenVault {
        OpenVault(vault: self, state: try snapshot(again: again, passphrase: passphrase).snapshot)
    }

    /// Opens the vault, or creates an empty one with a new key if it does not exist.
    package func openOrCreate(
        again: PassphraseRetry? = nil, passphrase: () throws -> Secret
    ) throws(VaultError) -> OpenVault {
        if try !exists() {
            do {
                return try create(openedBy: .file)
            } catch  where error.code == .exists {}
        }
        return try open(again: again, passphrase: passphrase)
    }

    /// Creates an empty vault. Throws `exists` if there is a vault, and `missing` if there is only a backup of one.
    package func create(openedBy key: NewVaultKey) throws(VaultError) -> OpenVault {
        try storage.prepare()
        let wrapping = try passphraseKey(for: key)
        let lock = try storage.lockForWriting()
        defer { lock.release() }
        guard try !exists() else { throw alreadyExists }
        try checkNotLost()
        let header: VaultHeader
        let dataKey = Randomness.secret(AESGCM.keyBytes)
        if let wrapping {
            header = try wrap(dataKey, under: wrapping.key, wrapping.derivation)
        } else {
            // Left by a process that was killed between writing the key and the vault: used again.
            let kept = try storedKeys()?.first
            let key = kept ?? Randomness.secret(KeyFileText.keyBytes)
            if kept == nil { try writeKeys([key]) }
            header = try wrap(dataKey, under: key, .none)
        }
        let contents = VaultContents()
        do throws(VaultError) {
            try write(contents, header: header, dataKey: dataKey, if: .absent)
        } catch {
            throw error.code == .changed ? alreadyExists : error
        }
        return OpenVault(vault: self, state: VaultSnapshot(header: header, dataKey: dataKey, contents: contents))
    }

    private var alreadyExists: VaultError { VaultError(.exists, "there is already a vault at \(place)") }
}
