// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The textual form of hosts, and which of them are this machine. Names are not resolved.
package enum HostText {
    /// `host` as written in a URI (RFC 3986 §3.2.2): an IPv6 address in brackets. Brackets already present are kept.
    package static func bracketed(_ host: String) -> String {
        host.utf8.contains(UInt8(ascii: ":")) && !host.hasPrefix("[") ? "[\(host)]" : host
    }

    /// `host:port`, an IPv6 address in brackets.
    package static func joined(_ host: String, _ port: Int) -> String { "\(bracketed(host)):\(port)" }

    package static func joined(_ host: String, _ port: UInt16) -> String { joined(host, Int(port)) }

    /// `localhost` or a name below it (RFC 6761 §6.3). `host` is in lower case, without a trailing dot.
    package static func isLoopbackName(_ host: String) -> Bool { host == "localhost" || host.hasSuffix(".localhost") }

    /// An address in 127.0.0.0/8, or `::1` in any spelling, without brackets.
    package static func isLoopbackAddress(_ host: String) -> Bool {
        if let bytes = bytes(of: host, AF_INET, count: 4) { return bytes[0] == 127 }
        return bytes(of: host, AF_INET6, count: 16) == [UInt8](repeating: 0, count: 15) + [1]
    }

    /// Whether a connection to `host` ends on this machine: a loopback name or address, or the unspecified address,
    /// which Linux treats as loopback.
    package static func isThisMachine(_ host: String) -> Bool {
        isLoopbackName(host) || isLoopbackAddress(host) || host == "0.0.0.0" || host == "::"
    }

    private static func bytes(of host: String, _ family: Int32, count: Int) -> [UInt8]? {
        let bytes = [UInt8](unsafeUninitializedCapacity: 16) { buffer, used in
            used = inet_pton(family, host, buffer.baseAddress) == 1 ? count : 0
        }
        return bytes.isEmpty ? nil : bytes
    }
}
