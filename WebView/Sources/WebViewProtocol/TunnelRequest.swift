// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// A CONNECT request (RFC 9110 §9.3.6) that WebKit sends to the relay in front of the proxy.
package struct TunnelRequest: Equatable, Sendable {
    /// `host:port`.
    package let authority: String

    /// The largest head that is read.
    package static let headBytes = 8 * 1024

    /// Parses a head, up to and with its empty line. Nil for other requests: plain http does not go through the relay.
    package init?(head: some Collection<UInt8>) {
        let text = String(decoding: head, as: UTF8.self)
        guard head.count <= Self.headBytes, text.hasSuffix("\r\n\r\n"),
            let line = text.split(separator: "\r\n", maxSplits: 1).first
        else { return nil }
        let words = line.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 3, words[0] == "CONNECT", words[2] == "HTTP/1.1",
            let colon = words[1].lastIndex(of: ":"), words[1].index(after: colon) < words[1].endIndex,
            Origin("https://\(words[1])") != nil
        else { return nil }
        authority = String(words[1])
    }

    /// The head for the proxy, with the user name and password (RFC 7617 §2). WebKit's other fields are omitted.
    package func head(for proxy: ProxyAddress) -> [UInt8] {
        let pair = Data("\(proxy.user ?? ""):\(proxy.password ?? "")".utf8).base64EncodedString()
        let lines = [
            "CONNECT \(authority) HTTP/1.1", "Host: \(authority)", "Proxy-Authorization: Basic \(pair)", "", "",
        ]
        return Array(lines.joined(separator: "\r\n").utf8)
    }
}
