// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The origin of a page as a browser writes it in `Origin` (RFC 6454 §6.2): `https://app.corp.example`, with a port
/// unless it is the default, or another scheme with a name, such as `chrome-extension://…`. `null` is not an origin.
package struct PageOrigin: Hashable, Sendable, CustomStringConvertible {
    /// In its canonical form.
    package let description: String
    /// Nil for a scheme other than http and https.
    package let origin: Origin?

    /// From the value of `Origin`, or of the option `cross-site=`. Nothing may follow the authority.
    package init(parsing text: String) throws(HostNameError) {
        guard let end = AbsoluteURL.schemeEnd(text[...]) else {
            throw HostNameError(.scheme, "\(PrintableText.quoteASCII(text)) does not begin with https://")
        }
        let authority = text[text.utf8.index(end, offsetBy: 3)...]
        guard !authority.utf8.contains(where: { "/?#".utf8.contains($0) }) else {
            throw HostNameError(.path, "something follows the host in \(PrintableText.quoteASCII(text))")
        }
        let scheme = text[..<end].lowercased()
        if let known = Origin.Scheme(rawValue: scheme), known != .proxy {
            self.init(try Origin(scheme: known, authority: String(authority)))
            return
        }
        guard Self.isScheme(scheme), (1...253).contains(authority.utf8.count), authority.utf8.allSatisfy(Self.isPart)
        else {
            throw HostNameError(.forbiddenCharacter, "\(PrintableText.quoteASCII(text)) is not the origin of a page")
        }
        self.init("\(scheme)://\(authority)", nil)
    }

    package init(_ origin: Origin) {
        self.init("\(origin.scheme.rawValue)://\(origin.authority)", origin)
    }

    private init(_ description: String, _ origin: Origin?) {
        self.description = description
        self.origin = origin
    }

    /// The origin of a URL, such as the value of `Referer`.
    package init(ofURL url: String) throws(HostNameError) {
        let start = AbsoluteURL.schemeEnd(url[...]).map { url.utf8.index($0, offsetBy: 3) } ?? url.startIndex
        let end = url.utf8[start...].firstIndex { "/?#".utf8.contains($0) } ?? url.endIndex
        try self.init(parsing: String(url[..<end]))
    }

    /// RFC 3986 §3.1.
    private static func isScheme(_ text: String) -> Bool {
        guard let first = text.utf8.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first) else { return false }
        return text.utf8.allSatisfy { isAlphanumeric($0) || "+-.".utf8.contains($0) }
    }

    private static func isPart(_ byte: UInt8) -> Bool { isAlphanumeric(byte) || "-._:".utf8.contains(byte) }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
}
