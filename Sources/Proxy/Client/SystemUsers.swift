// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The system's databases of users and groups (getpwuid_r(3), getpwnam_r(3), getgrnam_r(3)). A look-up may ask the
/// network, so it must not run on an event loop.
package enum SystemUsers {
    /// The name of a user; nil if it has none.
    package static func name(of number: UInt32) -> String? {
        find(passwd(), { getpwuid_r(number, $0, $1, $2, $3) }, { $0.pw_name.map { String(cString: $0) } })
    }

    /// The number of the user with this name.
    package static func number(of name: String) -> UInt32? {
        find(passwd(), { getpwnam_r(name, $0, $1, $2, $3) }, { $0.pw_uid })
    }

    /// The number of the group with this name.
    package static func number(ofGroup name: String) -> UInt32? {
        find(group(), { getgrnam_r(name, $0, $1, $2, $3) }, { $0.gr_gid })
    }

    private static func find<Entry, Value>(
        _ empty: Entry,
        _ look: (
            UnsafeMutablePointer<Entry>, UnsafeMutablePointer<CChar>, Int,
            UnsafeMutablePointer<UnsafeMutablePointer<Entry>?>
        ) -> Int32, _ read: (Entry) -> Value?
    ) -> Value? {
        var bytes = 1 << 10
        while bytes <= 1 << 20 {
            let (value, failure) = withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes) { buffer in
                guard let start = buffer.baseAddress else { return (nil as Value?, ENOMEM) }
                var entry = empty
                var found: UnsafeMutablePointer<Entry>?
                let failure = look(&entry, start, buffer.count, &found)
                return (found.flatMap { read($0.pointee) }, failure)
            }
            switch failure {
            case ERANGE: bytes *= 4
            case EINTR: continue
            default: return value
            }
        }
        return nil
    }
}
