// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// An IP address and a port.
public struct NetworkAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address in text form, without brackets: `192.0.2.7` or `2001:db8::7`. Empty if it is not known.
    public let host: String
    /// The port.
    public let port: Int

    /// Creates an address; `host` is not resolved.
    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// From `host:port`, with brackets around an IPv6 address.
    package init(joined text: String) {
        let end = text.lastIndex(of: ":") ?? text.endIndex
        let host = text[..<end]
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        self.init(
            host: String(isBracketed ? host.dropFirst().dropLast() : host), port: Int(text[end...].dropFirst()) ?? 0)
    }

    /// `192.0.2.7:443` or `[2001:db8::7]:443`.
    public var description: String { HostText.joined(host, port) }
}
