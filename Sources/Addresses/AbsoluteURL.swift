// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// An absolute http or https URL from the command line.
package struct AbsoluteURL: Equatable, Sendable, CustomStringConvertible {
    package let origin: Origin
    /// Path and query in origin-form (RFC 9112 §3.2.1), without the fragment; at least `/`.
    package let path: String

    /// Throws for white space and control characters anywhere, and for every host that ``HostName`` does not accept.
    /// Without `defaultScheme`, a text without a scheme is an error, too.
    package init(parsing text: String, defaultScheme: Origin.Scheme? = nil) throws(HostNameError) {
        for scalar in text.unicodeScalars where scalar.value <= 0x20 || (0x7F...0x9F).contains(scalar.value) {
            throw HostNameError(
                .forbiddenCharacter, "white space or a control character in the URL \(PrintableText.quoteASCII(text))")
        }
        let scheme: Origin.Scheme
        let rest: Substring
        if let separator = Self.schemeEnd(text[...]) {
            scheme = try Origin.Scheme(name: text[..<separator])
            rest = text[text.utf8.index(separator, offsetBy: 3)...]
        } else if let defaultScheme {
            scheme = defaultScheme
            rest = text[...]
        } else {
            throw HostNameError(
                .scheme, "the URL \(PrintableText.quoteASCII(text)) does not begin with http:// or https://")
        }
        let delimiters = [UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#")]
        let authorityEnd = rest.utf8.firstIndex(where: delimiters.contains) ?? rest.endIndex
        origin = try Origin(scheme: scheme, authority: String(rest[..<authorityEnd]))
        let pathEnd = rest.utf8.firstIndex(of: UInt8(ascii: "#")) ?? rest.endIndex
        let target = String(rest[authorityEnd..<pathEnd])
        path = target.hasPrefix("/") ? target : "/" + target
    }

    package var description: String { "\(origin.scheme.rawValue)://\(origin.authority)\(path)" }

    /// The position of `://`, if there is a scheme before it.
    package static func schemeEnd(_ text: Substring) -> Substring.Index? {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), colon > text.startIndex,
            text.utf8[colon...].starts(with: "://".utf8)
        else { return nil }
        return colon
    }
}
