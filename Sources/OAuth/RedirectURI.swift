// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignSitePolicy

/// A redirect URI of a native app (RFC 8252 §7): loopback, a custom scheme, or https.
package struct RedirectURI: Hashable, Sendable, CustomStringConvertible {
    package enum Kind: Hashable, Sendable {
        /// RFC 8252 §7.3. `host` is `127.0.0.1`, `::1` or `localhost`. No port means any port.
        case loopback(host: String, port: UInt16?)
        /// RFC 8252 §7.1.
        case customScheme
        /// RFC 8252 §7.2.
        case https
    }

    package let kind: Kind
    /// As registered with the provider. Without the port if that is free.
    package let text: String
    /// What a browser asks a loopback listener for: at least `/`. Empty for a custom scheme.
    package let path: String

    /// Parses a URI of the profile. A port of 0 in a loopback URI is the same as none. Throws `configuration` for user
    /// information, a query, a fragment, http to another host, and schemes that are not an app's.
    package init(_ text: String) throws(OAuthError) {
        let name = "the redirect URI \(PrintableText.quote(text))"
        guard text.utf8.count <= 2048, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw .profile("\(name) is too long or has a character that a URI may not have")
        }
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), Self.isScheme(text[..<colon]) else {
            throw .profile("\(name) has no scheme", hint: Self.shape)
        }
        guard !text.contains("#"), !text.contains("?") else {
            throw .profile("\(name) must not have a query or a fragment")
        }
        let scheme = text[..<colon].lowercased()
        switch scheme {
        case "http", "https":
            self = try Self.web(text, name)
        case let scheme where Self.forbiddenSchemes.contains(scheme):
            throw .profile("\(name) has a scheme that is not an app's own", hint: Self.shape)
        default:
            kind = .customScheme
            self.text = text
            path = ""
        }
    }

    private init(_ kind: Kind, _ text: String, path: String) {
        self.kind = kind
        self.text = text
        self.path = path
    }

    private static func web(_ text: String, _ name: String) throws(OAuthError) -> RedirectURI {
        let url: AbsoluteURL
        // Port 0 stands for any port.
        let authority = text.dropFirst("http://".count).prefix { $0 != "/" }
        let isAnyPort = text.hasPrefix("http://") && authority.hasSuffix(":0")
        let rest = text[authority.endIndex...]
        do {
            url = try AbsoluteURL(parsing: isAnyPort ? "http://\(authority.dropLast(2))\(rest)" : text)
        } catch {
            throw .profile("\(name) cannot be used: \(error.detail)", hint: shape)
        }
        if url.origin.scheme == .https { return RedirectURI(.https, text, path: url.path) }
        guard ["127.0.0.1", "::1", "localhost"].contains(url.origin.host) else {
            throw .profile("\(name) is http to another host than the loopback interface", hint: shape)
        }
        let port = url.origin.port == 80 ? nil : url.origin.port
        let written = port.map { HostText.joined(url.origin.host, $0) } ?? url.origin.uriHost
        return RedirectURI(
            .loopback(host: url.origin.host, port: port), "http://\(written)\(rest)", path: url.path)
    }

    package var description: String { text }

    /// The URI that is sent: with the port that the listener has. Only for a loopback URI; others are returned as they
    /// are, and so is one with a port of its own.
    package func bound(toPort port: UInt16) -> RedirectURI {
        guard case .loopback(let host, nil) = kind else { return self }
        let written = "http://\(HostText.bracketed(host))"
        // Providers compare the text, so that a path that was left out is not added.
        let rest = text.dropFirst(written.count)
        return RedirectURI(
            .loopback(host: host, port: port), "http://\(HostText.joined(host, port))\(rest)", path: path)
    }

    /// The query of `url` if `url` is this URI with a query: equal in scheme, host, port and path (RFC 6749 §3.1.2.3).
    /// Nil for another URL. A fragment is ignored: browsers keep it from earlier requests (RFC 9700 §4.10).
    package func query(of url: String) -> String? {
        let url = url.prefix { $0 != "#" }
        let base = url.prefix { $0 != "?" }
        guard matches(String(base)) else { return nil }
        return base.endIndex == url.endIndex ? "" : String(url[base.endIndex...].dropFirst())
    }

    private func matches(_ base: String) -> Bool {
        switch kind {
        case .customScheme:
            // Browsers lower the scheme's case (RFC 3986 §6.2.2.1) and some add an empty path.
            let own = Self.normalized(text)
            let other = Self.normalized(base)
            return own == other || own + "/" == other
        case .loopback, .https:
            guard let url = try? AbsoluteURL(parsing: base), let own = try? AbsoluteURL(parsing: text) else {
                return false
            }
            return url == own
        }
    }

    private static func normalized(_ text: String) -> String {
        let scheme = text.prefix { $0 != ":" }
        return scheme.lowercased() + text[scheme.endIndex...]
    }

    /// RFC 3986 §3.1.
    private static func isScheme(_ text: Substring) -> Bool {
        guard let first = text.utf8.first, (first | 0x20) &- UInt8(ascii: "a") < 26 else { return false }
        return text.utf8.allSatisfy {
            ($0 | 0x20) &- UInt8(ascii: "a") < 26 || $0 &- UInt8(ascii: "0") < 10 || "+-.".utf8.contains($0)
        }
    }

    private static let shape = "write it as http://127.0.0.1/callback, com.example.app:/callback or https://host/path"

    private static let forbiddenSchemes: Set<String> = [
        "about", "blob", "chrome", "data", "file", "filesystem", "ftp", "javascript", "mailto", "tel", "urn",
        "vbscript", "view-source", "ws", "wss",
    ]
}
