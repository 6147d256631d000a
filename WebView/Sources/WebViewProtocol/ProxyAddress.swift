// SPDX-License-Identifier: Apache-2.0

/// A proxy on loopback, and the user name and password that it asks for.
package struct ProxyAddress: Equatable, Sendable {
    /// Without user name and password.
    package let url: String
    /// An IPv6 address without brackets.
    package let host: String
    package let port: Int
    package let user: String?
    package let password: String?

    /// Parses `http://[user:password@]host:port`. User name and password are literal, without percent-encoding.
    package init(_ text: String) throws(ProtocolError) {
        guard let url = PageURL(text), url.scheme == "http", url.path == "/", !url.hasFragment, !text.contains("?"),
            let origin = Origin(url), origin.isLoopback
        else { throw ProtocolError("'proxy' is not http://[user:password@]host:port on loopback") }
        self.url = origin.description
        (host, port) = (origin.host.trimmingBrackets, origin.port)
        guard let at = text.lastIndex(of: "@") else {
            (user, password) = (nil, nil)
            return
        }
        let userInfo = text[..<at].dropFirst("http://".count)
        guard let colon = userInfo.firstIndex(of: ":"), !userInfo.contains("%") else {
            throw ProtocolError("'proxy' has no password, or percent-encoding")
        }
        user = String(userInfo[..<colon])
        password = String(userInfo[userInfo.index(after: colon)...])
    }
}

extension String {
    fileprivate var trimmingBrackets: String { hasPrefix("[") ? String(dropFirst().dropLast()) : self }
}
