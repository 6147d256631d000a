// SPDX-License-Identifier: Apache-2.0

/// A cookie as RFC 6265 §5.3 stores it.
package struct Cookie: Codable, Hashable, Sendable {
    package enum SameSite: String, Codable, Sendable {
        case none, lax, strict
    }

    package var name: String
    package var value: String
    /// A host, or with a leading dot a domain and the hosts below it.
    package var domain: String
    package var path: String
    /// Seconds since 1970; nil for a cookie of the session.
    package var expires: Int64?
    package var secure: Bool
    package var httpOnly: Bool
    package var sameSite: SameSite

    package init(
        name: String, value: String, domain: String, path: String = "/", expires: Int64? = nil, secure: Bool = true,
        httpOnly: Bool = true, sameSite: SameSite = .lax
    ) {
        self.name = name
        self.value = value
        self.domain = domain
        self.path = path
        self.expires = expires
        self.secure = secure
        self.httpOnly = httpOnly
        self.sameSite = sameSite
    }

    package init(from decoder: any Decoder) throws {
        let members = try decoder.members(CodingKeys.self)
        name = try members.decode(String.self, forKey: .name)
        value = try members.decode(String.self, forKey: .value)
        domain = try members.decode(String.self, forKey: .domain)
        path = try members.decode(String.self, forKey: .path)
        expires = try members.decodeIfPresent(Int64.self, forKey: .expires)
        secure = try members.decode(Bool.self, forKey: .secure)
        httpOnly = try members.decode(Bool.self, forKey: .httpOnly)
        sameSite = try members.decode(SameSite.self, forKey: .sameSite)
    }

    enum CodingKeys: String, CodingKey, CaseIterable {
        case name, value, domain, path, expires, secure, httpOnly, sameSite
    }

    /// Whether requests to `host` carry this cookie (RFC 6265 §5.1.3).
    package func isSent(to host: String) -> Bool {
        let domain = domain.lowercased()
        guard domain.hasPrefix(".") else { return domain == host }
        return host == domain.dropFirst() || (host.hasSuffix(domain) && !Self.isAddress(host))
    }

    var byteCount: Int { name.utf8.count + value.utf8.count + domain.utf8.count + path.utf8.count }

    /// - Throws: `ProtocolError` if a `Set-Cookie` field (RFC 6265 §4.1.1) could not have set this cookie.
    func checkSyntax() throws(ProtocolError) {
        guard byteCount <= Limits.cookieBytes else {
            throw ProtocolError("a cookie is longer than \(Limits.cookieBytes) bytes")
        }
        guard !name.isEmpty, name.utf8.allSatisfy({ Self.isValueByte($0) && !Self.nameSeparators.contains($0) }) else {
            throw ProtocolError("a cookie's name is not a token")
        }
        guard value.utf8.allSatisfy(Self.isValueByte) else {
            throw ProtocolError("a cookie's value has a forbidden character")
        }
        guard path.hasPrefix("/"), path.utf8.allSatisfy({ $0 > 0x1f && $0 != 0x7f && $0 != UInt8(ascii: ";") }) else {
            throw ProtocolError("a cookie's path does not begin with '/'")
        }
    }

    /// Also a space, a comma and quotation marks, which servers use and browsers accept.
    private static func isValueByte(_ byte: UInt8) -> Bool {
        byte > 0x1f && byte != 0x7f && byte != UInt8(ascii: ";")
    }

    private static let nameSeparators: Set<UInt8> = Set("()<>@,;:\\\"/[]?={} ".utf8)

    private static func isAddress(_ host: String) -> Bool {
        host.hasPrefix("[") || host.utf8.allSatisfy { ($0 >= 0x30 && $0 <= 0x39) || $0 == UInt8(ascii: ".") }
    }
}
