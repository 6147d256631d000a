// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A cookie of a shared session (RFC 6265 §5.3). Times are in seconds since 1970.
package struct Cookie: Equatable, Sendable {
    /// When a browser sends the cookie with requests that another site causes (RFC 6265bis §5.6.7).
    package enum SameSite: UInt8, Equatable, Sendable, Codable {
        /// The server has not said. Treated as `lax`.
        case unspecified
        case none
        case lax
        case strict
    }

    /// Two cookies with the same identity replace each other (RFC 6265 §5.3, step 11).
    package struct Identity: Hashable, Sendable {
        package let name: String
        package let domain: String
        package let isHostOnly: Bool
        package let path: String

        package init(name: String, domain: String, isHostOnly: Bool, path: String) {
            self.name = name
            self.domain = domain
            self.isHostOnly = isHostOnly
            self.path = path
        }
    }

    package let identity: Identity
    package let value: Secret
    package let isSecure: Bool
    package let isHTTPOnly: Bool
    package let sameSite: SameSite
    /// The first second at which the cookie is no longer valid; nil if it ends with the browser's session.
    package let expires: Int64?
    /// When it was received.
    package let stored: Int64

    package init(
        _ identity: Identity, value: Secret, isSecure: Bool, isHTTPOnly: Bool, sameSite: SameSite, expires: Int64?,
        stored: Int64
    ) {
        self.identity = identity
        self.value = value
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.sameSite = sameSite
        self.expires = expires
        self.stored = stored
    }

    package var name: String { identity.name }
    /// The canonical host that the cookie is for, and the hosts below it unless it is for the host only.
    package var domain: String { identity.domain }
    package var isHostOnly: Bool { identity.isHostOnly }
    package var path: String { identity.path }

    /// The first second at which the cookie is no longer used. A cookie that ends with the browser's session is kept
    /// for a day, because that end is unknown.
    package var end: Int64 {
        expires ?? stored.addingReportingOverflow(SharedSession.sessionCookieSeconds).partialValue
    }

    /// The largest sum of the lengths of name, value, domain and path.
    package static let maximumBytes = 4096

    package var byteCount: Int { name.utf8.count + value.count + domain.utf8.count + path.utf8.count }

    /// Why the cookie cannot be stored for `host`, as the end of "the cookie has"; nil if it can.
    package func fault(for host: String) -> String? {
        guard Self.isName(name) else { return "a name that is not a token" }
        guard byteCount <= Self.maximumBytes else { return "more than \(Self.maximumBytes) bytes" }
        guard value.withBytes({ $0.allSatisfy(Self.isValueByte) }) else { return "a control character or semicolon" }
        guard path.utf8.first == UInt8(ascii: "/"), path.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != 0x3B })
        else { return "a path that does not begin with /" }
        guard isHostOnly ? domain == host : Self.domain(domain, covers: host) else { return "a domain of another host" }
        if Self.hasPrefix(name, "__secure-"), !isSecure { return "a name that needs Secure" }
        if Self.isForHostOnly(name), !isSecure || !isHostOnly || path != "/" {
            return "a name that needs Secure, Path=/ and no Domain"
        }
        guard stored >= 0, expires ?? 0 >= 0 else { return "a time before 1970" }
        return nil
    }

    /// Whether `name` is a token of at most 256 bytes.
    package static func isName(_ name: some StringProtocol) -> Bool {
        (1...256).contains(name.utf8.count) && name.utf8.allSatisfy(isTokenByte)
    }

    /// Whether the name has the prefix `__Host-`, in any case.
    static func isForHostOnly(_ name: String) -> Bool { hasPrefix(name, "__host-") }

    static func isValueByte(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7F && byte != UInt8(ascii: ";") }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    private static func hasPrefix(_ name: String, _ lowercase: String) -> Bool {
        name.lowercased().hasPrefix(lowercase)
    }

    /// Whether `host` is `domain` or below it (RFC 6265 §5.1.3). An address is below nothing.
    static func domain(_ domain: String, covers host: String) -> Bool {
        guard host != domain else { return true }
        return !isAddress(host) && host.hasSuffix("." + domain) && !domain.isEmpty
    }

    /// `host` is canonical, so that only an address has a colon or a number as its last label.
    static func isAddress(_ host: String) -> Bool {
        host.utf8.contains(UInt8(ascii: ":"))
            || host.utf8.reversed().prefix { $0 != UInt8(ascii: ".") }.allSatisfy { (0x30...0x39).contains($0) }
    }

    /// Whether a request for `path` gets the cookie (RFC 6265 §5.1.4). `path` has no query.
    func covers(path: some Collection<UInt8>) -> Bool { identity.covers(path: path) }
}

extension Cookie.Identity {
    /// Whether a request for `path`, which has no query, gets a cookie with this path (RFC 6265 §5.1.4).
    func covers(path: some Collection<UInt8>) -> Bool {
        let own = self.path.utf8
        guard path.starts(with: own) else { return false }
        guard own.last != UInt8(ascii: "/") else { return true }
        let next = path.dropFirst(own.count).first
        return next == nil || next == UInt8(ascii: "/")
    }
}
