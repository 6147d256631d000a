// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The change that one Set-Cookie makes to a session.
package struct ReceivedChange: Equatable, Sendable {
    package let change: SharedSession.Change
    /// The attribute of the field, which one that removes a cookie may have, too.
    package let sameSite: Cookie.SameSite
}

/// Reads the values of Set-Cookie as a browser does (RFC 6265 §5.2, with SameSite and the name prefixes of RFC
/// 6265bis).
package struct SetCookieReader {
    /// The canonical host that has sent the response.
    private let host: String
    /// The names of the cookies that belong to a session; nil for all.
    private let names: [String]?
    /// Whether a domain is one under which anyone can register names.
    private let isPublicSuffix: (String) -> Bool
    /// Seconds since 1970.
    private let now: Int64

    /// The longest expiry, in seconds (RFC 6265bis §5.5): 400 days.
    package static let longestLifetime: Int64 = 400 * 24 * 60 * 60

    package init(host: String, names: [String]?, now: Int64, isPublicSuffix: @escaping (String) -> Bool) {
        self.host = host
        self.names = names
        self.now = now
        self.isPublicSuffix = isPublicSuffix
    }

    /// The change that one Set-Cookie makes to the session. `path` is the request's, which may have a query. Nil for a
    /// cookie of another name, for one that a browser would ignore, and for one with Partitioned, which belongs to the
    /// site of a browser's top-level page.
    package func change(
        _ field: some Collection<UInt8>, requestPath path: some Collection<UInt8>
    ) -> ReceivedChange? {
        guard field.count <= Cookie.maximumBytes * 2 else { return nil }
        var rest = ArraySlice(field)
        let pair = Self.next(&rest)
        guard let equals = pair.firstIndex(of: UInt8(ascii: "=")) else { return nil }
        guard let name = name(Self.trimmed(pair[..<equals])) else { return nil }
        let value = Self.trimmed(pair[(equals + 1)...])
        guard value.allSatisfy(Cookie.isValueByte) else { return nil }
        var attributes = Attributes(now: now)
        while !rest.isEmpty { attributes.read(Self.next(&rest)) }
        guard !attributes.isPartitioned else { return nil }
        // The path of the request does not count (RFC 6265bis §4.1.3.2).
        guard attributes.path == "/" || !Cookie.isForHostOnly(name) else { return nil }
        let (domain, isHostOnly): (String, Bool)
        switch attributes.domain {
        case nil: (domain, isHostOnly) = (host, true)
        case let wanted? where isPublicSuffix(wanted) || Cookie.isAddress(host):
            guard wanted == host else { return nil }
            (domain, isHostOnly) = (host, true)
        case let wanted?:
            guard Cookie.domain(wanted, covers: host) else { return nil }
            (domain, isHostOnly) = (wanted, false)
        }
        let identity = Cookie.Identity(
            name: name, domain: domain, isHostOnly: isHostOnly,
            path: attributes.path ?? Self.defaultPath(for: path))
        if let expires = attributes.expires, expires <= now {
            return ReceivedChange(change: .remove(identity), sameSite: attributes.sameSite)
        }
        // A browser takes SameSite=None only with Secure.
        guard attributes.sameSite != .none || attributes.isSecure else { return nil }
        let cookie = Cookie(
            identity, value: Secret(value), isSecure: attributes.isSecure, isHTTPOnly: attributes.isHTTPOnly,
            sameSite: attributes.sameSite, expires: attributes.expires.map { min($0, now + Self.longestLifetime) },
            stored: now)
        guard cookie.fault(for: host) == nil else { return nil }
        return ReceivedChange(change: .set(cookie), sameSite: attributes.sameSite)
    }

    /// The name, if it is that of a cookie to read.
    private func name(_ written: ArraySlice<UInt8>) -> String? {
        guard let names else { return String(validating: written, as: UTF8.self) }
        return names.first { $0.utf8.elementsEqual(written) }
    }

    /// The identity of the cookie of one Set-Cookie, whether or not a browser would keep it. The domain of a cookie for
    /// the host only is empty.
    static func identity(
        _ field: ArraySlice<UInt8>, requestPath path: some Collection<UInt8>
    ) -> Cookie.Identity {
        var rest = field
        let name = trimmed(next(&rest).prefix { $0 != UInt8(ascii: "=") })
        var attributes = Attributes(now: 0)
        while !rest.isEmpty { attributes.read(next(&rest)) }
        return Cookie.Identity(
            name: String(decoding: name, as: UTF8.self), domain: attributes.domain ?? "",
            isHostOnly: attributes.domain == nil, path: attributes.path ?? defaultPath(for: path))
    }

    private struct Attributes {
        let now: Int64
        var domain: String?
        var path: String?
        var isSecure = false
        var isHTTPOnly = false
        var isPartitioned = false
        var sameSite = Cookie.SameSite.unspecified
        private var maxAge: Int64?
        private var date: Int64?

        init(now: Int64) {
            self.now = now
        }

        /// Max-Age takes precedence (RFC 6265 §5.3, step 3).
        var expires: Int64? { maxAge ?? date }

        mutating func read(_ attribute: ArraySlice<UInt8>) {
            let equals = attribute.firstIndex(of: UInt8(ascii: "=")) ?? attribute.endIndex
            let value = SetCookieReader.trimmed(attribute[equals...].dropFirst())
            switch String(decoding: SetCookieReader.trimmed(attribute[..<equals]), as: UTF8.self).lowercased() {
            case "domain":
                // An empty one counts as missing.
                let text = value.first == UInt8(ascii: ".") ? value.dropFirst() : value
                domain = text.isEmpty ? domain : String(decoding: text, as: UTF8.self).lowercased()
            case "path":
                path = value.first == UInt8(ascii: "/") ? String(validating: value, as: UTF8.self) : nil
            case "max-age": maxAge = Self.lifetime(value).map { now.addingReportingOverflow($0).partialValue } ?? maxAge
            case "expires": date = CookieDate.seconds(String(decoding: value, as: UTF8.self)) ?? date
            case "secure": isSecure = true
            case "httponly": isHTTPOnly = true
            case "partitioned": isPartitioned = true
            case "samesite":
                sameSite =
                    switch String(decoding: value, as: UTF8.self).lowercased() {
                    case "strict": .strict
                    case "lax": .lax
                    case "none": .none
                    default: .unspecified
                    }
            default: break
            }
        }

        /// The lifetime in seconds, not longer than ``longestLifetime``; zero or less: expired.
        private static func lifetime(_ text: ArraySlice<UInt8>) -> Int64? {
            let digits = text.first == UInt8(ascii: "-") ? text.dropFirst() : text
            guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            guard digits.startIndex == text.startIndex else { return Int64.min / 2 }
            let significant = digits.drop { $0 == 0x30 }
            guard significant.count <= 12 else { return longestLifetime }
            return min(longestLifetime, significant.reduce(0) { $0 * 10 + Int64($1 & 15) })
        }
    }

    /// The part up to the next semicolon.
    private static func next(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let part = rest.prefix { $0 != UInt8(ascii: ";") }
        rest = rest[part.endIndex...].dropFirst()
        return part
    }

    static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        let end = bytes.lastIndex { !isSpace($0) }.map { $0 + 1 } ?? bytes.startIndex
        return bytes[..<end].drop(while: isSpace)
    }

    /// The path of a cookie without the attribute: up to the last slash (RFC 6265 §5.1.4).
    static func defaultPath(for path: some Collection<UInt8>) -> String {
        let whole = Array(path.prefix { $0 != UInt8(ascii: "?") })
        guard whole.first == UInt8(ascii: "/"), let slash = whole.lastIndex(of: UInt8(ascii: "/")), slash > 0,
            let text = String(validating: whole[..<slash], as: UTF8.self)
        else { return "/" }
        return text
    }
}
