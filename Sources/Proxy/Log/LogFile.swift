// SPDX-License-Identifier: Apache-2.0

import CountersignCLinux
import CountersignCryptography
import CountersignJSON
import Glibc
import Synchronization

/// Appends lines to a file that may become full, without damaging a line.
///
/// A line that was written in part is completed before the next one. Lines that cannot be written are counted; once
/// there is space, a line `{"time":…,"lost":N}` takes their place. The gap is also reported to the user.
///
/// If the log is required, requests are refused while it cannot be written. Lines of requests that are then in progress
/// are written to space that was reserved for them, if the file system can reserve space.
final class LogFile: Sendable {
    /// The space reserved for a required log.
    private static let reserveBytes = 32 * 1024
    /// The space is reserved again when less is left.
    private static let leastReserveBytes = 24 * 1024
    /// Between two reports of a beginning gap.
    private static let reportIntervalSeconds: UInt64 = 60

    private struct State {
        /// The part of the last line that could not be written.
        var rest: [UInt8] = []
        /// Lines lost since the last line with a count.
        var lost: UInt64 = 0
        /// Why the last attempt to write or to reserve space failed; 0 if it succeeded.
        var failure: Int32 = 0
        var reservedBytes = 0
        var canReserve: Bool

        // Reports.
        var unreported: UInt64 = 0
        var hasReportedGap = false
        var quietUntil: UInt64 = 0
    }

    private let name: String
    private let descriptor: Int32
    private let isRequired: Bool
    private let report: @Sendable (String) -> Void
    private let state: Mutex<State>
    private let isFailing = Atomic(false)

    /// Opens the file at `path` and creates it with mode 0600; `-` is standard output.
    convenience init(
        path: String, isRequired: Bool, report: @escaping @Sendable (String) -> Void
    ) throws(AccessLogError) {
        guard path != "-" else {
            self.init(name: "-", descriptor: STDOUT_FILENO, isRequired: isRequired, report: report)
            return
        }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw AccessLogError(
                detail: "cannot write the access log \"\(path)\": \(String(cString: strerror(errno)))",
                hint: SystemFault.remedy(for: errno) ?? "name a file in a folder that is there, and that you may write")
        }
        self.init(
            name: path, descriptor: descriptor, endsInsideLine: Self.endsInsideLine(path), isRequired: isRequired,
            report: report)
    }

    /// Takes over `descriptor`. `endsInsideLine`: the file ends with a part of a line, which an earlier process left.
    init(
        name: String, descriptor: Int32, endsInsideLine: Bool = false, isRequired: Bool,
        report: @escaping @Sendable (String) -> Void
    ) {
        self.name = name
        self.descriptor = descriptor
        self.isRequired = isRequired
        self.report = report
        state = Mutex(State(rest: endsInsideLine ? [UInt8(ascii: "\n")] : [], canReserve: isRequired))
        if isRequired { change { reserve(&$0) } }
    }

    deinit {
        change { catchUp(&$0) }
        let lost = state.withLock { $0.lost }
        if lost > 0 { report("\(lost) lines of the access log \"\(name)\" are lost") }
        if isRequired, state.withLock({ $0.canReserve }), let size { ftruncate(descriptor, off_t(size)) }
        if descriptor != STDOUT_FILENO { close(descriptor) }
    }

    /// Opens the file at the path again, for example after it was renamed by logrotate(8), and creates it if it does
    /// not exist. A line that was written to the old file in part counts as lost. If the file cannot be opened, the log
    /// stays in the old one. Does nothing for standard output.
    func reopen() throws(AccessLogError) {
        guard descriptor != STDOUT_FILENO else { return }
        let new = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard new >= 0 else {
            throw AccessLogError(
                detail: "cannot write the access log \"\(name)\": \(String(cString: strerror(errno)))",
                hint: SystemFault.remedy(for: errno) ?? "name a file in a folder that is there, and that you may write")
        }
        defer { close(new) }
        let endsInsideLine = Self.endsInsideLine(name)
        change { state in
            catchUp(&state)
            if !state.rest.isEmpty { lose(&state) }
            if isRequired, state.canReserve, let size { ftruncate(descriptor, off_t(size)) }
            // Replaces the old file in one step, so that no write in between fails.
            guard csn_dup3_cloexec(new, descriptor) >= 0 else { return }
            state.rest = endsInsideLine ? [UInt8(ascii: "\n")] : []
            state.failure = 0
            state.reservedBytes = 0
            if isRequired { reserve(&state) }
        }
    }

    /// Whether the log is required and cannot be written.
    var refuses: Bool { isRequired && isFailing.load(ordering: .relaxed) }

    /// Appends a line, including its line feed.
    func append(_ line: [UInt8]) {
        change { state in
            catchUp(&state)
            guard state.rest.isEmpty, state.lost == 0 else { return lose(&state) }
            let written = write(line[...], &state)
            if written == 0 { return lose(&state) }
            state.rest = Array(line.dropFirst(written))
            state.reservedBytes -= written
            if state.rest.isEmpty, isRequired, state.reservedBytes < Self.leastReserveBytes { reserve(&state) }
        }
    }

    /// Called every second: writes the lines that could not be written before. `now` is in monotonic seconds.
    func secondPassed(now: UInt64) {
        guard isFailing.load(ordering: .relaxed) || state.withLock({ $0.unreported > 0 }) else { return }
        change { state in
            catchUp(&state)
            if isRequired, state.rest.isEmpty, state.lost == 0 { reserve(&state) }
        }
    }

    // MARK: Writing

    /// Completes the last line, and notes the gap.
    private func catchUp(_ state: inout State) {
        guard !state.rest.isEmpty || state.lost > 0 else { return }
        if !state.rest.isEmpty { state.rest.removeFirst(write(state.rest[...], &state)) }
        guard state.rest.isEmpty, state.lost > 0 else { return }
        var note = JSONObject()
        note.add("time", AccessLog.timestamp(WallClock.now()))
        note.add("lost", state.lost)
        let line = note.utf8 + [UInt8(ascii: "\n")]
        let written = write(line[...], &state)
        guard written > 0 else { return }
        state.lost = 0
        state.rest = Array(line.dropFirst(written))
    }

    private func lose(_ state: inout State) {
        state.lost += 1
        state.unreported += 1
    }

    /// Returns how many bytes were written. One write(2) is enough for a line unless the file is full, so that the
    /// lines of several processes do not mix in an O_APPEND file.
    private func write(_ bytes: ArraySlice<UInt8>, _ state: inout State) -> Int {
        var written = 0
        state.failure = 0
        while written < bytes.count {
            let count = bytes.dropFirst(written).withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
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
        guard state.canReserve, let size else { return state.canReserve = false }
        guard csn_reserve(descriptor, off_t(size), off_t(Self.reserveBytes)) != 0 else {
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

    /// Nil unless it is a regular file.
    private var size: Int? {
        var found = stat()
        guard fstat(descriptor, &found) == 0, found.st_mode & S_IFMT == S_IFREG else { return nil }
        return Int(found.st_size)
    }

    /// Whether the file ends without a line feed.
    private static func endsInsideLine(_ path: String) -> Bool {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return false }
        defer { close(file) }
        var found = stat()
        var last: UInt8 = 0
        guard fstat(file, &found) == 0, found.st_mode & S_IFMT == S_IFREG, found.st_size > 0,
            pread(file, &last, 1, found.st_size - 1) == 1
        else { return false }
        return last != UInt8(ascii: "\n")
    }

    // MARK: Reports

    /// Changes the state, and reports a gap that begins or ends.
    private func change(_ body: (inout sending State) -> Void) {
        let sentence = state.withLock { state in
            let wasFailing = state.failure != 0
            body(&state)
            isFailing.store(state.failure != 0, ordering: .relaxed)
            guard wasFailing || state.failure != 0 || state.unreported > 0 else { return String?.none }
            return self.sentence(&state, now: MonotonicClock.seconds())
        }
        if let sentence { report(sentence) }
    }

    private func sentence(_ state: inout State, now: UInt64) -> String? {
        let lost = state.unreported
        if state.failure == 0 {
            guard state.hasReportedGap || lost > 0 && now >= state.quietUntil else { return nil }
            if !state.hasReportedGap { state.quietUntil = now + Self.reportIntervalSeconds }
            state.hasReportedGap = false
            state.unreported = 0
            return "the access log \"\(name)\" can be written again; \(lost) of its lines are lost"
        }
        guard !state.hasReportedGap, now >= state.quietUntil else { return nil }
        state.quietUntil = now + Self.reportIntervalSeconds
        state.hasReportedGap = true
        let consequence = isRequired ? "requests are refused" : "its lines are lost"
        return "cannot write the access log \"\(name)\": \(String(cString: strerror(state.failure))); "
            + "\(consequence) until it can be written"
    }
}
