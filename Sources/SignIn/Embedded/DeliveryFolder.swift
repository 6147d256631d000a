// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// A folder of this user's alone through which a window delivers configuration profiles, because WebKit writes
/// downloads to files only. It is this process that removes it, whatever becomes of the window. If this process is
/// killed as well, the next one to make such a folder removes it.
final class DeliveryFolder: Sendable {
    let path: String
    /// Locked as long as the folder is in use; the kernel unlocks it with the end of the process.
    private let lock: Int32

    private static let prefix = "countersign-profile-"
    private static let lockName = "lock"

    init(_ environment: [String: String]) throws(SignInError) {
        let parent = Self.parent(environment)
        Self.removeAbandoned(in: parent)
        var template = Array("\(parent)/\(Self.prefix)XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw SignInError(.environment, "cannot create a folder in \(parent): \(String(cString: strerror(errno)))")
        }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        lock = Self.lock(path, O_CREAT | O_EXCL) ?? -1
    }

    deinit {
        remove()
        if lock >= 0 { close(lock) }
    }

    /// Removes the folder and what is in it.
    func remove() { try? FileManager.default.removeItem(atPath: path) }

    /// In memory and this user's alone, if the session has such a folder.
    private static func parent(_ environment: [String: String]) -> String {
        for name in ["XDG_RUNTIME_DIR", "TMPDIR"] {
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

    private static func removeAbandoned(in parent: String) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: parent)) ?? []
        for name in names where name.hasPrefix(prefix) {
            guard let descriptor = lock("\(parent)/\(name)") else { continue }
            try? FileManager.default.removeItem(atPath: "\(parent)/\(name)")
            close(descriptor)
        }
    }
}
