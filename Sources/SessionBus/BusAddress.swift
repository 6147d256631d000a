// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc

/// Where the bus of the user's session is.
package enum BusAddress {
    /// Why ``session(in:)`` is nil.
    package static let reasonForNone =
        "DBUS_SESSION_BUS_ADDRESS is not set, and XDG_RUNTIME_DIR has no socket called bus"

    /// As the environment names it (D-Bus specification, "Well-known Message Bus Instances"); nil if there is none. No
    /// bus is started.
    package static func session(in environment: [String: String]) -> String? {
        if let address = environment["DBUS_SESSION_BUS_ADDRESS"], !address.isEmpty { return address }
        guard let folder = environment["XDG_RUNTIME_DIR"], access("\(folder)/bus", F_OK) == 0 else { return nil }
        return "unix:path=\(escaped("\(folder)/bus"))"
    }

    /// A value in an address: bytes other than these are written as `%` and two digits.
    private static func escaped(_ path: String) -> String {
        path.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                String(Unicode.Scalar(byte))
            default:
                "-_/.\\*".utf8.contains(byte) ? String(Unicode.Scalar(byte)) : "%" + Hex.encode([byte])
            }
        }.joined()
    }
}
