// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// The user that runs this process.
enum SystemUser {
    /// The name from the user database, else `$USER`, else empty. For a set-user-ID root process, the calling user.
    static var name: String {
        listed(geteuid() == 0 ? getuid() : geteuid()) ?? ProcessInfo.processInfo.environment["USER"] ?? ""
    }

    private static func listed(_ number: uid_t) -> String? {
        var bytes = 1 << 10
        while bytes <= 1 << 20 {
            let (name, failure) = withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes) { buffer in
                guard let start = buffer.baseAddress else { return (nil as String?, ENOMEM) }
                var entry = passwd()
                var found: UnsafeMutablePointer<passwd>?
                let failure = getpwuid_r(number, &entry, start, buffer.count, &found)
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
