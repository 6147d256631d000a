// SPDX-License-Identifier: Apache-2.0

/// The address at which the authorization server ends a sign-in (RFC 6749 §3.1.2): https, http on loopback
/// (RFC 8252 §7.3), or a private-use scheme (§7.1).
package struct RedirectURI: Equatable, Sendable {
    let url: PageURL

    /// - Throws: `ProtocolError` for a URI with a fragment (RFC 6749 §3.1.2), a user name or a query, for plain http
    ///   beyond loopback, and for schemes that the web view itself gives a meaning.
    package init(_ text: String) throws(ProtocolError) {
        guard let url = PageURL(text) else { throw ProtocolError("a redirect URI is not a URL") }
        guard !url.hasUserInfo, !url.hasFragment, !text.contains("?") else {
            throw ProtocolError("a redirect URI has a user name, a query or a fragment")
        }
        if let origin = Origin(url), origin.scheme == "http", !origin.isLoopback {
            throw ProtocolError("a redirect URI with http is not on loopback")
        }
        guard !Self.reserved.contains(url.scheme) else {
            throw ProtocolError("a redirect URI has the reserved scheme \(url.scheme)")
        }
        self.url = url
    }

    /// Whether `other` is this URI with parameters: the same scheme, host, port and path. Scheme and host compare
    /// without case (RFC 3986 §6.2.2.1), the path exactly.
    package func matches(_ other: PageURL) -> Bool {
        !other.hasUserInfo && other.scheme == url.scheme && other.host == url.host && other.port == url.port
            && other.path == url.path
    }

    private static let reserved: Set<String> = [
        "about", "blob", "data", "file", "ftp", "javascript", "resource", "view-source", "webkit", "ws", "wss",
    ]
}
