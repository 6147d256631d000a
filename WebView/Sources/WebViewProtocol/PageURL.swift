// SPDX-License-Identifier: Apache-2.0

/// The parts of a URL (RFC 3986 §3) as a web view reports it: ASCII, with everything else percent-encoded.
///
/// Stricter than the RFC: a URL with a space, a control character, a backslash or a character beyond ASCII is not
/// parsed, and neither is one for http or https without a host.
package struct PageURL: Equatable, Sendable {
    /// The given URL.
    package let text: String
    /// In lower case.
    package let scheme: String
    package let hasUserInfo: Bool
    /// In lower case, an IPv6 address with its brackets; nil without `//`.
    package let host: String?
    /// The scheme's default if the URL has none.
    package let port: Int?
    /// For http and https `/` at least.
    package let path: String
    package let hasFragment: Bool

    package init?(_ text: String) {
        guard (1...Limits.urlBytes).contains(text.utf8.count), text.utf8.allSatisfy(Self.isPermitted) else {
            return nil
        }
        guard let colon = text.firstIndex(of: ":") else { return nil }
        let scheme = text[..<colon].lowercased()
        guard Self.isScheme(scheme) else { return nil }
        var rest = text[text.index(after: colon)...]
        hasFragment = rest.contains("#")
        rest = rest.prefix { $0 != "?" && $0 != "#" }
        let isHTTP = scheme == "https" || scheme == "http"
        var authority: Authority?
        if rest.hasPrefix("//") {
            let end = rest.dropFirst(2).firstIndex(of: "/") ?? rest.endIndex
            authority = Authority(rest[rest.index(rest.startIndex, offsetBy: 2)..<end])
            guard authority != nil else { return nil }
            rest = rest[end...]
        }
        if isHTTP, authority?.host.isEmpty ?? true { return nil }
        self.text = text
        self.scheme = scheme
        hasUserInfo = authority?.hasUserInfo ?? false
        host = authority?.host
        port = authority?.port ?? Self.defaultPort(scheme)
        path = isHTTP && rest.isEmpty ? "/" : String(rest)
    }

    /// The URL without user name, query and fragment, which can carry secrets, and at most 2 KiB of it. For a scheme
    /// without a path of its own, such as `data`, only the scheme.
    package var withoutSecrets: String {
        guard host != nil || path.hasPrefix("/") else { return scheme == "about" ? "about:\(path)" : "\(scheme):" }
        let authority = host.map { "//" + $0 + (port == Self.defaultPort(scheme) ? "" : ":\(port ?? 0)") } ?? ""
        return String("\(scheme):\(authority)\(path)".prefix(2048))
    }

    package static func defaultPort(_ scheme: String) -> Int? {
        switch scheme {
        case "https": 443
        case "http": 80
        default: nil
        }
    }

    private static func isPermitted(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7f && byte != UInt8(ascii: "\\")
    }

    private static func isScheme(_ text: String) -> Bool {
        guard let first = text.utf8.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first) else { return false }
        return text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"),
                UInt8(ascii: "-"), UInt8(ascii: "."):
                true
            default: false
            }
        }
    }
}

/// `[userinfo@]host[:port]` (RFC 3986 §3.2).
private struct Authority {
    let hasUserInfo: Bool
    let host: String
    let port: Int?

    init?(_ text: Substring) {
        let at = text.lastIndex(of: "@")
        hasUserInfo = at != nil
        var rest = at.map { text[text.index(after: $0)...] } ?? text
        var digits: Substring?
        if rest.hasPrefix("[") {
            guard let bracket = rest.firstIndex(of: "]") else { return nil }
            let after = rest[rest.index(after: bracket)...]
            guard after.isEmpty || after.hasPrefix(":") else { return nil }
            digits = after.isEmpty ? nil : after.dropFirst()
            rest = rest[...bracket]
        } else if let colon = rest.firstIndex(of: ":") {
            digits = rest[rest.index(after: colon)...]
            rest = rest[..<colon]
            guard !(digits ?? "").contains(":") else { return nil }
        }
        host = rest.lowercased()
        guard let digits, !digits.isEmpty else {
            port = nil
            return
        }
        guard digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let number = Int(digits), (1...65535).contains(number)
        else { return nil }
        port = number
    }
}
