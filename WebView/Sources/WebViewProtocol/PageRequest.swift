// SPDX-License-Identifier: Apache-2.0

/// A page to load, with fields that go with the first request only.
package struct PageRequest: Equatable, Sendable {
    package var url: String
    /// Fields by name. They do not follow a redirect to another origin.
    package var headers: [String: String]

    package init(url: String, headers: [String: String] = [:]) {
        self.url = url
        self.headers = headers
    }

    /// - Throws: `ProtocolError` if the page's origin is not allowed, or a field is malformed.
    package func check(_ policy: NavigationPolicy) throws(ProtocolError) {
        guard policy.decide(url) == .allow, PageURL(url)?.host != nil else {
            throw ProtocolError("'url' is not on an allowed origin")
        }
        guard headers.count <= Limits.headers else { throw ProtocolError("'headers' has too many members") }
        for (name, value) in headers {
            guard !name.isEmpty, name.utf8.allSatisfy(Self.isTokenByte) else {
                throw ProtocolError("'headers' has a name that is not a token")
            }
            guard !Self.reserved.contains(name.lowercased()) else {
                throw ProtocolError("'headers' has a field that the web view sets itself")
            }
            guard value.utf8.count <= Limits.headerBytes, value.utf8.allSatisfy({ $0 > 0x1f && $0 < 0x7f }) else {
                throw ProtocolError("'headers' has a value that is too long or not printable ASCII")
            }
        }
    }

    /// RFC 9110 §5.6.2.
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    private static let reserved: Set<String> = [
        "connection", "content-length", "cookie", "host", "origin", "proxy-authorization", "referer",
        "transfer-encoding", "upgrade", "user-agent",
    ]
}

extension PageRequest: Codable {
    private enum Key: String, CodingKey, CaseIterable {
        case type, url, headers
    }

    package init(from decoder: any Decoder) throws {
        let members = try decoder.members(Key.self)
        url = try members.decode(String.self, forKey: .url)
        headers = try members.decodeIfPresent([String: String].self, forKey: .headers) ?? [:]
    }

    package func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: Key.self)
        try members.encode(url, forKey: .url)
        if !headers.isEmpty { try members.encode(headers, forKey: .headers) }
    }
}
