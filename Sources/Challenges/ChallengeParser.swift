// SPDX-License-Identifier: Apache-2.0

/// A strict parser for `WWW-Authenticate` fields (RFC 9110 §11.6.1): input that the grammar derives in exactly one way
/// is parsed, and everything else is an error.
///
/// One malformed challenge invalidates the whole response, because the text after it could be parsed in two ways. The
/// only tolerance beyond the grammar is for Base64 without quotes as the value of a parameter. Each field is parsed
/// separately: if a list continues in the next field line, that line must begin with a scheme.
package enum ChallengeParser {
    /// The maximum total length of all fields of one response, in UTF-8 bytes.
    package static let maximumBytes = 16 * 1024

    /// Returns the challenges of one response, in the order of `fields`, and within a field in its own order.
    ///
    /// Each element of `fields` is one field value, whose bytes were decoded as ISO 8859-1 or UTF-8. All characters
    /// beyond ASCII are obs-text and are preserved. Throws `unparsableChallenge` and `challengeTooLong`. Without
    /// fields, or if all are empty, there are no challenges.
    package static func parse(fields: [String]) throws(AuthenticationError) -> [Challenge] {
        var total = 0
        for field in fields {
            total += field.utf8.count
            guard total <= maximumBytes else {
                throw AuthenticationError(.challengeTooLong, "challenges of more than \(maximumBytes) bytes")
            }
        }
        var challenges: [Challenge] = []
        for (index, field) in fields.enumerated() {
            var reader = FieldReader(field, number: index + 1)
            challenges += try reader.challenges()
        }
        return challenges
    }
}

/// One field value and the current position in it.
private struct FieldReader {
    private let bytes: [UInt8]
    private let number: Int
    private var index = 0

    init(_ field: String, number: Int) {
        self.bytes = Array(field.utf8)
        self.number = number
    }

    /// `#challenge`; empty elements are skipped (RFC 9110 §5.6.1.2).
    mutating func challenges() throws(AuthenticationError) -> [Challenge] {
        var challenges: [Challenge] = []
        skipEmptyElements()
        while next != nil {
            challenges.append(try challenge())
            skipEmptyElements()
        }
        return challenges
    }

    /// `auth-scheme [ 1*SP ( token68 / #auth-param ) ]`
    private mutating func challenge() throws(AuthenticationError) -> Challenge {
        guard let scheme = takeToken() else { throw fault("expected a scheme") }
        guard next == .space else {
            try endElement()
            return Challenge(scheme: scheme)
        }
        while next == .space { index += 1 }
        if let token68 = takeToken68() {
            return Challenge(scheme: scheme, token68: token68)
        }
        return Challenge(scheme: scheme, parameters: try parameters())
    }

    /// `#auth-param`, up to the end or to the next list element without `=`, which begins another challenge.
    private mutating func parameters() throws(AuthenticationError) -> [AuthParameter] {
        var parameters: [AuthParameter] = []
        var names: Set<String> = []
        var afterComma = skipEmptyElements()
        while next != nil {
            let start = index
            guard let name = takeToken() else { throw fault("expected a parameter or a scheme") }
            skipWhitespace()
            guard next == .equals else {
                guard afterComma else { throw fault("expected \"=\"") }
                index = start
                return parameters
            }
            index += 1
            skipWhitespace()
            guard names.insert(name.lowercased()).inserted else {
                index = start
                throw fault("a parameter of this name came before")
            }
            parameters.append(AuthParameter(name, try takeValue()))
            try endElement()
            afterComma = skipEmptyElements()
        }
        return parameters
    }

    // MARK: Lexical elements

    private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func skipWhitespace() {
        while next == .space || next == .tab { index += 1 }
    }

    /// Skips commas and the white space around them. Returns whether there was a comma.
    @discardableResult
    private mutating func skipEmptyElements() -> Bool {
        var comma = false
        while let byte = next, byte == .space || byte == .tab || byte == .comma {
            comma = comma || byte == .comma
            index += 1
        }
        return comma
    }

    private mutating func endElement() throws(AuthenticationError) {
        skipWhitespace()
        guard next == nil || next == .comma else { throw fault("expected a comma") }
    }

    private mutating func takeToken() -> String? {
        let start = index
        while let byte = next, byte.isTokenCharacter { index += 1 }
        return index > start ? String(decoding: bytes[start..<index], as: UTF8.self) : nil
    }

    /// Consumes a token68 that is a whole list element. Otherwise returns nil and consumes nothing: `a=b` is not a
    /// token68, because its `=` is not at the end.
    private mutating func takeToken68() -> String? {
        let start = index
        while let byte = next, byte.isToken68Character { index += 1 }
        guard index > start else { return nil }
        while next == .equals { index += 1 }
        let end = index
        skipWhitespace()
        guard next == nil || next == .comma else {
            index = start
            return nil
        }
        return String(decoding: bytes[start..<end], as: UTF8.self)
    }

    /// `token / quoted-string`, and also Base64 without quotes, which cannot be read in another way: Spray and others
    /// write nonces so.
    private mutating func takeValue() throws(AuthenticationError) -> String {
        guard next == .quote else {
            if let token68 = takeToken68() { return token68 }
            guard let token = takeToken() else { throw fault("expected a value") }
            return token
        }
        index += 1
        var value: [UInt8] = []
        while let byte = next {
            index += 1
            switch byte {
            case .quote:
                return String(decoding: value, as: UTF8.self)
            case .backslash:
                guard let escaped = next, escaped.isText else { throw fault("expected an escaped character") }
                index += 1
                value.append(escaped)
            default:
                guard byte.isText else {
                    index -= 1
                    throw fault("control character in a quoted string")
                }
                value.append(byte)
            }
        }
        throw fault("quoted string without an end")
    }

    private func fault(_ what: String) -> AuthenticationError {
        let place = "challenge field \(number), byte \(index + 1): \(what)"
        guard let byte = next else { return AuthenticationError(.unparsableChallenge, place + ", found the end") }
        let found = (0x21...0x7E).contains(byte) ? "\"\(Character(Unicode.Scalar(byte)))\"" : "byte \(byte)"
        return AuthenticationError(.unparsableChallenge, "\(place), found \(found)")
    }
}

extension UInt8 {
    fileprivate static let tab: UInt8 = 0x09
    fileprivate static let space: UInt8 = 0x20
    fileprivate static let quote: UInt8 = 0x22
    fileprivate static let comma: UInt8 = 0x2C
    fileprivate static let equals: UInt8 = 0x3D
    fileprivate static let backslash: UInt8 = 0x5C

    private var isAlphanumeric: Bool {
        switch self {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: false
        }
    }

    /// `tchar` (RFC 9110 §5.6.2).
    fileprivate var isTokenCharacter: Bool {
        switch self {
        case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E, 0x5F, 0x60, 0x7C, 0x7E: true
        default: isAlphanumeric
        }
    }

    /// A character of `token68`, except the trailing `=` (RFC 9110 §11.2).
    fileprivate var isToken68Character: Bool {
        switch self {
        case 0x2B, 0x2D, 0x2E, 0x2F, 0x5F, 0x7E: true
        default: isAlphanumeric
        }
    }

    /// HTAB, SP, VCHAR or obs-text (RFC 9110 §5.6.4).
    fileprivate var isText: Bool { self == .tab || (self >= 0x20 && self != 0x7F) }
}
