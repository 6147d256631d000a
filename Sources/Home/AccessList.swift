// SPDX-License-Identifier: Apache-2.0

import CountersignCLinux

/// The users and groups that may write to a file by its access control list (acl(5)), beyond its mode.
struct AccessList {
    /// The users with an entry of their own that permits writing.
    private(set) var writers: [UInt32] = []
    /// The groups with such an entry.
    private(set) var writingGroups: [UInt32] = []
    private(set) var owningGroupMayWrite = false

    /// Nil if the file has no list, so that the mode says everything.
    init?(of path: String) {
        let name = "system.posix_acl_access"
        let size = csn_getxattr(path, name, nil, 0)
        guard size > 0 else { return nil }
        var value = [UInt8](repeating: 0, count: size)
        let count = value.withUnsafeMutableBytes { csn_getxattr(path, name, $0.baseAddress, $0.count) }
        guard count > 0 else { return nil }
        self.init(parsing: Array(value.prefix(count)))
    }

    /// The kernel's format, little-endian: a version of 4 bytes, then entries with a tag and permissions of 2 bytes
    /// each, and the number of a user or group of 4 bytes. Nil for any other.
    init?(parsing value: [UInt8]) {
        func number(at start: Int, bytes: Int) -> UInt32 {
            (0..<bytes).reduce(0) { $0 | UInt32(value[start + $1]) << (8 * UInt32($1)) }
        }
        guard value.count >= 4, value.count % 8 == 4, number(at: 0, bytes: 4) == 2 else { return nil }
        let entries = stride(from: 4, to: value.count, by: 8).map { start in
            (
                tag: number(at: start, bytes: 2), permissions: number(at: start + 2, bytes: 2),
                number: number(at: start + 4, bytes: 4)
            )
        }
        // The mask limits all entries but those of the owner and of the others.
        let mask = entries.first { $0.tag == Self.mask }?.permissions ?? 7
        for (tag, permissions, number) in entries where permissions & mask & Self.write != 0 {
            switch tag {
            case Self.user: writers.append(number)
            case Self.group: writingGroups.append(number)
            case Self.owningGroup: owningGroupMayWrite = true
            default: break
            }
        }
    }

    private static let write: UInt32 = 2
    private static let (user, owningGroup, group, mask): (UInt32, UInt32, UInt32, UInt32) = (2, 4, 8, 16)
}
