// SPDX-License-Identifier: Apache-2.0

import CountersignSitePolicy
import Glibc

/// A process, by its folder in /proc (proc(5)). The descriptor stays with this process: when the process has ended,
/// every read fails, even if another process has the number by then.
struct ProcessFolder: ~Copyable {
    private let descriptor: Int32

    /// Nil if there is no such process, or no descriptor is left.
    init?(pid: Int32) {
        descriptor = open("/proc/\(pid)", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
    }

    deinit { close(descriptor) }

    /// The file that the process runs. Nil if the kernel does not tell this user, or if the process begins to run
    /// another file meanwhile.
    var executable: ClientFacts.Executable? {
        guard let file = fileIdentity, let path = link("exe"), fileIdentity == file else { return nil }
        return ClientFacts.Executable(path: path, file: file)
    }

    /// Its group of version 2.
    var controlGroup: ControlGroup? { contents(of: "cgroup").flatMap { ControlGroup(contents: $0) } }

    /// The owner of the folder: the effective user, or root if the process's memory is protected (PR_SET_DUMPABLE).
    var owner: UInt32? {
        var found = stat()
        return fstat(descriptor, &found) == 0 ? found.st_uid : nil
    }

    /// The effective user, and the numbers of the effective group and all supplementary groups.
    var credentials: (uid: UInt32, groups: Set<UInt32>)? {
        guard let status = contents(of: "status") else { return nil }
        var (uid, groups): (UInt32?, Set<UInt32>?)
        var group: UInt32?
        for line in status.utf8.split(separator: UInt8(ascii: "\n")) {
            let isWanted = ["Uid:", "Gid:", "Groups:"].contains { line.starts(with: $0.utf8) }
            guard isWanted else { continue }
            let fields = Substring(line).split { $0 == "\t" || $0 == " " }
            switch fields[0] {
            case "Uid:" where fields.count == 5: uid = UInt32(fields[2])
            case "Gid:" where fields.count == 5: group = UInt32(fields[2])
            default: groups = Set(fields.dropFirst().compactMap { UInt32($0) })
            }
        }
        guard let uid, let group, let groups else { return nil }
        return (uid, groups.union([group]))
    }

    /// When it began, in clock ticks since the system was started: the 22nd field of `stat`. The second is a name in
    /// parentheses, which may contain any byte.
    var startTicks: UInt64? {
        guard let stat = contents(of: "stat"), let name = stat.lastIndex(of: ")") else { return nil }
        let fields = stat[name...].split(separator: " ")
        return fields.count > 20 ? UInt64(fields[20]) : nil
    }

    /// Whether one of its descriptors is the socket with this inode.
    func holds(inode: UInt32) -> Bool {
        let files = openat(descriptor, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        return files >= 0 && ProcessOfSocket.contains(files, inode)
    }

    private var fileIdentity: ClientFacts.FileIdentity? {
        var found = stat()
        guard fstatat(descriptor, "exe", &found, 0) == 0 else { return nil }
        return ClientFacts.FileIdentity(device: UInt64(found.st_dev), inode: UInt64(found.st_ino))
    }

    private func link(_ name: String) -> String? {
        var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let length = target.withUnsafeMutableBytes { buffer in
            buffer.baseAddress.map { readlinkat(descriptor, name, $0, buffer.count) } ?? -1
        }
        guard length > 0, length < target.count else { return nil }
        return String(validating: target.prefix(length), as: UTF8.self)
    }

    /// Nil for a file that is too long.
    private func contents(of name: String) -> String? {
        let file = openat(descriptor, name, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 8192)
        var length = 0
        while length < bytes.count {
            let count = bytes.withUnsafeMutableBytes {
                read(file, $0.baseAddress?.advanced(by: length), $0.count - length)
            }
            guard count >= 0 else { return nil }
            if count == 0 { return String(decoding: bytes.prefix(length), as: UTF8.self) }
            length += count
        }
        return nil
    }
}
