// SPDX-License-Identifier: Apache-2.0

/// The IP addresses from which a status may be fetched. A certificate must not make this machine send requests to
/// itself or into a private network, unless its trust anchor is one that the user has added.
///
/// Applied to the address of each connection, so that the resolution of a name, and its time, do not matter.
struct AddressRule {
    /// Whether loopback, private and link-local addresses are permitted.
    let mayBeLocal: Bool

    /// `bytes` are 4 or 16, in network order.
    func permits(_ bytes: [UInt8]) -> Bool {
        switch Self.kind(of: bytes) {
        case .global: true
        case .local: mayBeLocal
        case .reserved: false
        }
    }

    enum Kind {
        /// Reachable by everyone.
        case global
        /// Of this machine or a private network.
        case local
        /// Multicast, unspecified, and blocks that no server has.
        case reserved
    }

    static func kind(of bytes: [UInt8]) -> Kind {
        switch bytes.count {
        case 4: kind4(bytes)
        case 16: kind6(bytes)
        default: .reserved
        }
    }

    /// The IANA IPv4 Special-Purpose Address Registry (RFC 6890).
    private static func kind4(_ bytes: [UInt8]) -> Kind {
        switch (bytes[0], bytes[1], bytes[2]) {
        case (0, _, _), (224..., _, _): .reserved
        // Documentation (RFC 5737), protocol assignments, 6to4 relays, benchmarks.
        case (192, 0, 2), (198, 51, 100), (203, 0, 113), (192, 0, 0), (192, 88, 99), (198, 18...19, _): .reserved
        case (10, _, _), (172, 16...31, _), (192, 168, _), (100, 64...127, _): .local
        case (127, _, _), (169, 254, _): .local
        default: .global
        }
    }

    /// The IANA IPv6 Special-Purpose Address Registry. Only 2000::/3 is global; within it, the addresses that contain
    /// an IPv4 address (Teredo, 6to4) and those for documentation are not.
    private static func kind6(_ bytes: [UInt8]) -> Kind {
        let tail = Array(bytes[12...])
        if bytes[..<12].allSatisfy({ $0 == 0 }) { return tail == [0, 0, 0, 1] ? .local : .reserved }
        // IPv4-mapped, and NAT64 (RFC 6052).
        if bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF { return kind4(tail) }
        if bytes[..<4] == [0, 0x64, 0xFF, 0x9B], bytes[4..<12].allSatisfy({ $0 == 0 }) { return kind4(tail) }
        // fc00::/7 and fe80::/10.
        if bytes[0] & 0xFE == 0xFC || (bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80) { return .local }
        guard bytes[0] & 0xE0 == 0x20 else { return .reserved }
        switch (bytes[0], bytes[1], bytes[2], bytes[3]) {
        case (0x20, 0x01, 0x0D, 0xB8), (0x20, 0x01, 0...1, _), (0x20, 0x02, _, _), (0x3F, 0xFF, 0...0x0F, _):
            return .reserved
        default: return .global
        }
    }
}
