// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc

/// The right to refresh one identity of a home: `run/refresh-NAME.lock`, held by one process, and by one task of it, at a time.
/// What it came to stands in the file for those who waited.
package final class RenewalLock: Sendable {
    private let descriptor: Int32
    /// What the holder before came to, when this one had to wait for it and it came to an end.
    let earlier: Note?

    /// What a refresh came to, for another one.
    enum Note: Equatable, Sendable {
        case done
        case failed(String, hint: String?)
    }

    private static let noteBytes = 4096

    private init(descriptor: Int32, earlier: Note?) {
        self.descriptor = descriptor
        self.earlier = earlier
    }

    deinit { Self.release(descriptor) }

    /// Said in so many words: a child that is just being started has a copy of the descriptor until it is the other program,
    /// and a lock lasts as long as the last of them.
    private static func release(_ descriptor: Int32) {
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    /// The lock, or nil where somebody has it.
    package static func acquireIfFree(_ name: String, of home: Home) throws(CountersignError) -> RenewalLock? {
        let descriptor = try file(name, of: home)
        do throws(CountersignError) {
            if try isLocked(descriptor, name) { return try taken(descriptor, earlier: nil, name) }
        } catch {
            release(descriptor)
            throw error
        }
        release(descriptor)
        return nil
    }

    /// The lock, as soon as nobody else has it; nil when that takes longer than `patience`. `waits` is called once when
    /// somebody has.
    static func acquire(
        _ name: String, of home: Home, patience: Duration, waits: () -> Void
    ) async throws -> RenewalLock? {
        let descriptor = try file(name, of: home)
        let deadline = ContinuousClock.now + patience
        var isWaiting = false
        do {
            while try !isLocked(descriptor, name) {
                guard ContinuousClock.now < deadline else {
                    release(descriptor)
                    return nil
                }
                if !isWaiting { waits() }
                isWaiting = true
                try await Task.sleep(for: .milliseconds(100))
            }
            return try taken(descriptor, earlier: isWaiting ? note(in: descriptor) : nil, name)
        } catch {
            release(descriptor)
            throw error
        }
    }

    /// Tells those who wait what this refresh came to.
    func leave(_ note: Note) {
        let text =
            switch note {
            case .done: "done\n"
            case .failed(let detail, let hint): "failed\n\(Self.line(detail))\n\(hint.map(Self.line) ?? "")\n"
            }
        let bytes = Array(text.utf8.prefix(Self.noteBytes))
        _ = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
    }

    private static func line(_ text: String) -> String {
        String(text.map { $0.isNewline ? " " : $0 })
    }

    private static func note(in descriptor: Int32) -> Note? {
        var bytes = [UInt8](repeating: 0, count: noteBytes)
        let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
        let lines = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false)
        switch lines.first {
        case "done": return .done
        case "failed" where lines.count >= 3:
            return .failed(String(lines[1]), hint: lines[2].isEmpty ? nil : String(lines[2]))
        default: return nil
        }
    }

    private static func file(_ name: String, of home: Home) throws(CountersignError) -> Int32 {
        let path = home.file("run/refresh-\(name).lock").path
        try home.prepare()
        try HomeFile.makeFolder(HomeFile.folder(of: path), mode: 0o700)
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .system(errno, "cannot open \(path)") }
        return descriptor
    }

    private static func isLocked(_ descriptor: Int32, _ name: String) throws(CountersignError) -> Bool {
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
        guard errno == EWOULDBLOCK || errno == EINTR else {
            throw .system(errno, "cannot lock the refresh of identity \(name.debugDescription)")
        }
        return false
    }

    /// Nobody is to take an older note for this holder's, should it be stopped.
    private static func taken(
        _ descriptor: Int32, earlier: Note?, _ name: String
    ) throws(CountersignError) -> RenewalLock {
        guard ftruncate(descriptor, 0) == 0 else {
            throw .system(errno, "cannot lock the refresh of identity \(name.debugDescription)")
        }
        return RenewalLock(descriptor: descriptor, earlier: earlier)
    }
}
