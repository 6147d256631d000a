// SPDX-License-Identifier: Apache-2.0

package import CountersignAnswering
package import CountersignChallenges
import CountersignCryptography
import FoundationEssentials
import Glibc
import Synchronization

/// The breaker's records in a home: `breaker.json`, mode 0600, with `breaker.lock` and `breaker.running`. Every process
/// that uses the home reads and writes them. The file contains keyed MACs of the user names and passwords, but neither
/// of them.
///
/// A writer locks `breaker.lock` with flock(2), reads, and replaces the file. A process that has begun an attempt locks
/// the byte of `breaker.running` that its number selects, until it ends: other processes thereby know whether it is
/// running. The files are two because NFS turns a flock(2) into a lock of all bytes.
package final class BreakerFile: Sendable {
    /// The largest file that is read, in bytes. ``spaces`` records of average length take a tenth of it.
    private static let limitBytes = 4 << 20
    /// The largest number of spaces in the file.
    private static let spaces = 2048
    /// How long a record without failures is stored, in seconds.
    private static let acceptedSeconds: Int64 = 90 * 86_400
    /// How long a rejection is stored: a password that is still wrong is tried once more after that.
    private static let rejectedSeconds: Int64 = 400 * 86_400
    /// How long a writer waits for the lock.
    private static let patience = Duration.seconds(5)

    private struct Version: Equatable, Sendable {
        let inode: UInt64
        let seconds: Int
        let nanoseconds: Int
        let size: Int64
    }

    private struct State {
        /// The version that was read or written last.
        var version: Version?
        /// Of that version.
        var schemes = AcceptedSchemes()
        /// The descriptor that holds the lock of this process's byte, and the inode of its file.
        var presence: (file: Int32, inode: UInt64, owner: UInt64)?
    }

    private let home: Home
    private let now: @Sendable () -> Int64
    private let state = Mutex(State())

    private var file: HomeFile { home.file("breaker.json") }
    private var lockPath: String { "\(home.path)/breaker.lock" }
    private var presencePath: String { "\(home.path)/breaker.running" }

    /// `now` returns seconds since 1970.
    package init(home: Home, now: @escaping @Sendable () -> Int64) {
        self.home = home
        self.now = now
    }

    deinit {
        if let presence = state.withLock({ $0.presence }) { close(presence.file) }
    }

    /// For a ``BreakerBoard``.
    package var storage: BreakerStorage {
        BreakerStorage(
            changed: { [self] () throws(BreakerStorage.Failure) in
                try explaining { () throws(CountersignError) in try changed() }
            },
            update: { [self] (owner, change) throws(BreakerStorage.Failure) in
                try explaining { () throws(CountersignError) in try update(owner, change) }
            },
            schemes: { [self] in state.withLock { $0.schemes } })
    }

    // MARK: Reading

    /// The records as stored. Empty if there is no file. Throws if it cannot be read.
    package func read() throws(CountersignError) -> BreakerStorage.Records { try readAll().records }

    /// Whether there are no records at all.
    package func isEmpty() throws(CountersignError) -> Bool {
        let (records, schemes) = try readAll()
        return records.isEmpty && schemes.entries.isEmpty
    }

    private func readAll() throws(CountersignError) -> (records: BreakerStorage.Records, schemes: AcceptedSchemes) {
        guard let bytes = try file.readIfThere(upTo: Self.limitBytes) else { return ([:], AcceptedSchemes()) }
        guard let stored = try? JSONDecoder().decode(StoredRecords.self, from: Data(bytes)),
            stored.format == StoredRecords.format, let records = stored.records, let schemes = stored.acceptedSchemes
        else {
            throw CountersignError(
                .configuration, "\(file.path.debugDescription) is damaged, or of another version",
                hint: "remove it; rejected passwords may then be tried once more")
        }
        return (records, schemes)
    }

    private func changed() throws(CountersignError) -> BreakerStorage.Records? {
        let version = version()
        guard state.withLock({ $0.version }) != version else { return nil }
        let (records, schemes) = try readAll()
        state.withLock {
            $0.version = version
            $0.schemes = schemes
        }
        return records
    }

    private func version() -> Version? {
        var found = stat()
        guard stat(file.path, &found) == 0 else { return nil }
        return Version(
            inode: UInt64(found.st_ino), seconds: found.st_mtim.tv_sec, nanoseconds: found.st_mtim.tv_nsec,
            size: Int64(found.st_size))
    }

    // MARK: Writing

    /// Applies `change` to the newest records and stores the result. For commands, which make no attempts.
    @discardableResult
    package func update(
        _ owner: UInt64 = 0, _ change: (inout Breaker) -> Void
    ) throws(CountersignError) -> BreakerStorage.Records {
        try home.prepare()
        let lock = try lock()
        defer { close(lock) }
        let (before, schemes) = try readAll()
        var breaker = Breaker(capacity: Self.spaces, accounts: before, schemes: schemes)
        breaker.abandonAttempts(at: now()) { isRunning($0, own: owner) }
        change(&breaker)
        breaker.removeRecords(
            unchangedSince: now() - Self.acceptedSeconds, rejectionsSince: now() - Self.rejectedSeconds, at: now())
        let after = breaker.accounts.filter { $0.key.isShared }
        if owner != 0, after.values.contains(where: { $0.hasAttempt(of: owner) }) { try showPresence(of: owner) }
        if after != before || breaker.schemes != schemes {
            guard let bytes = try? JSONEncoder.records.encode(StoredRecords(after, breaker.schemes)) else {
                throw CountersignError(.environment, "cannot encode \(file.name)")
            }
            guard bytes.count <= Self.limitBytes else {
                throw CountersignError(
                    .environment, "\(file.path.debugDescription) would become too large to be read again")
            }
            try file.replace(with: Array(bytes), mode: 0o600)
        }
        state.withLock {
            $0.version = version()
            $0.schemes = breaker.schemes
        }
        return after
    }

    /// The credential `name` has been changed or removed: the records of other accounts lose its name.
    package func nameChanged(_ name: String, to account: Breaker.Account?) throws(CountersignError) {
        guard try read().contains(where: { $1.name == name && $0 != account }) else { return }
        try update { $0.nameChanged(name, to: account) }
    }

    /// The descriptor of the locked file.
    private func lock() throws(CountersignError) -> Int32 {
        let file = try open(lockPath)
        let end = ContinuousClock.now + Self.patience
        while flock(file, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR, ContinuousClock.now < end else {
                let number = errno
                close(file)
                throw .system(number, "cannot lock breaker.lock", hint: "`fuser \(lockPath)` shows the process")
            }
            usleep(UInt32.random(in: 500...2_000))
        }
        return file
    }

    private func open(_ path: String) throws(CountersignError) -> Int32 {
        let file = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw .system(errno, "cannot write \(path.debugDescription)") }
        _ = fchmod(file, 0o600)
        return file
    }

    // MARK: Presence

    // <fcntl.h> declares these only under _GNU_SOURCE. Such a lock belongs to the open file, not to the process.
    private static let getLock: Int32 = 36
    private static let setLock: Int32 = 37

    private static func byte(of owner: UInt64, type: Int32) -> flock {
        flock(
            l_type: Int16(type), l_whence: Int16(SEEK_SET), l_start: off_t(owner & UInt64(Int64.max - 1)), l_len: 1,
            l_pid: 0)
    }

    /// Locks this process's byte until the process ends.
    private func showPresence(of owner: UInt64) throws(CountersignError) {
        var current = stat()
        let isThere = stat(presencePath, &current) == 0
        let isShown = state.withLock { state in
            guard let presence = state.presence, presence.owner == owner else { return false }
            if isThere, presence.inode == UInt64(current.st_ino) { return true }
            close(presence.file)
            state.presence = nil
            return false
        }
        guard !isShown else { return }
        let file = try open(presencePath)
        var byte = Self.byte(of: owner, type: F_WRLCK)
        guard fcntl(file, Self.setLock, &byte) == 0, fstat(file, &current) == 0 else {
            let number = errno
            close(file)
            throw .system(number, "cannot lock breaker.running")
        }
        state.withLock { $0.presence = (file, UInt64(current.st_ino), owner) }
    }

    private func isRunning(_ owner: UInt64, own: UInt64) -> Bool {
        guard owner != own else { return true }
        let file = Glibc.open(presencePath, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else { return errno != ENOENT }
        defer { close(file) }
        var byte = Self.byte(of: owner, type: F_WRLCK)
        guard fcntl(file, Self.getLock, &byte) == 0 else { return true }
        return Int32(byte.l_type) != F_UNLCK
    }

    // MARK: Failures

    private func explaining<Value>(
        _ body: () throws(CountersignError) -> Value
    ) throws(BreakerStorage.Failure) -> Value {
        do throws(CountersignError) {
            return try body()
        } catch {
            var status = statvfs()
            let isReadOnly = statvfs(home.path, &status) == 0 && status.f_flag & UInt(ST_RDONLY) != 0
            throw BreakerStorage.Failure(error.detail, isReadOnly: isReadOnly)
        }
    }
}

extension JSONEncoder {
    fileprivate static var records: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
        return encoder
    }
}
