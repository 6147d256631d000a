// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// A temporary folder that only this user can open. This process removes it, even if the program that uses it fails. If
/// this process is killed as well, the next process that makes such a folder removes it.
final class LockedFolder: Sendable {
    let path: String
    /// Locked as long as the folder is in use; the kernel unlocks it with the end of the process.
    private let lock: Int32

    private static let lockName = "lock"

    /// Its name begins with `prefix`. `isInUse` returns whether another program than this one still uses a folder whose
    /// process has ended; that stays.
    init(
        _ prefix: String, in parent: String, isInUse: (_ path: String) -> Bool = { _ in false }
    ) throws(SignInError) {
        Self.removeAbandoned(prefix, in: parent, isInUse)
        var template = Array("\(parent)/\(prefix)XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw SignInError(.environment, "cannot create a folder in \(parent): \(String(cString: strerror(errno)))")
        }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        lock = Self.lock(path, O_CREAT | O_EXCL) ?? -1
    }

    /// Through it a window delivers configuration profiles, because WebKit writes downloads to files only. In memory,
    /// if the session has such a folder.
    static func delivery(_ environment: [String: String]) throws(SignInError) -> LockedFolder {
        try LockedFolder("countersign-profile-", in: parent(environment, ["XDG_RUNTIME_DIR", "TMPDIR"]))
    }

    /// For a browser's profile, which is too large for memory. A browser that outlives its sign-in would write into the
    /// profile again, so that waits for the browser's end.
    static func browser(_ environment: [String: String]) throws(SignInError) -> LockedFolder {
        try LockedFolder("countersign-browser-", in: parent(environment, ["TMPDIR"])) {
            BrowserProcesses(profile: $0).areRunning
        }
    }

    deinit {
        remove()
        if lock >= 0 { close(lock) }
    }

    /// Removes the folder with its content.
    func remove() { try? FileManager.default.removeItem(atPath: path) }

    private static func parent(_ environment: [String: String], _ variables: [String]) -> String {
        for name in variables {
            if let folder = environment[name], folder.hasPrefix("/"), access(folder, W_OK | X_OK) == 0 { return folder }
        }
        return "/tmp"
    }

    /// Nil if the folder is in use, or is not one of this user's.
    private static func lock(_ folder: String, _ flags: Int32 = 0) -> Int32? {
        var status = stat()
        guard lstat(folder, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid() else {
            return nil
        }
        let descriptor = open("\(folder)/\(lockName)", O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0o600)
        guard descriptor >= 0 else { return nil }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    private static func removeAbandoned(_ prefix: String, in parent: String, _ isInUse: (String) -> Bool) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: parent)) ?? []
        for path in names.filter({ $0.hasPrefix(prefix) }).map({ "\(parent)/\($0)" }) {
            guard let descriptor = lock(path) else { continue }
            if !isInUse(path) { try? FileManager.default.removeItem(atPath: path) }
            close(descriptor)
        }
    }
}
