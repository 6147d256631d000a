// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
package import CountersignHome
import Glibc

/// The exclusive right to renew one identity of a home: a lock on `run/refresh-NAME.lock`, held by one task of one
/// process at a time. The holder records the outcome in the file, for the processes that wait for the lock.
package final class RenewalLock: Sendable {
    private let descriptor: Int32
    /// The outcome of the previous holder; nil if this one did not have to wait, or the previous holder was stopped.
    let previousOutcome: Outcome?

    /// The outcome of a renewal.
    enum Outcome: Equatable, Sendable {
        case done
        case failed(String, hint: String?)
        /// The holder has new tokens of a sign-in and cannot store them, for this reason.
        case unstored(String)
    }

    /// The largest size of the file, in bytes.
    private static let outcomeBytes = 4096
    /// The length of most outcomes, in bytes.
    private static let reservedBytes = 512

    private init(descriptor: Int32, previousOutcome: Outcome?) {
        self.descriptor = descriptor
        self.previousOutcome = previousOutcome
    }

    deinit { Self.release(descriptor) }

    /// Unlocks explicitly instead of relying on `close`: a child process has a copy of the descriptor until it calls
    /// `exec`, and the lock would last until the last copy is closed.
    private static func release(_ descriptor: Int32) {
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    /// The lock's name for a sign-in, whose name may be that of an identity, too.
    static func name(ofSignIn name: String) -> String { "sign-in-\(name)" }

    /// Acquires the lock, or returns nil if it is held.
    package static func acquireIfFree(_ name: String, of home: Home) throws(CountersignError) -> RenewalLock? {
        let descriptor = try openFile(name, of: home)
        do throws(CountersignError) {
            if try tryLock(descriptor, name) { return try claim(descriptor, previousOutcome: nil, name) }
        } catch {
            release(descriptor)
            throw error
        }
        release(descriptor)
        return nil
    }

    /// Why the holder of the lock cannot store the tokens that it has; nil if nobody holds it, or the holder has no
    /// such tokens.
    static func unstoredReason(_ name: String, of home: Home) -> String? {
        let descriptor = open(path(name, of: home), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        defer { release(descriptor) }
        guard flock(descriptor, LOCK_SH | LOCK_NB) != 0, case .unstored(let reason) = outcome(in: descriptor) else {
            return nil
        }
        return reason
    }

    /// Waits for the lock, or returns nil if it is not free within `patience`. Calls `waits` once if it has to wait.
    static func acquire(
        _ name: String, of home: Home, patience: Duration, waits: () -> Void
    ) async throws -> RenewalLock? {
        let descriptor = try openFile(name, of: home)
        let deadline = ContinuousClock.now + patience
        var isWaiting = false
        do {
            while try !tryLock(descriptor, name) {
                guard ContinuousClock.now < deadline else {
                    release(descriptor)
                    return nil
                }
                if !isWaiting { waits() }
                isWaiting = true
                try await Task.sleep(for: .milliseconds(100))
            }
            return try claim(descriptor, previousOutcome: isWaiting ? outcome(in: descriptor) : nil, name)
        } catch {
            release(descriptor)
            throw error
        }
    }

    /// Takes room for an outcome, which can then be recorded on a full disk as well.
    func reserve() { write("\n" + String(repeating: " ", count: Self.reservedBytes - 1)) }

    /// Records the outcome for the processes that wait.
    func record(_ outcome: Outcome) {
        switch outcome {
        case .done: write("done\n")
        case .failed(let detail, let hint): write("failed\n\(Self.line(detail))\n\(hint.map(Self.line) ?? "")\n")
        case .unstored(let reason): write("unstored\n\(Self.line(reason))\n")
        }
    }

    private func write(_ text: String) {
        let bytes = Array(text.utf8.prefix(Self.outcomeBytes))
        _ = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
    }

    private static func line(_ text: String) -> String {
        String(text.map { $0.isNewline ? " " : $0 })
    }

    private static func outcome(in descriptor: Int32) -> Outcome? {
        var bytes = [UInt8](repeating: 0, count: outcomeBytes)
        let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
        let lines = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false)
        switch lines.first {
        case "done": return .done
        case "failed" where lines.count >= 3:
            return .failed(String(lines[1]), hint: lines[2].isEmpty ? nil : String(lines[2]))
        case "unstored" where lines.count >= 2: return .unstored(String(lines[1]))
        default: return nil
        }
    }

    private static func path(_ name: String, of home: Home) -> String { home.file("run/refresh-\(name).lock").path }

    private static func openFile(_ name: String, of home: Home) throws(CountersignError) -> Int32 {
        let path = path(name, of: home)
        try home.prepare()
        try HomeFile.makeFolder(HomeFile.folder(of: path), mode: 0o700)
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .system(errno, "cannot open \(path)") }
        return descriptor
    }

    private static func tryLock(_ descriptor: Int32, _ name: String) throws(CountersignError) -> Bool {
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
        guard errno == EWOULDBLOCK || errno == EINTR else {
            throw .system(errno, "cannot lock the renewal of identity \(name.debugDescription)")
        }
        return false
    }

    /// Clears the file, so that a waiting process cannot mistake an earlier outcome for this holder's if it is killed.
    private static func claim(
        _ descriptor: Int32, previousOutcome: Outcome?, _ name: String
    ) throws(CountersignError) -> RenewalLock {
        guard ftruncate(descriptor, 0) == 0 else {
            throw .system(errno, "cannot lock the renewal of identity \(name.debugDescription)")
        }
        return RenewalLock(descriptor: descriptor, previousOutcome: previousOutcome)
    }
}
