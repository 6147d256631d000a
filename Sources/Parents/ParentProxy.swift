// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// A proxy between this one and the origins.
package struct ParentProxy: Hashable, Sendable, CustomStringConvertible {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        /// HTTP over TCP (RFC 9110 §3.7).
        case http
        /// HTTP over TLS to the parent.
        case https
        /// RFC 1928; names are resolved here.
        case socks5
        /// RFC 1928; names are resolved by the parent.
        case socks5h

        /// The port in a script's result that names none.
        package var defaultPort: UInt16 {
            switch self {
            case .http: 80
            case .https: 443
            case .socks5, .socks5h: 1080
            }
        }

        /// Whether the origin's name is resolved here and the parent is given an address.
        package var resolvesHere: Bool { self == .socks5 }

        package var isSOCKS: Bool { self == .socks5 || self == .socks5h }
    }

    package let kind: Kind
    package let host: HostName
    package let port: UInt16

    package init(_ kind: Kind, _ host: HostName, _ port: UInt16) {
        self.kind = kind
        self.host = host
        self.port = port
    }

    /// `host:port`, an IPv6 address in brackets.
    package var authority: String { HostText.joined(host.text, port) }

    /// How the parent is listed.
    package var site: Origin { Origin(scheme: .proxy, host: host.text, port: port) }

    /// `http://host:port`; the port is always present.
    package var description: String { "\(kind.rawValue)://\(authority)" }
}

/// The first hop of a connection.
package enum NextHop: Hashable, Sendable, CustomStringConvertible {
    /// To the origin.
    case direct
    case parent(ParentProxy)

    package var parent: ParentProxy? { if case .parent(let parent) = self { parent } else { nil } }

    package var description: String {
        switch self {
        case .direct: "direct"
        case .parent(let parent): parent.description
        }
    }
}
