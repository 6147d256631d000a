// SPDX-License-Identifier: Apache-2.0

/// A request to the page: of the person's own programs on the control socket, or of the proxy, which has parsed it.
struct PageRequest: Equatable {
    let method: String
    /// Without the query, which nothing here has.
    let path: String
    /// By name in lower case. Of a field that occurs several times, the last value.
    let fields: [String: String]

    /// The most bytes of a head, and of a content.
    static let limitBytes = 16 << 10

    /// Whether a line, without its line feed, is a request line (RFC 9112 §3) and not a command in JSON.
    static func isRequestLine(_ line: some Collection<UInt8>) -> Bool {
        requestLine(line) != nil
    }

    /// Reads a head whose lines, without line feeds, come from `nextLine`, after its request line. Nil for a malformed
    /// one.
    init?(_ first: [UInt8], nextLine: () -> [UInt8]?) {
        guard let (method, target) = Self.requestLine(first) else { return nil }
        var fields: [String: String] = [:]
        var byteCount = first.count
        while true {
            guard let line = nextLine() else { return nil }
            byteCount += line.count
            let bytes = line.last == UInt8(ascii: "\r") ? line.dropLast() : line[...]
            if bytes.isEmpty { break }
            guard byteCount <= Self.limitBytes, let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon > 0 else {
                return nil
            }
            let name = String(decoding: bytes[..<colon], as: UTF8.self).lowercased()
            let value = String(decoding: bytes[(colon + 1)...], as: UTF8.self)
            fields[name] = String(value.drop { $0 == " " || $0 == "\t" })
        }
        self.method = method
        path = String(target.prefix { $0 != "?" })
        self.fields = fields
    }

    /// The size of the content; nil if it is too large or not said as a number.
    var contentBytes: Int? {
        guard fields["transfer-encoding"] == nil else { return nil }
        guard let text = fields["content-length"] else { return 0 }
        guard let count = Int(text), (0...Self.limitBytes).contains(count) else { return nil }
        return count
    }

    /// Whether a page of another origin has caused the request (Fetch Metadata Request Headers). It can read nothing,
    /// but must not keep the server busy either. A link to the page is none.
    var isOfAnotherOrigin: Bool {
        switch fields["sec-fetch-site"] {
        case nil, "same-origin", "none": false
        default: !(method == "GET" && path == "/" && fields["sec-fetch-mode"] == "navigate")
        }
    }

    /// The session in `Authorization: Bearer SESSION`.
    var session: String? {
        guard let value = fields["authorization"], value.lowercased().hasPrefix("bearer ") else { return nil }
        return String(value.dropFirst("bearer ".count))
    }

    private static func requestLine(_ line: some Collection<UInt8>) -> (method: String, target: String)? {
        guard line.first.map({ (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }) == true else { return nil }
        var text = String(decoding: line, as: UTF8.self)
        if text.hasSuffix("\r") { text.removeLast() }
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[2] == "HTTP/1.1" || parts[2] == "HTTP/1.0", parts[1].hasPrefix("/") else {
            return nil
        }
        return (String(parts[0]), String(parts[1]))
    }
}
