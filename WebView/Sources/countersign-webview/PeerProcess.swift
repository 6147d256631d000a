// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK
import Glibc

/// Which process has the other end of a connection on loopback.
enum PeerProcess {
    /// Whether the other end is a socket of this user's, in a child of this process.
    static func isChild(peerPort: UInt16, ownPort: UInt16) -> Bool {
        guard let inode = inode(peerPort, ownPort) else { return false }
        let target = "socket:[\(inode)]"
        return children.contains { child in
            names("/proc/\(child)/fd").contains { link("/proc/\(child)/fd/\($0)") == target }
        }
    }

    /// proc(5): `/proc/net/tcp` has addresses in hexadecimal, in the machine's byte order.
    private static func inode(_ peerPort: UInt16, _ ownPort: UInt16) -> String? {
        func address(_ port: UInt16) -> String {
            let digits = String(port, radix: 16, uppercase: true)
            return "0100007F:" + String(repeating: "0", count: 4 - digits.count) + digits
        }
        for line in (contents("/proc/net/tcp") ?? "").split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count > 9, fields[1] == address(peerPort), fields[2] == address(ownPort) else { continue }
            // A socket without an owner has inode 0 and user 0.
            return fields[7] == String(geteuid()) && fields[9] != "0" ? String(fields[9]) : nil
        }
        return nil
    }

    private static var children: [String] {
        let own = String(getpid())
        return names("/proc").filter { name in
            guard name.allSatisfy(\.isNumber), let stat = contents("/proc/\(name)/stat"),
                let end = stat.lastIndex(of: ")")
            else { return false }
            let fields = stat[end...].split(separator: " ")
            return fields.count > 2 && fields[2] == own
        }
    }

    private static func names(_ folder: String) -> [String] {
        guard let directory = g_dir_open(folder, 0, nil) else { return [] }
        defer { g_dir_close(directory) }
        var names: [String] = []
        while let name = g_dir_read_name(directory) { names.append(String(cString: name)) }
        return names
    }

    private static func contents(_ path: String) -> String? {
        var text: UnsafeMutablePointer<gchar>?
        guard g_file_get_contents(path, &text, nil, nil) != 0, let text else { return nil }
        defer { g_free(text) }
        return String(cString: text)
    }

    private static func link(_ path: String) -> String? {
        guard let text = g_file_read_link(path, nil) else { return nil }
        defer { g_free(text) }
        return String(cString: text)
    }
}
