// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The files of a home that a vault is made of, and the only place where this room touches the file system.
///
/// A file is replaced whole: written to `NAME.new` (made with `O_EXCL`, mode 0600), synced, renamed, the folder synced.
/// Whoever is stopped in between leaves the old file or the new one. Symbolic links are not followed: a rename would put
/// a file in the link's place.
struct VaultFolder: Sendable {
    /// A system call, told before it is made.
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

    /// What a file looked like when it was read.
    struct Found {
        var bytes: [UInt8]
        let fingerprint: VaultFingerprint
    }

    static let vault = "vault"
    static let backup = "vault.bak"
    static let key = "vault.key"
    static let lock = "vault.lock"

    let path: String
    /// How long a writer waits for another.
    let patience: Duration
    let before: @Sendable (Step) throws(VaultError) -> Void

    init(
        path: String, patience: Duration = .seconds(10),
        before: @escaping @Sendable (Step) throws(VaultError) -> Void = { _ throws(VaultError) in }
    ) {
        self.path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
        self.patience = patience
        self.before = before
    }

    func path(of name: String) -> String { "\(path)/\(name)" }

    // MARK: Reading

    /// What `lstat` says of a file, or nil where there is none.
    func look(at name: String) throws(VaultError) -> VaultFingerprint? {
        var found = stat()
        guard lstat(path(of: name), &found) == 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw failure(path(of: name))
        }
        return VaultFingerprint(found)
    }

    /// A private file's bytes, or nil where there is none. Throws `permissions` when others may read or write it.
    func read(_ name: String, upTo limitBytes: Int) throws(VaultError) -> Found? {
        let path = path(of: name)
        try before(.read(name))
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            if errno == ELOOP {
                throw VaultError(
                    .permissions, "\(path.debugDescription) is a symbolic link",
                    hint: "put the file itself there, or point --home to the folder where it is")
            }
            throw failure(path)
        }
        defer { close(file) }
        var found = stat()
        guard fstat(file, &found) == 0 else { throw failure(path) }
        try check(found, path)
        guard found.st_size <= limitBytes else {
            throw VaultError(
                .tooLarge, "\(path.debugDescription) has \(found.st_size) bytes, \(limitBytes) are allowed")
        }
        return Found(
            bytes: try contents(of: file, path, upTo: Int(found.st_size)), fingerprint: VaultFingerprint(found))
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

    /// Makes the folder, mode 0700, and those above it; refuses one that anybody may write to.
    func prepare() throws(VaultError) {
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
        guard found.st_uid == geteuid() || found.st_uid == 0, found.st_mode & 0o002 == 0 else {
            throw VaultError(
                .permissions, "\(path.debugDescription) belongs to somebody else, or anybody may write to it",
                hint: "chmod o-w \(path)")
        }
    }

    /// Puts `bytes` in the place of a file, whole or not at all. The lock must be held.
    func replace(_ name: String, with bytes: UnsafeRawBufferPointer) throws(VaultError) {
        let temporary = Self.temporary(name)
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
            try before(.rename(name))
            guard Glibc.rename(path, self.path(of: name)) == 0 else { throw failure(self.path(of: name)) }
        } catch {
            _ = unlink(path)
            throw error
        }
        try syncFolder()
    }

    func replace(_ name: String, with bytes: [UInt8]) throws(VaultError) {
        try bytes.withUnsafeBufferPointer { bytes throws(VaultError) in
            try replace(name, with: UnsafeRawBufferPointer(bytes))
        }
    }

    /// Removes a file, if it is there. The lock must be held.
    func remove(_ name: String) throws(VaultError) {
        guard try look(at: name) != nil else { return }
        try before(.remove(name))
        guard unlink(path(of: name)) == 0 || errno == ENOENT else { throw failure(path(of: name)) }
        try syncFolder()
    }

    /// Removes what a process that was stopped while it replaced a file has left. The lock must be held.
    func removeUnfinished(_ name: String) throws(VaultError) {
        try remove(Self.temporary(name))
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

    /// Overwrites bytes that were a secret.
    func wipe(_ bytes: inout [UInt8]) {
        bytes.withUnsafeMutableBytes { if let base = $0.baseAddress { explicit_bzero(base, $0.count) } }
    }

    // MARK: Locking

    /// Keeps other writers out, in this process and in others, until `release`. Waits for `patience`, then `locked`.
    func lockForWriting() throws(VaultError) -> VaultWriteLock {
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
                    .locked, "another process is writing the vault, \(path.debugDescription) is locked",
                    hint: "try again; `fuser \(path)` names the process")
            }
            usleep(UInt32.random(in: 1_000...10_000))
        }
        return VaultWriteLock(file: file)
    }

    // MARK: Checks

    private func check(_ found: stat, _ path: String) throws(VaultError) {
        guard found.st_mode & S_IFMT == S_IFREG else {
            throw VaultError(.notAVault, "\(path.debugDescription) is not a file")
        }
        guard found.st_uid == geteuid() else {
            throw VaultError(
                .permissions, "\(path.debugDescription) belongs to user \(found.st_uid), this is user \(geteuid())",
                hint: "run as its owner, or choose another --home")
        }
        guard found.st_mode & 0o077 == 0 else {
            let mode = String(found.st_mode & 0o777, radix: 8)
            throw VaultError(
                .permissions, "\(path.debugDescription) has mode 0\(mode): others may use it", hint: "chmod 600 \(path)"
            )
        }
    }

    private func failure(_ path: String) -> VaultError {
        let code = errno
        return VaultError(.io(code), "\(path.debugDescription): \(String(cString: strerror(code)))")
    }
}

/// The right to write a home's vault.
struct VaultWriteLock {
    let file: Int32

    func release() {
        close(file)
    }
}

extension VaultFingerprint {
    fileprivate init(_ found: stat) {
        self.init(
            seconds: found.st_mtim.tv_sec, nanoseconds: found.st_mtim.tv_nsec, inode: UInt64(found.st_ino),
            sizeBytes: Int(found.st_size), mode: UInt32(found.st_mode & 0o7777))
    }
}
