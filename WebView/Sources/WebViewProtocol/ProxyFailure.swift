// SPDX-License-Identifier: Apache-2.0

/// What the caller's proxy says about a response, in `Proxy-Status` (RFC 9209): that it has made the response itself,
/// because of an error, or why the server's response is as it is.
package struct ProxyFailure: Equatable, Sendable {
    /// Whether the response is not the server's.
    package let isError: Bool
    /// A sentence in lower case without a full stop; empty if there is none.
    package let details: String

    /// The proxy's member of the field. It lets no server use this name.
    private static let name = "countersign"

    /// From the values of all lines of the field, joined by commas. Nil without a member of the proxy.
    package init?(_ value: String) {
        for member in Self.split(value[...], at: ",") {
            let parts = Self.split(member, at: ";").map { String($0.drop { $0 == " " }) }
            guard parts.first?.filter({ $0 != " " }) == Self.name else { continue }
            isError = parts.contains { $0.hasPrefix("error=") }
            details = parts.first { $0.hasPrefix("details=\"") }.map { Self.unquoted($0.dropFirst(9)) } ?? ""
            return
        }
        return nil
    }

    /// Splits outside of strings (RFC 8941 §3.3.3).
    private static func split(_ text: Substring, at separator: Character) -> [Substring] {
        var parts: [Substring] = []
        var (isString, isEscaped) = (false, false)
        var start = text.startIndex
        for index in text.indices {
            let character = text[index]
            if character == "\"", !isEscaped { isString.toggle() }
            isEscaped = isString && !isEscaped && character == "\\"
            guard character == separator, !isString else { continue }
            parts.append(text[start..<index])
            start = text.index(after: index)
        }
        return parts + [text[start...]]
    }

    /// The text before the closing quote.
    private static func unquoted(_ text: Substring) -> String {
        var result = ""
        var isEscaped = false
        for character in text {
            if character == "\"", !isEscaped { break }
            isEscaped = character == "\\" && !isEscaped
            if !isEscaped { result.append(character) }
        }
        return result
    }
}
