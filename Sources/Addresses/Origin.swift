// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A scheme, host and port (RFC 9110 §4.3.1), to which credentials are bound. The host is canonical: only
/// ``HostName`` creates origins, so that the host that was checked is the host of the connection.
package struct Origin: Hashable, Sendable, CustomStringConvertible {
    package enum Scheme: String, Hashable, Sendable {
        case http
        case https
        /// A parent proxy, which is not an origin, but challenges and is listed like one. No request has this scheme.
        case proxy

        /// 0 without one.
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

    /// The http origin with the same host and port.
    package var withoutTLS: Origin { Origin(scheme: .http, host: host, port: port) }

    /// As in the list of sites: without the scheme's default port.
    package var shortText: String { "\(scheme.rawValue)://\(authority)" }

    /// The host as written in a URI: an IPv6 address is in brackets.
    package var uriHost: String { HostText.bracketed(host) }

    /// `https://host:port`; the port is always present.
    package var description: String { "\(scheme.rawValue)://\(uriHost):\(port)" }
}

extension Origin {
    /// From the authority of a request: `host`, `host:port`, `[v6]` or `[v6]:port` (RFC 9112 §3.2). The default port is
    /// the scheme's. User information, an empty host and an empty port are errors.
    package init(scheme: Scheme, authority: String, for use: HostName.Use = .forwarded) throws(HostNameError) {
        let parts = try Authority(parsing: authority[...])
        self.init(scheme: scheme, host: try HostName(canonicalizing: parts.host, for: use), port: parts.port)
    }

    /// From valid parts. The default port is the scheme's.
    package init(scheme: Scheme, host: HostName, port: UInt16? = nil) {
        self.init(scheme: scheme, host: host.text, port: port ?? scheme.defaultPort)
    }

    /// The origin of an absolute `http://` or `https://` URL.
    package init(url: String) throws(HostNameError) {
        self = try AbsoluteURL(parsing: url).origin
    }
}

extension Origin {
    /// From ``description``, also that of a parent proxy.
    package init(listed text: String) throws(HostNameError) {
        let proxy = "\(Scheme.proxy.rawValue)://"
        guard text.hasPrefix(proxy) else {
            self = try AbsoluteURL(parsing: "\(text)/").origin
            return
        }
        self = try Origin(scheme: .proxy, authority: String(text.dropFirst(proxy.count)))
    }
}

extension Origin.Scheme {
    /// `http` or `https` in any case (RFC 3986 §3.1).
    package init(name: some StringProtocol) throws(HostNameError) {
        switch name.lowercased() {
        case "http": self = .http
        case "https": self = .https
        default:
            // A WebSocket begins as an HTTP request (RFC 6455 §4.1).
            let counterpart = ["ws": "http", "wss": "https"][name.lowercased()]
            throw HostNameError(
                .scheme, "the scheme \(PrintableText.quoteASCII(name)) is neither http nor https",
                hint: counterpart.map { "for a WebSocket, write \($0):// instead of \(name.lowercased())://" })
        }
    }
}
