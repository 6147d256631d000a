// SPDX-License-Identifier: Apache-2.0

/// A scheme, host and port (RFC 9110 §4.3.1), to which credentials are bound. The host is canonical: only
/// `SitePolicy.HostName` creates origins, so that the host that was checked is the host of the connection.
package struct Origin: Hashable, Sendable, CustomStringConvertible {
    package enum Scheme: String, Hashable, Sendable {
        case http
        case https
        /// A parent proxy, which is no origin, but challenges and is listed like one. No request has this scheme.
        case proxy

        /// 0 if there is none.
        package var defaultPort: UInt16 {
            switch self {
            case .http: 80
            case .https: 443
            case .proxy: 0
            }
        }
    }

    package let scheme: Scheme
    /// An A-label name in lower case without a trailing dot, a dotted quad, or an IPv6 address without brackets (RFC
    /// 5952).
    package let host: String
    package let port: UInt16

    package init(scheme: Scheme, host: String, port: UInt16) {
        self.scheme = scheme
        self.host = host
        self.port = port
    }

    /// `host`, or `host:port` if the port is not the scheme's default; an IPv6 address is in brackets.
    package var authority: String {
        port == scheme.defaultPort ? uriHost : "\(uriHost):\(port)"
    }

    /// The host as written in a URI: an IPv6 address is in brackets.
    package var uriHost: String { HostText.bracketed(host) }

    /// `https://host:port`; the port is always present.
    package var description: String { "\(scheme.rawValue)://\(uriHost):\(port)" }
}
