// SPDX-License-Identifier: Apache-2.0

/// The head of a CONNECT request of our own (RFC 9110 §9.3.6).
package struct ConnectRequest: Sendable {
    /// `host:port`, an IPv6 address in brackets (RFC 9112 §3.2.3).
    package let authority: String
    /// Which proxies have forwarded it, this one last (RFC 9110 §7.6.3), so that each can notice a loop.
    package let via: String
    package let proxyAuthorization: (any SecretFieldValue)?

    package init(authority: String, via: String, proxyAuthorization: (any SecretFieldValue)? = nil) {
        self.authority = authority
        self.via = via
        self.proxyAuthorization = proxyAuthorization
    }

    /// The approximate length of the head.
    package var size: Int { 2 * authority.utf8.count + via.utf8.count + 128 + (proxyAuthorization?.byteCount ?? 0) }

    /// Writes the head into `space` and returns its length. If that is more than `space` has, the contents of `space`
    /// are incomplete.
    package func write(into space: UnsafeMutableRawBufferPointer) -> Int {
        HeadWriter.write(into: space) { writer in
            writer.append("CONNECT ")
            writer.append(text: authority)
            writer.append(" HTTP/1.1\r\n")
            writer.field("Host", authority)
            writer.field("Via", via)
            writer.append(HeadWriter.proxyKeepAlive)
            if let proxyAuthorization { writer.field("Proxy-Authorization", proxyAuthorization) }
            writer.append("\r\n")
        }
    }

    /// The head in ordinary memory. It contains ``proxyAuthorization``, so overwrite it after use.
    package func serialized() -> [UInt8] { HeadWriter.bytes(about: size) { write(into: $0) } }
}
