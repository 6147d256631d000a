// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Synchronization

/// A vault as it was read: its contents, and what is needed to read and write it again.
struct VaultSnapshot: Sendable {
    let header: VaultHeader
    let dataKey: Secret
    let contents: VaultContents
    /// The bytes of the file, where it was read.
    var file: [UInt8]?
}

/// An opened vault. Any thread may use it; whatever writes blocks for a few file operations, and up to ten seconds while
/// another process is writing.
package final class OpenVault: Sendable {
    private let file: VaultFile
    private let state: Mutex<VaultSnapshot>

    init(file: VaultFile, state: VaultSnapshot) {
        self.file = file
        self.state = Mutex(VaultSnapshot(header: state.header, dataKey: state.dataKey, contents: state.contents))
    }

    /// As last read or written by this process.
    package var contents: VaultContents { state.withLock { $0.contents } }

    /// What opens the vault.
    package var key: VaultKey { state.withLock { $0.header.derivation.key } }

    /// Reads the file again; whether its contents were others. Throws `rolledBack` for an older vault than the one that
    /// is known, and `passphraseNeeded` when another process has changed the passphrase.
    @discardableResult
    package func reload() throws(VaultError) -> Bool {
        let known = state.withLock { $0 }
        return try reread(after: known).contents != known.contents
    }

    /// Applies `change` to the newest contents and writes them, with the version before as `vault.bak`. Nothing is
    /// written when `change` throws, which is passed on, or changes nothing. Throws ``VaultError`` besides; the vault is
    /// then the old one, unless the very last step failed (`io` of the folder), which may leave the new one.
    @discardableResult
    package func update<Result>(_ change: (inout VaultContents) throws -> Result) throws -> Result {
        let lock = try file.folder.lockForWriting()
        defer { lock.release() }
        let current = try reread(after: state.withLock { $0 })
        var contents = current.contents
        let result = try change(&contents)
        guard contents != current.contents else { return result }
        try finishRekey(current.header)
        if let bytes = current.file { try file.folder.replace(VaultFolder.backup, with: bytes) }
        try file.write(contents, header: current.header, dataKey: current.dataKey)
        adopt(VaultSnapshot(header: current.header, dataKey: current.dataKey, contents: contents))
        return result
    }

    /// Makes the vault one that `key` opens: a new data key, contents as they are. What opened it before opens nothing
    /// any more, for which the backup is removed, and `vault.key` where a passphrase takes its place.
    package func rekey(to key: NewVaultKey) throws(VaultError) {
        let wrapping = try file.passphraseKey(for: key)
        let lock = try file.folder.lockForWriting()
        defer { lock.release() }
        let current = try reread(after: state.withLock { $0 })
        var contents = current.contents
        contents.advance()
        let dataKey = Randomness.secret(AESGCM.keyBytes)
        let header: VaultHeader
        if let wrapping {
            header = try file.wrap(dataKey, under: wrapping.key, wrapping.derivation)
            try file.write(contents, header: header, dataKey: dataKey)
        } else {
            let new = Randomness.secret(KeyFileText.keyBytes)
            let old = current.header.derivation.key == .file ? [try file.fittingKey(of: current.header).key] : []
            try file.writeKeyFile([new] + old)
            header = try file.wrap(dataKey, under: new, .none)
            try file.write(contents, header: header, dataKey: dataKey)
        }
        adopt(VaultSnapshot(header: header, dataKey: dataKey, contents: contents))
        try finishRekey(header)
        try file.folder.remove(VaultFolder.backup)
    }

    /// Leaves no key behind that opened an earlier vault, also when the rekeying process was stopped before it got here.
    private func finishRekey(_ header: VaultHeader) throws(VaultError) {
        try file.folder.removeUnfinished(VaultFolder.key)
        switch header.derivation.key {
        case .passphrase:
            try file.folder.remove(VaultFolder.key)
        case .file:
            if let keys = try file.keyFile(), keys.count > 1 {
                try file.writeKeyFile([try file.fittingKey(of: header).key])
            }
        }
    }

    /// The vault as it is now, which becomes what is known.
    private func reread(after known: VaultSnapshot) throws(VaultError) -> VaultSnapshot {
        let snapshot = try file.snapshot(known: known) { () throws(VaultError) in
            throw VaultError(
                .passphraseNeeded, "another process has changed what opens the vault", hint: "open the vault again")
        }
        let (read, newest) = (snapshot.contents.generation, known.contents.generation)
        guard read >= newest else {
            throw VaultError(
                .rolledBack, "\(file.path.debugDescription) is older than what was read before: \(read), not \(newest)",
                hint: "if you restored it on purpose, start this process again")
        }
        adopt(snapshot)
        return snapshot
    }

    /// Makes `snapshot` what is known, unless another thread has meanwhile read or written a newer one.
    private func adopt(_ snapshot: VaultSnapshot) {
        state.withLock { known in
            guard snapshot.contents.generation >= known.contents.generation else { return }
            known = VaultSnapshot(header: snapshot.header, dataKey: snapshot.dataKey, contents: snapshot.contents)
        }
    }
}
