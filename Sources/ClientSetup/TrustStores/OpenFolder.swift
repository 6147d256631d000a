// SPDX-License-Identifier: Apache-2.0

import CountersignCLinux
import CountersignHome
import Glibc

/// A folder that is held open. Its entries are reached through the descriptor and symbolic links are never followed,
/// so that root, in a folder of another user, does not follow a planted link.
final class OpenFolder {
    private let descriptor: Int32

    /// Returns nil if there is no such folder, or if the path's last part is a symbolic link.
    convenience init?(_ path: String) { self.init(adopting: Glibc.open(path, Self.flags)) }

    /// The folder of that name in this one; nil as for a path.
    func folder(_ name: String) -> OpenFolder? { OpenFolder(adopting: openat(descriptor, name, Self.flags)) }

    private static let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC

    private init?(adopting descriptor: Int32) {
        guard descriptor >= 0 else { return nil }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Waits until no other process holds the folder's lock. It is held until this object is released.
    func lock() { while flock(descriptor, LOCK_EX) != 0, errno == EINTR {} }

    // MARK: Entries

    /// Nil if there is no such entry. Describes a symbolic link itself.
    func status(of name: String) -> stat? {
        var found = stat()
        return fstatat(descriptor, name, &found, AT_SYMLINK_NOFOLLOW) == 0 ? found : nil
    }

    func has(_ name: String) -> Bool { status(of: name) != nil }

    /// Whether the entry is a regular file without another name.
    func hasFile(_ name: String) -> Bool {
        status(of: name).map { $0.st_mode & S_IFMT == S_IFREG && $0.st_nlink == 1 } ?? false
    }

    /// Empty if the folder cannot be read.
    func names() -> [String] {
        let copy = openat(descriptor, ".", Self.flags)
        guard copy >= 0, let entries = fdopendir(copy) else {
            if copy >= 0 { close(copy) }
            return []
        }
        defer { closedir(entries) }
        var names: [String] = []
        while let entry = readdir(entries) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    // MARK: Files

    /// A descriptor for reading, or -1.
    func open(reading name: String) -> Int32 {
        openat(descriptor, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
    }

    /// At most `limitBytes` of a regular file; nil if it cannot be read.
    func contents(of name: String, upTo limitBytes: Int) -> [UInt8]? {
        let file = open(reading: name)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var found = stat()
        guard fstat(file, &found) == 0, found.st_mode & S_IFMT == S_IFREG else { return nil }
        return try? HomeFile(path: name).contents(of: file, about: Int(found.st_size), upTo: limitBytes)
    }

    /// Creates a file with the permissions and, for root, the owner of `model`. Returns false if the name is taken or
    /// the file cannot be written completely.
    func create(_ name: String, with bytes: [UInt8], like model: stat) -> Bool {
        let file = openat(descriptor, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else { return false }
        defer { close(file) }
        // The owner first, because a change of the owner may clear permissions.
        guard geteuid() != 0 || fchown(file, model.st_uid, model.st_gid) == 0,
            fchmod(file, model.st_mode & 0o777) == 0, (try? HomeFile(path: name).write(bytes, to: file)) != nil
        else { return false }
        return fsync(file) == 0
    }

    /// Creates a folder for this user only and, for root, gives it to the owner of this one.
    func makeFolder(_ name: String) -> OpenFolder? {
        guard mkdirat(descriptor, name, 0o700) == 0, let made = folder(name) else { return nil }
        var found = stat()
        guard fstat(descriptor, &found) == 0,
            geteuid() != 0 || fchown(made.descriptor, found.st_uid, found.st_gid) == 0
        else { return nil }
        return made
    }

    // MARK: Moving and removing

    /// Moves an entry to a name that is free in the other folder.
    func move(_ name: String, to other: OpenFolder) -> Bool {
        csn_rename_new(descriptor, name, other.descriptor, name) == 0
    }

    /// Replaces the file `target` of this folder by another one.
    func rename(_ name: String, to target: String) -> Bool { renameat(descriptor, name, descriptor, target) == 0 }

    /// Exchanges the entries of that name in both folders, in one step.
    func exchange(_ name: String, with other: OpenFolder) -> Bool {
        csn_rename_exchange(descriptor, name, other.descriptor, name) == 0
    }

    /// Removes a file or a symbolic link.
    func remove(_ name: String) { _ = unlinkat(descriptor, name, 0) }

    /// Removes a folder with its contents, or a file or a link.
    func removeAll(_ name: String) {
        if let folder = folder(name) {
            for entry in folder.names() { folder.removeAll(entry) }
            _ = unlinkat(descriptor, name, AT_REMOVEDIR)
        } else {
            remove(name)
        }
    }

    /// Writes everything about the entries to the disk.
    func sync() { _ = fsync(descriptor) }
}
