// SPDX-License-Identifier: Apache-2.0

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

    /// An address in 127.0.0.0/8, or `::1`, in any spelling, without brackets.
    package static func isLoopbackAddress(_ host: String) -> Bool { IPAddress(host)?.isLoopback ?? false }

    /// Whether the host can only be this machine: a loopback name or address.
    package static func isLoopback(_ host: String) -> Bool { isLoopbackName(host) || isLoopbackAddress(host) }
}
