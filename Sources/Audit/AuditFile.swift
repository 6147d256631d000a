// SPDX-License-Identifier: Apache-2.0

import CountersignCLinux
import CountersignCryptography
import Glibc
import Synchronization

/// Appends the records of an audit to a file, each with one write(2), for any number of threads.
///
/// Bytes that are in the file stay there. A line that was written in part, because the disk was full, is completed
/// before the next one; a record then says how many uses were not recorded. If the process is killed, at most the
/// record that it was writing is lost. Only the kernel decides when the records reach the disk: a power failure may
/// lose those of the last half a minute.
///
/// The signature of a checkpoint takes ten times as long as a record, and is made elsewhere: see ``sign(after:)``.
package final class AuditFile: Sendable {
    /// The space reserved for a required audit.
    private static let reserveBytes = 64 * 1024
    /// The space is reserved again when less is left.
    private static let leastReserveBytes = 48 * 1024
    /// Between two checkpoints, if there are records.
    private static let checkpointSeconds: UInt64 = 60
    /// Between two reports of a beginning gap.
    private static let reportIntervalSeconds: UInt64 = 60

    struct State: ~Copyable {
        /// With the line of which `rest` is left.
        var chain: AuditChain
        /// The part of the last lines that could not be written.
        var rest: [UInt8] = []
        /// Whether `rest` belongs to the record of a use.
        var isUseUnfinished = false
        /// Uses that were not recorded since the last record with their count.
        var lost: UInt64 = 0
        /// Why the last attempt to write, to sign or to reserve space failed; 0 if it succeeded.
        var failure: Int32 = 0
        var reservedBytes = 0
        var canReserve: Bool
        var isClosed = false
        /// In monotonic seconds.
        var lastCheckpoint: UInt64
        /// A checkpoint is being made.
        var isSigning = false
        var line = AuditLine()

        // Reports.
        var unreported: UInt64 = 0
        var hasReportedGap = false
        var quietUntil: UInt64 = 0
    }

    package let path: String
    private let descriptor: Int32
    let key: AuditKey
    private let isRequired: Bool
    let clock: @Sendable () -> Timestamp
    private let run: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let report: @Sendable (String) -> Void
    private let state: Mutex<State>
    private let isFailing = Atomic(false)

    /// Opens the file at `path`, creates it with mode 0600 if it does not exist, and continues its chain. Throws if
    /// another process writes it, if its end has a fault, and if another key has signed it.
    ///
    /// `isRequired`: ``refuses`` while the file cannot be written. `run` runs the work of a checkpoint, one after
    /// another and not on an event loop; without it, ``append(_:)`` does. `report` is called with a sentence when
    /// records are lost, and when the file can be written again.
    package init(
        path: String, key: AuditKey, isRequired: Bool = false,
        clock: @escaping @Sendable () -> Timestamp = { Timestamp(WallClock.now()) },
        run: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { $0() },
        report: @escaping @Sendable (String) -> Void
    ) throws(AuditError) {
        let file = try Self.open(path)
        let tail: AuditTail
        do throws(AuditError) {
            tail = try AuditTail(of: file, path, key: key.publicKey)
        } catch {
            Glibc.close(file)
            throw error
        }
        let (bytes, chain) = tail.opening(at: clock())
        self.path = path
        descriptor = file
        self.key = key
        self.isRequired = isRequired
        self.clock = clock
        self.run = run
        self.report = report
        state = Mutex(
            State(chain: chain, rest: bytes, canReserve: isRequired, lastCheckpoint: MonotonicClock.seconds()))
        change { state in
            catchUp(&state)
            if isRequired, state.rest.isEmpty { reserve(&state) }
        }
    }

    deinit {
        close()
        Glibc.close(descriptor)
    }

    private static func open(_ path: String) throws(AuditError) -> Int32 {
        let name = AuditError.quoted(path)
        let file = Glibc.open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0o600)
        guard file >= 0 else {
            throw AuditError(.environment, "cannot write the audit \(name): \(String(cString: strerror(errno)))")
        }
        do throws(AuditError) {
            var status = stat()
            guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
                throw AuditError(
                    .environment, "cannot write the audit \(name): it is not a file",
                    hint: "an audit continues after a restart, so that it needs a file")
            }
            guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
                guard errno == EWOULDBLOCK else {
                    throw AuditError(.environment, "cannot lock the audit \(name): \(String(cString: strerror(errno)))")
                }
                throw AuditError(
                    .inUse, "another process writes the audit \(name)",
                    hint: "name another file for this server, or stop the other one: `fuser \(ShellWord.quoted(path))`")
            }
        } catch {
            Glibc.close(file)
            throw error
        }
        return file
    }

    // MARK: Records

    /// Whether the audit is required and cannot be written: credentials must not be used.
    package var refuses: Bool { isRequired && isFailing.load(ordering: .relaxed) }

    /// Records a use. Returns whether the record is in the file.
    @discardableResult
    package func append(_ use: CredentialUse) -> Bool {
        let (isRecorded, due) = change { state -> (Bool, UInt64?) in
            catchUp(&state)
            guard !state.isClosed, state.rest.isEmpty, state.lost == 0 else {
                lose(&state)
                return (false, nil)
            }
            var chain = state.chain
            chain.use(use, in: &state.line)
            let isWritten = put(state.line.bytes, then: chain, &state)
            state.isUseUnfinished = !state.rest.isEmpty
            if !isWritten { lose(&state) }
            if isRequired, state.rest.isEmpty, state.reservedBytes < Self.leastReserveBytes { reserve(&state) }
            let due = state.chain.isCheckpointDue ? state.beginCheckpoint(now: MonotonicClock.seconds()) : nil
            return (isWritten && state.rest.isEmpty, due)
        }
        if let due { run { [self] in sign(after: due) } }
        return isRecorded
    }

    /// Called every second: writes what could not be written before, and the checkpoint of a minute with records.
    /// `now` is in monotonic seconds.
    package func secondPassed(now: UInt64) {
        let due = change { state -> UInt64? in
            guard !state.isClosed else { return nil }
            if state.failure != 0 {
                catchUp(&state)
                if isRequired, state.rest.isEmpty, state.lost == 0 { reserve(&state) }
            }
            let isDue = now >= state.lastCheckpoint && now - state.lastCheckpoint >= Self.checkpointSeconds
            return isDue ? state.beginCheckpoint(now: now) : nil
        }
        if let due { run { [self] in sign(after: due) } }
    }

    /// Opens the file at the path again, after it was renamed, and creates it. The chain continues in it. If that is
    /// not possible, the audit stays in the old file. Does nothing if the file was not renamed.
    package func reopen() throws(AuditError) {
        var old = stat()
        var new = stat()
        guard fstat(descriptor, &old) == 0 else { return }
        if stat(path, &new) == 0, new.st_dev == old.st_dev, new.st_ino == old.st_ino {
            // Truncated in place.
            if new.st_size == 0 { change { state in continueChain(&state, after: nil) } }
            return
        }
        let file = try Self.open(path)
        defer { Glibc.close(file) }
        guard fstat(file, &new) == 0, new.st_size == 0 else {
            throw AuditError(
                .notEmpty,
                "the file \(AuditError.quoted(path)) has contents of its own; the audit stays in the old one",
                hint: "move it to another place, then reload again")
        }
        change { state in
            catchUp(&state)
            if state.rest.isEmpty { checkpoint(&state, isEnd: true) }
            var cut: AuditRecord.Cut?
            if !state.rest.isEmpty, let tail = try? AuditTail(of: descriptor, path, key: key.publicKey) {
                // The record stays unfinished in the old file.
                if state.isUseUnfinished { lose(&state) }
                state.isUseUnfinished = false
                state.rest = []
                state.chain = tail.chain ?? AuditChain()
                cut = AuditVerifier.summary(of: tail.cut)
            }
            releaseSpace(state)
            flock(descriptor, LOCK_UN)
            // Replaces the old file in one step, so that no write in between fails.
            guard csn_dup3_cloexec(file, descriptor) >= 0 else { return }
            state.reservedBytes = 0
            continueChain(&state, after: cut)
            if isRequired, state.rest.isEmpty { reserve(&state) }
        }
    }

    /// Signs the end of the file. Uses that are appended later are not recorded.
    package func close() {
        let lost = change { state -> UInt64 in
            guard !state.isClosed else { return 0 }
            catchUp(&state)
            if state.rest.isEmpty { checkpoint(&state, isEnd: true) }
            releaseSpace(state)
            state.isClosed = true
            // A child that is being started has the descriptor too, until it is another program.
            flock(descriptor, LOCK_UN)
            return state.lost
        }
        if lost > 0 { report("\(lost) uses of credentials are missing in the audit \(AuditError.quoted(path))") }
    }

    // MARK: Writing

    /// Completes the last line, and notes the gap.
    private func catchUp(_ state: inout State) {
        if !state.rest.isEmpty {
            let rest = state.rest
            state.rest.removeFirst(rest.withUnsafeBytes { write($0, &state) })
        }
        guard state.rest.isEmpty else { return }
        state.isUseUnfinished = false
        guard state.lost > 0 else { return }
        var chain = state.chain
        let line = chain.lost(state.lost, at: clock())
        if put(line, then: chain, &state) { state.lost = 0 }
    }

    func put(_ line: [UInt8], then chain: AuditChain, _ state: inout State) -> Bool {
        line.withUnsafeBytes { put($0, then: chain, &state) }
    }

    /// Writes a line, or at least its beginning, after which the chain is `chain`. Otherwise the chain stays as it was.
    private func put(_ line: UnsafeRawBufferPointer, then chain: AuditChain, _ state: inout State) -> Bool {
        let written = write(line, &state)
        guard written > 0 else { return false }
        state.chain = chain
        if written < line.count { state.rest = Array(line[written...]) }
        state.reservedBytes -= written
        return true
    }

    /// Writes a signed record, and signs it meanwhile.
    func checkpoint(_ state: inout State, isEnd: Bool = false) {
        guard state.rest.isEmpty, state.lost == 0 else { return }
        var chain = state.chain
        guard let line = chain.checkpoint(at: clock(), key: key, isEnd: isEnd) else { return state.failure = EIO }
        _ = put(line, then: chain, &state)
    }

    /// Writes the first record of another file.
    private func continueChain(_ state: inout State, after cut: AuditRecord.Cut?) {
        let time = clock()
        state.rest =
            state.chain.number == 0
            ? state.chain.begin(at: time, after: cut) : state.chain.continue(at: time, after: cut)
        catchUp(&state)
    }

    private func lose(_ state: inout State) {
        state.lost += 1
        state.unreported += 1
    }

    /// Returns how many bytes were written: all, unless the disk is full.
    private func write(_ bytes: UnsafeRawBufferPointer, _ state: inout State) -> Int {
        var written = 0
        state.failure = 0
        while written < bytes.count {
            let count = Glibc.write(descriptor, bytes.baseAddress! + written, bytes.count - written)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                state.failure = count < 0 ? errno : ENOSPC
                break
            }
            written += count
        }
        return written
    }

    private func reserve(_ state: inout State) {
        guard state.canReserve, let size else { return }
        guard csn_reserve(descriptor, size, off_t(Self.reserveBytes)) != 0 else {
            state.reservedBytes = Self.reserveBytes
            state.failure = 0
            return
        }
        switch errno {
        case ENOSPC, EDQUOT, EFBIG: state.failure = errno
        case EINTR: break
        default: state.canReserve = false
        }
    }

    private func releaseSpace(_ state: borrowing State) {
        if isRequired, state.canReserve, let size { ftruncate(descriptor, size) }
    }

    private var size: off_t? {
        var found = stat()
        return fstat(descriptor, &found) == 0 ? found.st_size : nil
    }

    // MARK: Reports

    /// Changes the state, and reports a gap that begins or ends.
    @discardableResult
    func change<Result: Sendable>(_ body: (inout sending State) -> Result) -> Result {
        let (result, sentence) = state.withLock { state in
            let wasFailing = state.failure != 0
            let result = body(&state)
            isFailing.store(state.failure != 0, ordering: .relaxed)
            guard wasFailing || state.failure != 0 || state.unreported > 0 else { return (result, String?.none) }
            return (result, self.sentence(&state, now: MonotonicClock.seconds()))
        }
        if let sentence { report(sentence) }
        return result
    }

    private func sentence(_ state: inout State, now: UInt64) -> String? {
        let lost = state.unreported
        let name = AuditError.quoted(path)
        if state.failure == 0 {
            guard state.hasReportedGap || lost > 0 && now >= state.quietUntil, !state.isClosed else { return nil }
            if !state.hasReportedGap { state.quietUntil = now + Self.reportIntervalSeconds }
            state.hasReportedGap = false
            state.unreported = 0
            return "the audit \(name) can be written again; \(lost) uses of credentials are missing in it"
        }
        guard !state.hasReportedGap, now >= state.quietUntil else { return nil }
        state.quietUntil = now + Self.reportIntervalSeconds
        state.hasReportedGap = true
        let consequence = isRequired ? "no credential is used" : "uses of credentials are not recorded"
        return "cannot write the audit \(name): \(String(cString: strerror(state.failure))); "
            + "\(consequence) until it can be written"
    }
}
