// SPDX-License-Identifier: Apache-2.0

/// A redirect URI on the loopback interface (RFC 8252 §7.3).
package struct RedirectAddress: Equatable, Sendable {
    /// The host in the URI. Some providers refuse IP addresses.
    package enum Host: String, CaseIterable, Sendable {
        case ipv4 = "127.0.0.1"
        case ipv6 = "[::1]"
        /// Either address.
        case localhost
    }

    package let host: Host
    /// 0 for any free port.
    package let port: UInt16
    /// Begins with a slash.
    package let path: String

    package init(host: Host, port: UInt16, path: String) {
        self.host = host
        self.port = port
        self.path = path
    }

    /// The URI that is registered at the provider, with another port.
    package func uri(port: UInt16) -> String { "http://\(host.rawValue):\(port)\(path)" }
}
