// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc

/// A vault stored as files of one folder: `vault`, `vault.key`, `vault.bak`, and `vault.lock` for the lock. No other
/// type of this module touches the file system.
///
/// A file is replaced by renaming: the bytes are written to `NAME.new` (created with `O_EXCL`, mode 0600) and synced,
/// the file is renamed, and the folder is synced. A crash leaves the old file or the new one. Symbolic links are
/// refused, because the rename would replace the link and not its target.
package struct VaultFolder: VaultStorage {
    /// A system call that is about to be made. Tests fail or kill the process there.
    enum Step: Equatable, Sendable {
        case read(String)
        case makeFolder
        case create(String)
        case write(String)
        case sync(String)
        case rename(String)
        case syncFolder
        case remove(String)
    }

    private static let lock = "vault.lock"

    let path: String
    /// How long a writer waits for the lock.
    let patience: Duration
    let before: @Sendable (Step) throws(VaultError) -> Void

    /// The vault of the home at `path`, which need not exist.
    package init(home path: String) {
        self.init(path: path)
    }

    init(
        path: String, patience: Duration = .seconds(10),
        before: @escaping @Sendable (Step) throws(VaultError) -> Void = { _ throws(VaultError) in }
    ) {
        self.path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
        self.patience = patience
        self.before = before
    }

    package func location(of item: VaultItem) -> String { path(of: item.fileName) }

    package var restoreCommand: String { "mv \(location(of: .backup)) \(location(of: .vault))" }

    private func path(of name: String) -> String { "\(path)/\(name)" }

    // MARK: Reading

    package func version(of item: VaultItem) throws(VaultError) -> VaultItemVersion? {
        try status(of: item.fileName).map { VaultItemVersion($0) }
    }

    /// The permission bits of an item's file; nil if it does not exist.
    package func permissions(of item: VaultItem) throws(VaultError) -> UInt32? {
        try status(of: item.fileName).map { UInt32($0.st_mode & 0o7777) }
    }

    private func status(of name: String) throws(VaultError) -> stat? {
        var found = stat()
        guard lstat(path(of: name), &found) == 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw failure(path(of: name))
        }
        return found
    }

    package func read(_ item: VaultItem, upTo limitBytes: Int) throws(VaultError) -> StoredVaultItem? {
        let path = location(of: item)
        try before(.read(item.fileName))
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            if errno == ELOOP {
                throw VaultError(
                    .permissions, "\(path.debugDescription) is a symbolic link",
                    hint: "replace the link by the file, or name the file's folder with --home")
            }
            throw failure(path)
        }
        defer { close(file) }
        var found = stat()
        guard fstat(file, &found) == 0 else { throw failure(path) }
        try check(found, path)
        guard found.st_size <= limitBytes else {
            throw VaultError(
                .tooLarge, "\(path.debugDescription) has \(found.st_size) bytes, the limit is \(limitBytes)")
        }
        return StoredVaultItem(
            bytes: try contents(of: file, path, upTo: Int(found.st_size)), version: VaultItemVersion(found))
    }

    private func contents(of file: Int32, _ path: String, upTo size: Int) throws(VaultError) -> [UInt8] {
        var failed: VaultError?
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { output, count in
            while count < size {
                let taken = Glibc.read(file, output.baseAddress.map { $0 + count }, size - count)
                if taken > 0 {
                    count += taken
                } else if taken == 0 {
                    return
                } else if errno != EINTR {
                    failed = failure(path)
                    return
                }
            }
        }
        if let failed { throw failed }
        return bytes
    }

    // MARK: Writing

    /// Creates the folder, mode 0700, and its parents, mode 0755. Throws `permissions` for a folder of another user or
    /// one that is writable for everyone.
    package func prepare() throws(VaultError) {
        var found = stat()
        if stat(path, &found) != 0 {
            guard errno == ENOENT else { throw failure(path) }
            try before(.makeFolder)
            for (index, character) in path.enumerated() where character == "/" && index > 0 {
                _ = mkdir(String(path.prefix(index)), 0o755)
            }
            guard mkdir(path, 0o700) == 0 || errno == EEXIST, stat(path, &found) == 0 else { throw failure(path) }
        }
        guard found.st_mode & S_IFMT == S_IFDIR else {
            throw VaultError(.io(ENOTDIR), "\(path.debugDescription) is not a folder")
        }
        guard found.st_uid == geteuid() || found.st_uid == 0 else {
            throw VaultError(
                .permissions,
                "\(path.debugDescription) belongs to user \(found.st_uid), and this process runs as user \(geteuid())",
                hint: "run as that user, or name another folder with --home")
        }
        guard found.st_mode & 0o002 == 0 else {
            throw VaultError(
                .permissions, "\(path.debugDescription) is writable for everyone",
                hint: "chmod o-w \(ShellWord.quoted(path))")
        }
    }

    package func replace(
        _ item: VaultItem, with bytes: UnsafeRawBufferPointer, if condition: VaultWriteCondition
    ) throws(VaultError) {
        let temporary = Self.temporary(item.fileName)
        let path = path(of: temporary)
        _ = unlink(path)
        try before(.create(temporary))
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw failure(path) }
        do throws(VaultError) {
            defer { close(file) }
            try write(bytes, to: file, temporary)
            try before(.sync(temporary))
            guard fsync(file) == 0 else { throw failure(path) }
        } catch {
            _ = unlink(path)
            throw error
        }
        do throws(VaultError) {
            try before(.rename(item.fileName))
            // Checked as late as possible: only a write without the lock between this call and the next goes unnoticed.
            guard condition.holds(for: try version(of: item)) else {
                throw VaultError(.changed, "\(location(of: item).debugDescription) was changed by somebody else")
            }
            guard Glibc.rename(path, location(of: item)) == 0 else { throw failure(location(of: item)) }
        } catch {
            _ = unlink(path)
            throw error
        }
        try syncFolder()
    }

    package func remove(_ item: VaultItem) throws(VaultError) {
        try remove(fileNamed: item.fileName)
    }

    private func remove(fileNamed name: String) throws(VaultError) {
        guard try status(of: name) != nil else { return }
        try before(.remove(name))
        guard unlink(path(of: name)) == 0 || errno == ENOENT else { throw failure(path(of: name)) }
        try syncFolder()
    }

    private static func temporary(_ name: String) -> String { "\(name).new" }

    private func write(_ bytes: UnsafeRawBufferPointer, to file: Int32, _ name: String) throws(VaultError) {
        guard fchmod(file, 0o600) == 0 else { throw failure(path(of: name)) }
        var written = 0
        while written < bytes.count {
            try before(.write(name))
            let count = Glibc.write(file, bytes.baseAddress.map { $0 + written }, bytes.count - written)
            guard count >= 0 || errno == EINTR else { throw failure(path(of: name)) }
            written += Swift.max(count, 0)
        }
    }

    private func syncFolder() throws(VaultError) {
        try before(.syncFolder)
        let folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw failure(path) }
        defer { close(folder) }
        guard fsync(folder) == 0 || errno == EINVAL else { throw failure(path) }
    }

    // MARK: Locking

    package func lockForWriting() throws(VaultError) -> VaultLock { try lockForWriting(patience: nil) }

    package func lockForWriting(patience: Duration?) throws(VaultError) -> VaultLock {
        let lock = try waitForLock(patience ?? self.patience)
        do throws(VaultError) {
            // Temporary files of a killed writer contain a key or a vault that a later rekeying is meant to invalidate.
            for item in VaultItem.allCases { try remove(fileNamed: Self.temporary(item.fileName)) }
        } catch {
            lock.release()
            throw error
        }
        return lock
    }

    package func removeAbandonedFiles() {
        // Taking the lock removes the files, and creates a lock file. So without such files, the lock is not taken.
        let isAny = VaultItem.allCases.contains { (try? status(of: Self.temporary($0.fileName))) ?? nil != nil }
        if isAny, let lock = try? lockForWriting() { lock.release() }
    }

    private func waitForLock(_ patience: Duration) throws(VaultError) -> VaultLock {
        let path = path(of: Self.lock)
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw failure(path) }
        _ = fchmod(file, 0o600)
        let deadline = ContinuousClock.now + patience
        while flock(file, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR else {
                defer { close(file) }
                throw failure(path)
            }
            guard ContinuousClock.now < deadline else {
                close(file)
                throw VaultError(
                    .locked, "another process is writing the vault: \(path.debugDescription) is locked",
                    hint: "try again; `fuser \(path)` shows the process")
            }
            usleep(UInt32.random(in: 1_000...10_000))
        }
        return VaultLock { close(file) }
    }

    // MARK: Checks

    private func check(_ found: stat, _ path: String) throws(VaultError) {
        guard found.st_mode & S_IFMT == S_IFREG else {
            throw VaultError(
                .notAVault, "\(path.debugDescription) is not a regular file",
                hint: "`ls -ld \(ShellWord.quoted(path))` shows what it is; move it away")
        }
        guard found.st_uid == geteuid() else {
            throw VaultError(
                .permissions,
                "\(path.debugDescription) belongs to user \(found.st_uid), and this process runs as user \(geteuid())",
                hint: "run as that user, or name another folder with --home")
        }
        guard found.st_mode & 0o077 == 0 else {
            let mode = String(found.st_mode & 0o777, radix: 8)
            throw VaultError(
                .permissions, "\(path.debugDescription) has mode 0\(mode), which gives other users access",
                hint: "chmod 600 \(path)")
        }
    }

    private func failure(_ path: String) -> VaultError {
        let code = errno
        return VaultError(
            .io(code), "\(path.debugDescription): \(String(cString: strerror(code)))",
            hint: SystemFault.remedy(for: code))
    }
}

extension VaultItem {
    fileprivate var fileName: String {
        switch self {
        case .vault: "vault"
        case .key: "vault.key"
        case .backup: "vault.bak"
        }
    }
}

extension VaultItemVersion {
    /// A rename gives the name another inode. Time, size and mode distinguish the writes of programs that keep the
    /// inode.
    fileprivate init(_ found: stat) {
        self.init(
            "\(found.st_ino) \(found.st_mtim.tv_sec).\(found.st_mtim.tv_nsec) \(found.st_size) \(found.st_mode)")
    }
}

extension SealedVault {
    /// The vault of the home at `path`, which need not exist: in files.
    package init(home path: String) {
        self.init(storage: VaultFolder(home: path))
    }
}
