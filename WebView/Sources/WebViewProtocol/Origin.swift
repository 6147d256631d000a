// SPDX-License-Identifier: Apache-2.0

/// Scheme, host and port of pages (RFC 6454 §4), compared exactly.
package struct Origin: Hashable, Sendable, CustomStringConvertible {
    package let scheme: String
    package let host: String
    package let port: Int

    /// The origin of a page at `url`; nil for schemes other than http and https, and for a host that is neither a name
    /// nor an address.
    package init?(_ url: PageURL) {
        guard let host = url.host, let port = url.port, PageURL.defaultPort(url.scheme) != nil, Self.isHost(host) else {
            return nil
        }
        (scheme, self.host, self.port) = (url.scheme, host, port)
    }

    /// Parses `https://host[:port]`, without a path.
    package init?(_ text: String) {
        guard let url = PageURL(text), !url.hasUserInfo, !url.hasFragment, url.path == "/", !text.hasSuffix("/"),
            !text.contains("?")
        else { return nil }
        self.init(url)
    }

    /// As a page's `location.origin`: without the default port.
    package var description: String {
        "\(scheme)://\(host)" + (port == PageURL.defaultPort(scheme) ? "" : ":\(port)")
    }

    package var isLoopback: Bool { Self.loopbackHosts.contains(host) }

    private static func isHost(_ text: String) -> Bool {
        let isAddress = text.hasPrefix("[")
        return text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."):
                true
            case UInt8(ascii: "-"), UInt8(ascii: "_"): !isAddress
            case UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: ":"): isAddress
            default: false
            }
        }
    }

    package static let loopbackHosts: Set<String> = ["127.0.0.1", "[::1]", "localhost"]
}
