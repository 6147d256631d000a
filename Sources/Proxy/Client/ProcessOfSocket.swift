// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc

/// Finds the process that holds a socket in /proc. It reads the entries of all processes, so it must not run on an
/// event loop.
enum ProcessOfSocket {
    /// The first one in the order of numbers, usually the oldest. With `uid`, only among that user's processes.
    static func find(inode: UInt32, uid: UInt32? = nil) -> Int32? {
        var found: Int32?
        eachProcess { pid in
            if uid == nil || user(of: pid) == uid, holds(pid, inode) { found = pid }
            return found == nil
        }
        return found
    }

    /// The name of the process's program, in printable characters (proc(5), /proc/PID/comm).
    static func name(of pid: Int32) -> String? {
        let file = open("/proc/\(pid)/comm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = read(file, &bytes, bytes.count)
        guard count > 1 else { return nil }
        return PrintableText.escaped(String(decoding: bytes[..<(count - 1)], as: UTF8.self))
    }

    /// Whether a descendant of the process `ancestor` holds the socket. A process whose files cannot be read, or whose
    /// parents have exited, does not count.
    static func isHeld(byDescendantOf ancestor: Int32, inode: UInt32) -> Bool {
        // The kernel reports 0 for a process that is not visible here, and that is also the parent of process 1.
        guard ancestor > 0 else { return false }
        var parents: [Int32: Int32] = [:]
        eachProcess { pid in
            parents[pid] = parent(of: pid)
            return true
        }
        var family: Set<Int32> = [ancestor]
        var size = 0
        while family.count > size {
            size = family.count
            for (pid, parent) in parents where family.contains(parent) { family.insert(pid) }
        }
        family.remove(ancestor)
        return family.contains { holds($0, inode) }
    }

    /// The fourth field of /proc/PID/stat (proc(5)). The second is a name in parentheses, which may contain any byte.
    private static func parent(of pid: Int32) -> Int32? {
        let file = open("/proc/\(pid)/stat", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 1024)
        let count = read(file, &bytes, bytes.count)
        guard count > 0, let name = bytes.prefix(count).lastIndex(of: UInt8(ascii: ")")) else { return nil }
        let fields = bytes[..<count][(name + 1)...].split(separator: UInt8(ascii: " "))
        return fields.count > 1 ? Int32(String(decoding: fields[1], as: UTF8.self)) : nil
    }

    private static func holds(_ pid: Int32, _ inode: UInt32) -> Bool {
        let files = open("/proc/\(pid)/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        return files >= 0 && contains(files, inode)
    }

    /// Whether one of the links in the folder `files`, /proc/PID/fd, leads to the socket. Closes the descriptor.
    static func contains(_ files: Int32, _ inode: UInt32) -> Bool {
        guard let folder = fdopendir(files) else {
            close(files)
            return false
        }
        defer { closedir(folder) }
        let wanted = Array("socket:[\(inode)]".utf8)
        return withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { target in
            guard let start = target.baseAddress else { return false }
            while let file = readdir(folder) {
                let length = withUnsafePointer(to: &file.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { readlinkat(files, $0, start, target.count) }
                }
                if length == wanted.count, target.prefix(length).elementsEqual(wanted) { return true }
            }
            return false
        }
    }

    /// The effective user, which owns the process's folder.
    private static func user(of pid: Int32) -> UInt32? {
        var found = stat()
        return stat("/proc/\(pid)", &found) == 0 ? found.st_uid : nil
    }

    /// Calls `body` with each process until it returns false.
    private static func eachProcess(_ body: (Int32) -> Bool) {
        guard let processes = opendir("/proc") else { return }
        defer { closedir(processes) }
        while let entry = readdir(processes) {
            if let pid = Int32(name(of: entry)), !body(pid) { return }
        }
    }

    private static func name(of entry: UnsafeMutablePointer<dirent>) -> String {
        withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
    }
}
