// SPDX-License-Identifier: Apache-2.0

import Glibc

/// An IP address. An IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2) is the IPv4 address that it contains, as for the
/// kernel.
package struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// 4 or 16, in network order.
    package let bytes: [UInt8]

    /// Nil unless there are 4 or 16 bytes.
    package init?(bytes: [UInt8]) {
        switch bytes.count {
        case 4: self.bytes = bytes
        case 16:
            let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
            self.bytes = isMapped ? Array(bytes[12...]) : bytes
        default: return nil
        }
    }

    /// A dotted quad, or an IPv6 address without brackets and zone. Nil for anything else.
    package init?(_ text: String) {
        // A C string would end at a NUL.
        guard !text.utf8.contains(0) else { return nil }
        var room = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &room) == 1 {
            bytes = Array(room[..<4])
        } else if inet_pton(AF_INET6, text, &room) == 1, let address = IPAddress(bytes: room) {
            self = address
        } else {
            return nil
        }
    }

    /// In 127.0.0.0/8, or `::1`.
    package var isLoopback: Bool { bytes.count == 4 ? bytes[0] == 127 : bytes == Self.loopback6 }

    /// `0.0.0.0` or `::`, which Linux connects to this machine.
    package var isUnspecified: Bool { bytes.allSatisfy { $0 == 0 } }

    /// Whether the address leads to this machine or to its link on every machine: loopback, 0.0.0.0/8 and `::`,
    /// 169.254.0.0/16 and fe80::/10, and an IPv6 address that contains such an IPv4 address.
    ///
    /// The address of an interface is not among them, because others reach it, too.
    package var isLocal: Bool {
        if isLoopback || isUnspecified { return true }
        if bytes.count == 4 { return bytes[0] == 0 || (bytes[0] == 169 && bytes[1] == 254) }
        if bytes[0] == 0xFE, bytes[1] & 0xC0 == 0x80 { return true }
        return embedded?.isLocal ?? false
    }

    /// The IPv4 address in an IPv4-compatible address (RFC 4291 §2.5.5.1), one of NAT64 (RFC 6052 §2.1) or of 6to4 (RFC
    /// 3056 §2).
    private var embedded: IPAddress? {
        if bytes[..<12].allSatisfy({ $0 == 0 }) { return IPAddress(bytes: Array(bytes[12...])) }
        if bytes[..<4] == [0, 0x64, 0xFF, 0x9B], bytes[4..<12].allSatisfy({ $0 == 0 }) {
            return IPAddress(bytes: Array(bytes[12...]))
        }
        return bytes[..<2] == [0x20, 0x02] ? IPAddress(bytes: Array(bytes[2..<6])) : nil
    }

    package var description: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        inet_ntop(bytes.count == 4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count))
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private static let loopback6 = [UInt8](repeating: 0, count: 15) + [1]
}
