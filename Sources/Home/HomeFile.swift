// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
package import Glibc
import Synchronization

/// A file that is read or replaced as a whole. Errors refer to it by `name`.
package struct HomeFile: Sendable {
    package let path: String
    package let name: String

    package init(path: String, name: String? = nil) {
        self.path = path
        self.name = name ?? path
    }

    /// Without symbolic links; nil if there is no such file.
    package static func absolutePath(_ name: String) -> String? {
        guard let path = realpath(name, nil) else { return nil }
        defer { free(path) }
        return String(cString: path)
    }

    /// The contents, or nil if there is no such file. Throws if it is not a regular file or exceeds `limitBytes`.
    package func readIfThere(upTo limitBytes: Int) throws(CountersignError) -> [UInt8]? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        guard file >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw .system(errno, "cannot read \(name)", hint: Self.hint(for: errno, path))
        }
        defer { close(file) }
        var found = stat()
        guard fstat(file, &found) == 0 else { throw .system(errno, "cannot read \(name)") }
        guard found.st_mode & S_IFMT == S_IFREG else {
            throw CountersignError(
                .configuration, "\(name) is not a regular file", hint: "`ls -ld \(quotedPath)` shows what it is")
        }
        guard found.st_size <= limitBytes else { throw tooLarge(limitBytes) }
        return try contents(of: file, about: Int(found.st_size), upTo: limitBytes)
    }

    /// The contents. Throws also if there is no such file.
    package func read(upTo limitBytes: Int) throws(CountersignError) -> [UInt8] {
        guard let bytes = try readIfThere(upTo: limitBytes) else { throw .system(ENOENT, "cannot read \(name)") }
        return bytes
    }

    /// Reads to the end. `size` is the expected size: the kernel reports 0 for its own files, and some of those must be
    /// read with a single call.
    package func contents(of file: Int32, about size: Int, upTo limitBytes: Int) throws(CountersignError) -> [UInt8] {
        var bytes: [UInt8] = []
        var capacity = max(size + 1, 4096)
        while true {
            var count = 0
            var reason: Int32 = 0
            let piece = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, filled in
                count = Glibc.read(file, buffer.baseAddress, buffer.count)
                reason = errno
                filled = max(count, 0)
            }
            if count < 0, reason == EINTR { continue }
            guard count >= 0 else { throw .system(reason, "cannot read \(name)") }
            if count == 0 { return bytes }
            if bytes.isEmpty { bytes = piece } else { bytes += piece }
            guard bytes.count <= limitBytes else { throw tooLarge(limitBytes) }
            capacity = 64 << 10
        }
    }

    private func tooLarge(_ limitBytes: Int) -> CountersignError {
        CountersignError(
            .configuration, "\(name) is larger than \(limitBytes) bytes",
            hint: "`head -c 200 \(quotedPath)` shows how it begins; another file may be meant")
    }

    private var quotedPath: String { ShellWord.quoted(path) }

    /// Numbers the temporary files, because two threads of a process may replace the same file.
    private static let written = Atomic(0)

    /// Replaces the contents atomically, creating the folders above the file. Does nothing if the contents are the same
    /// already. Without `isDurable`, the contents may be lost in a crash of the system.
    package func replace(
        with bytes: [UInt8], mode: mode_t = 0o644, isDurable: Bool = true
    ) throws(CountersignError) {
        if (try? readIfThere(upTo: bytes.count)) == bytes { return }
        try Self.makeFolders(above: path)
        let (temporary, file) = try temporaryFile(mode)
        do throws(CountersignError) {
            defer { close(file) }
            try write(bytes, to: file)
            guard fchmod(file, mode) == 0, !isDurable || fsync(file) == 0, rename(temporary, path) == 0 else {
                throw .system(errno, "cannot write \(name)")
            }
        } catch {
            _ = unlink(temporary)
            throw error
        }
        if isDurable { Self.syncFolder(above: path) }
    }

    /// New contents in a temporary file beside this one, for ``Prepared/commit()``.
    package func prepared(with bytes: [UInt8], mode: mode_t = 0o644) throws(CountersignError) -> Prepared {
        try Self.makeFolders(above: path)
        let (temporary, file) = try temporaryFile(mode)
        let prepared = Prepared(file: self, temporary: temporary, descriptor: file)
        try write(bytes, to: file)
        guard fchmod(file, mode) == 0, fsync(file) == 0 else { throw .system(errno, "cannot write \(name)") }
        return prepared
    }

    /// Contents that have their room on the disk already. They are discarded with this object, unless they are
    /// committed.
    package final class Prepared {
        private let file: HomeFile
        private var temporary: String?
        private let descriptor: Int32

        fileprivate init(file: HomeFile, temporary: String, descriptor: Int32) {
            self.file = file
            self.temporary = temporary
            self.descriptor = descriptor
        }

        deinit {
            if let temporary { _ = unlink(temporary) }
            close(descriptor)
        }

        /// Replaces the file's contents, atomically.
        package func commit() throws(CountersignError) {
            guard let temporary else { return }
            guard rename(temporary, file.path) == 0 else { throw .system(errno, "cannot write \(file.name)") }
            self.temporary = nil
            HomeFile.syncFolder(above: file.path)
        }
    }

    private static let temporarySuffix = ".new"

    /// Creates a file beside this one. It is locked, so that ``removeAbandoned(in:)`` can see that it is being written.
    private func temporaryFile(_ mode: mode_t) throws(CountersignError) -> (path: String, descriptor: Int32) {
        while true {
            let number = Self.written.add(1, ordering: .relaxed).newValue
            let temporary = "\(path).\(getpid()).\(number)\(Self.temporarySuffix)"
            _ = unlink(temporary)
            let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)
            guard file >= 0 else { throw .system(errno, "cannot write \(name)", hint: Self.hint(for: errno, path)) }
            var found = stat()
            // A file that was removed before it was locked has no name.
            if flock(file, LOCK_EX) != 0 || fstat(file, &found) != 0 || found.st_nlink > 0 { return (temporary, file) }
            close(file)
        }
    }

    /// Whether a temporary file of this type can have this name.
    package static func isTemporary(_ name: String) -> Bool {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count >= 4 && name.hasSuffix(temporarySuffix)
            && parts.dropLast().suffix(2).allSatisfy { UInt64($0) != nil }
    }

    /// Whether it exists and is a regular file, or a link to one.
    package var isRegular: Bool {
        var found = stat()
        return stat(path, &found) == 0 && found.st_mode & S_IFMT == S_IFREG
    }

    /// Throws if the folder of the file does not exist.
    package func requireFolder() throws(CountersignError) {
        let folder = Self.folder(of: path)
        var found = stat()
        guard stat(folder, &found) == 0 else {
            if errno == ENOENT || errno == ENOTDIR {
                throw CountersignError(
                    .environment, "cannot create \(name): no such folder: \(folder)",
                    hint: "`mkdir -p \(ShellWord.quoted(folder))` creates it")
            }
            throw .system(errno, "cannot create \(name)", hint: Self.hint(for: errno, path))
        }
        guard found.st_mode & S_IFMT == S_IFDIR else {
            throw CountersignError(
                .environment, "cannot create \(name): \(folder) is not a folder",
                hint: "`ls -ld \(ShellWord.quoted(folder))` shows what it is")
        }
    }

    /// Removes the temporary files of writers that were killed, in `folder`. Errors are ignored: such a file does no
    /// harm, and the next call tries again.
    static func removeAbandoned(in folder: String) {
        guard let entries = opendir(folder) else { return }
        defer { closedir(entries) }
        while let entry = readdir(entries) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard isTemporary(name) else { continue }
            let file = open("\(folder)/\(name)", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
            guard file >= 0 else { continue }
            if flock(file, LOCK_EX | LOCK_NB) == 0 { _ = unlink("\(folder)/\(name)") }
            close(file)
        }
    }

    /// Removes the file, and returns whether it existed.
    @discardableResult
    package func remove() throws(CountersignError) -> Bool {
        guard unlink(path) == 0 else {
            if errno == ENOENT || errno == ENOTDIR { return false }
            throw .system(errno, "cannot remove \(name)")
        }
        Self.syncFolder(above: path)
        return true
    }

    /// Writes all bytes to an open file.
    package func write(_ bytes: [UInt8], to file: Int32) throws(CountersignError) {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.write(file, $0.baseAddress.map { $0 + written }, $0.count - written)
            }
            guard count >= 0 || errno == EINTR else { throw .system(errno, "cannot write \(name)") }
            written += max(count, 0)
        }
    }

    // MARK: Folders

    /// The folder part of a path; `.` if the path has no slash.
    package static func folder(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// The path with symbolic links resolved, or nil if it does not exist.
    package static func resolved(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// Creates the folder and any missing folders above it.
    package static func makeFolder(_ path: String, mode: mode_t) throws(CountersignError) {
        guard mkdir(path, mode) != 0, errno != EEXIST else { return }
        let reason = errno
        let above = folder(of: path)
        guard reason == ENOENT, above != path else {
            throw .system(reason, "cannot create the folder \(path)", hint: hint(for: reason, path))
        }
        try makeFolder(above, mode: 0o755)
        guard mkdir(path, mode) == 0 || errno == EEXIST else {
            throw .system(errno, "cannot create the folder \(path)")
        }
    }

    private static func makeFolders(above path: String) throws(CountersignError) {
        try makeFolder(folder(of: path), mode: 0o755)
    }

    fileprivate static func syncFolder(above path: String) {
        let folder = open(folder(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { return }
        _ = fsync(folder)
        close(folder)
    }

    private static func hint(for number: Int32, _ path: String) -> String? {
        number == EACCES || number == EPERM ? "check the permissions: `ls -ld \(folder(of: path)) \(path)`" : nil
    }
}
