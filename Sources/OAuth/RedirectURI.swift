// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import CountersignJSON

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
    /// As it was given, because providers compare it with the registered text. Only a port of 0 is omitted.
    package let text: String
    /// The path of a browser's request to a loopback listener: at least `/`. Empty for a custom scheme.
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
        // Port 0 means any port.
        let end = authorityEnd(text)
        let isAnyPort = text[..<end].hasSuffix(":0")
        let given = isAnyPort ? String(text[..<end].dropLast(2)) + String(text[end...]) : text
        let url: AbsoluteURL
        do throws(HostNameError) {
            url = try AbsoluteURL(parsing: given)
        } catch {
            throw .profile("\(name) cannot be used: \(error.detail)", hint: shape)
        }
        if url.origin.scheme == .https {
            guard !isAnyPort else { throw .profile("\(name) has the port 0", hint: shape) }
            return RedirectURI(.https, given, path: url.path)
        }
        guard ["127.0.0.1", "::1", "localhost"].contains(url.origin.host) else {
            throw .profile("\(name) is http to another host than the loopback interface", hint: shape)
        }
        // The scheme's own port counts only if it is written.
        let hasPort = url.origin.port != 80 || given[..<authorityEnd(given)].hasSuffix(":80")
        return RedirectURI(
            .loopback(host: url.origin.host, port: hasPort ? url.origin.port : nil), given, path: url.path)
    }

    /// Of an http or https URL without a query.
    private static func authorityEnd(_ text: String) -> String.Index {
        guard let slashes = text.firstRange(of: "://") else { return text.endIndex }
        return text[slashes.upperBound...].firstIndex(of: "/") ?? text.endIndex
    }

    package var description: String { text }

    /// The URI that is sent: with the port that the listener has. Only for a loopback URI; others are returned as they
    /// are, and so is one with a port of its own.
    package func bound(toPort port: UInt16) -> RedirectURI {
        guard case .loopback(let host, nil) = kind else { return self }
        var bound = text
        bound.insert(contentsOf: ":\(port)", at: Self.authorityEnd(text))
        return RedirectURI(.loopback(host: host, port: port), bound, path: path)
    }

    /// The same loopback URI with this port, in place of its own; nil for a URI that is not one.
    package func moved(toPort port: UInt16) -> RedirectURI? {
        guard case .loopback(let host, let own) = kind else { return nil }
        guard let own else { return bound(toPort: port) }
        let end = Self.authorityEnd(text)
        let base = text[..<end].hasSuffix(":\(own)") ? text[..<end].dropLast(":\(own)".count) : text[..<end]
        return RedirectURI(.loopback(host: host, port: port), "\(base):\(port)\(text[end...])", path: path)
    }

    /// The URI with one more segment of the path.
    package func appending(segment: String) -> RedirectURI? {
        try? RedirectURI(text + (text.hasSuffix("/") ? "" : "/") + segment)
    }

    /// The query of `url` if `url` is this URI with a query: equal in scheme, host, port and path (RFC 6749 §3.1.2.3).
    /// An empty path is the same as `/`, because browsers add that. Nil for another URL. A fragment is
    /// ignored: browsers keep it from earlier requests (RFC 9700 §4.10).
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
            return other.isExactly(own) || other.isExactly(own + "/")
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
