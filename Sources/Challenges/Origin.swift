// SPDX-License-Identifier: Apache-2.0

/// Scheme, host and port (RFC 9110 §4.3.1): what a credential is bound to. The host is canonical: only
/// `SitePolicy.HostName` makes them, so that the host that is allowed is the host that is connected to.
package struct Origin: Hashable, Sendable, CustomStringConvertible {
    package enum Scheme: String, Hashable, Sendable {
        case http
        case https

        package var defaultPort: UInt16 { self == .http ? 80 : 443 }
    }

    package let scheme: Scheme
    /// An A-label name in lower case without a trailing dot, a dotted quad, or an IPv6 address without brackets (RFC 5952).
    package let host: String
    package let port: UInt16

    package init(scheme: Scheme, host: String, port: UInt16) {
        self.scheme = scheme
        self.host = host
        self.port = port
    }

    /// `host`, or `host:port` where the port is not the scheme's own; an IPv6 address in brackets.
    package var authority: String {
        port == scheme.defaultPort ? uriHost : "\(uriHost):\(port)"
    }

    /// The host as it stands in a URI: an IPv6 address in brackets.
    package var uriHost: String { HostText.bracketed(host) }

    /// `https://host:port`, always with the port.
    package var description: String { "\(scheme.rawValue)://\(uriHost):\(port)" }
}
