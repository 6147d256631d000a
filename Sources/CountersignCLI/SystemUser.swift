// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// The user that this process runs as.
enum SystemUser {
    /// As the system's list of users has it (the one behind a set-user-ID to root), else `$USER`, else empty.
    static var name: String {
        listed(geteuid() == 0 ? getuid() : geteuid()) ?? ProcessInfo.processInfo.environment["USER"] ?? ""
    }

    private static func listed(_ number: uid_t) -> String? {
        var bytes = 1 << 10
        while bytes <= 1 << 20 {
            let (name, failure) = withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes) { room in
                guard let start = room.baseAddress else { return (nil as String?, ENOMEM) }
                var entry = passwd()
                var found: UnsafeMutablePointer<passwd>?
                let failure = getpwuid_r(number, &entry, start, room.count, &found)
                return (found?.pointee.pw_name.map { String(cString: $0) }, failure)
            }
            switch failure {
            case ERANGE: bytes *= 4
            case EINTR: continue
            default: return name
            }
        }
        return nil
    }
}
