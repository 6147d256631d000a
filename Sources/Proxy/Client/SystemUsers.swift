// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The system's user database (getpwuid_r(3), getpwnam_r(3)). A look-up may ask the network, so it must not run on an
/// event loop.
package enum SystemUsers {
    /// The name of a user; nil if it has none.
    package static func name(of number: UInt32) -> String? {
        find({ getpwuid_r(number, $0, $1, $2, $3) }, { $0.pw_name.map { String(cString: $0) } })
    }

    /// The number of the user with this name.
    package static func number(of name: String) -> UInt32? {
        find({ getpwnam_r(name, $0, $1, $2, $3) }, { $0.pw_uid })
    }

    private static func find<Value>(
        _ look: (
            UnsafeMutablePointer<passwd>, UnsafeMutablePointer<CChar>, Int,
            UnsafeMutablePointer<UnsafeMutablePointer<passwd>?>
        ) -> Int32, _ read: (passwd) -> Value?
    ) -> Value? {
        var bytes = 1 << 10
        while bytes <= 1 << 20 {
            let (value, failure) = withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes) { buffer in
                guard let start = buffer.baseAddress else { return (nil as Value?, ENOMEM) }
                var entry = passwd()
                var found: UnsafeMutablePointer<passwd>?
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
