// SPDX-License-Identifier: Apache-2.0

/// Parses `WWW-Authenticate` and `Proxy-Authenticate` fields (RFC 9110 §11.6.1), including the mistakes that browsers
/// and curl tolerate. A fault invalidates only the rest of its field line: a challenge is read up to the fault, and
/// each line on its own (§5.3).
///
/// Read in spite of the grammar:
/// - a tab or a comma between the scheme and its parameters
/// - white space or a semicolon instead of the comma between parameters
/// - a value without quotes, up to the next comma, semicolon or parameter; it may be empty, too
/// - `realm=`, which is a token68 by the grammar, as an empty realm
/// - a quoted string that the end of the line ends. If its last character is an escaped quotation mark, nothing in it
///   was meant as an escape: `"C:\data\"`
/// - a parameter that repeats its value
///
/// A single quotation mark is an ordinary character. A challenge with two values of a parameter is ignored. If a list
/// continues in the next field line, that line must begin with a scheme.
package enum ChallengeParser {
    /// The maximum total length of all fields of one response, in bytes.
    package static let maximumBytes = 16 * 1024

    /// The readable part of one field line.
    package struct Reading: Sendable {
        package let challenges: [Challenge]
        /// The first place that the grammar permits in no way, or that others may read differently; nil if there is
        /// none.
        package let fault: AuthenticationError?
        /// The line begins with a parameter, as if it went on with the challenge before it.
        let continuesChallenge: Bool
    }

    /// Returns the challenges of one response, in the order of `fields`, and within a field in its own order.
    ///
    /// Throws `challengeTooLong`, and `unparsableChallenge` if no challenge can be read because of a fault. Without
    /// fields, or if all are empty, there are no challenges.
    package static func parse(fields: [ChallengeField]) throws(AuthenticationError) -> [Challenge] {
        guard fields.reduce(0, { $0 + $1.octets.count }) <= maximumBytes else { throw tooLong }
        let readings = fields.enumerated().map { read($1, number: $0 + 1) }
        var challenges: [Challenge] = []
        for reading in readings {
            if reading.continuesChallenge, let last = challenges.popLast() { challenges.append(last.cut()) }
            challenges += reading.challenges
        }
        if challenges.isEmpty, let fault = readings.lazy.compactMap(\.fault).first { throw fault }
        return challenges
    }

    /// The same for values that have been decoded elsewhere.
    package static func parse(fields: [String]) throws(AuthenticationError) -> [Challenge] {
        try parse(fields: fields.map { ChallengeField($0) })
    }

    /// Reads one field line. `number` is its position in the response, for the fault.
    package static func read(_ field: ChallengeField, number: Int = 1) -> Reading {
        guard field.octets.count <= maximumBytes else {
            return Reading(challenges: [], fault: tooLong, continuesChallenge: false)
        }
        var reader = FieldReader(field, number: number)
        let continuesChallenge = reader.isParameter(afterCommas: true)
        let challenges = reader.challenges()
        return Reading(challenges: challenges, fault: reader.fault, continuesChallenge: continuesChallenge)
    }

    private static var tooLong: AuthenticationError {
        AuthenticationError(.challengeTooLong, "challenges of more than \(maximumBytes) bytes")
    }
}

/// One field value and the current position in it. After a fault that the text behind depends on, that is its end.
private struct FieldReader {
    private let bytes: [UInt8]
    private let number: Int
    private var index = 0
    private(set) var fault: AuthenticationError?
    /// Whether something of the current challenge may be missing.
    private var isCut = false

    init(_ field: ChallengeField, number: Int) {
        self.bytes = field.octets
        self.number = number
    }

    /// `#challenge`; empty elements are skipped (RFC 9110 §5.6.1.2).
    mutating func challenges() -> [Challenge] {
        var challenges: [Challenge] = []
        skip { $0.isSpace || $0 == .comma }
        while next != nil {
            if let challenge = challenge() { challenges.append(challenge) }
            skip { $0.isSpace || $0 == .comma }
        }
        return challenges
    }

    /// `auth-scheme [ 1*SP ( token68 / #auth-param ) ]`. Nil if there is no scheme, or a parameter has two values.
    private mutating func challenge() -> Challenge? {
        isCut = false
        guard let scheme = takeToken() else {
            stop("expected a scheme")
            return nil
        }
        let end = index
        skip(\.isSpace)
        guard next != nil, next != .comma || isParameter(afterCommas: true) else { return Challenge(scheme: scheme) }
        guard next == .comma || (index > end && next != .equals) else {
            stop("expected a comma")
            return nil
        }
        if let token68 = takeToken68() {
            return Challenge(scheme: scheme, token68: token68)
        }
        guard let parameters = parameters() else { return nil }
        return Challenge(scheme: scheme, parameters: parameters, isCut: isCut)
    }

    /// `#auth-param`, up to the end or to the next list element without `=`, which begins another challenge. Nil if a
    /// parameter has two values.
    private mutating func parameters() -> [AuthParameter]? {
        var parameters: [AuthParameter] = []
        var values: [String: [UInt8]] = [:]
        var isAmbiguous = false
        var afterComma = skipSeparators()
        while next != nil {
            let start = index
            guard isParameter() else {
                if afterComma, takeToken() != nil, next != .equals {
                    index = start
                } else {
                    stop(index > start ? "expected a value" : "expected a parameter or a scheme")
                }
                break
            }
            let name = takeToken() ?? ""
            skip(\.isSpace)
            index += 1
            skip(\.isSpace)
            guard let value = takeValue() else { break }
            switch values.updateValue(value, forKey: name.lowercased()) {
            case nil: parameters.append(AuthParameter(name, octets: value))
            case value: break
            case .some:
                isAmbiguous = true
                report("a parameter of this name came before", at: start)
            }
            let end = index
            afterComma = skipSeparators()
            if next != nil, index == end || !isParameter(), bytes[end..<index].allSatisfy(\.isSpace) {
                stop("expected a comma")
            }
        }
        return isAmbiguous ? nil : parameters
    }

    /// Whether a parameter begins here: `token BWS "="`, and no second `=`, which would be Base64.
    func isParameter(afterCommas: Bool = false) -> Bool {
        var ahead = self
        if afterCommas { ahead.skip { $0.isSpace || $0 == .comma } }
        guard ahead.takeToken() != nil else { return false }
        ahead.skip(\.isSpace)
        guard ahead.next == .equals else { return false }
        ahead.index += 1
        return ahead.next != .equals
    }

    // MARK: Lexical elements

    private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func skip(_ isSkipped: (UInt8) -> Bool) {
        while let byte = next, isSkipped(byte) { index += 1 }
    }

    /// Skips separators of parameters. Returns whether a challenge may follow.
    private mutating func skipSeparators() -> Bool {
        let start = index
        skip { $0.isSpace || $0 == .comma || $0 == .semicolon }
        return bytes[start..<index].contains(.comma)
    }

    private mutating func takeToken() -> String? {
        let start = index
        skip(\.isTokenCharacter)
        return index > start ? String(decoding: bytes[start..<index], as: UTF8.self) : nil
    }

    /// Consumes a token68 that is a whole list element. Otherwise returns nil and consumes nothing: `a=b` is not a
    /// token68, because its `=` is not at the end.
    private mutating func takeToken68() -> String? {
        let start = index
        skip(\.isToken68Character)
        guard index > start else { return nil }
        skip { $0 == .equals }
        let token68 = String(decoding: bytes[start..<index], as: UTF8.self)
        skip(\.isSpace)
        guard next == nil || next == .comma, token68.lowercased() != "realm=" else {
            index = start
            return nil
        }
        return token68
    }

    /// `token / quoted-string`, and the tolerated substitutes. Nil after a fault.
    private mutating func takeValue() -> [UInt8]? {
        next == .quote ? takeQuotedString() : takeUnquoted()
    }

    /// Words up to the next separator or parameter.
    private mutating func takeUnquoted() -> [UInt8] {
        let start = index
        skip(\.isUnquoted)
        var end = index
        while true {
            skip(\.isSpace)
            let word = index
            guard word > end, !isParameter() else { break }
            skip(\.isUnquoted)
            guard index > word else { break }
            end = index
        }
        index = end
        return Array(bytes[start..<end])
    }

    private mutating func takeQuotedString() -> [UInt8]? {
        index += 1
        let start = index
        var value: [UInt8] = []
        while let byte = next {
            index += 1
            switch byte {
            case .quote:
                return value
            case .backslash where next != nil:
                guard let escaped = next, escaped.isText else {
                    stop("expected an escaped character")
                    return nil
                }
                index += 1
                value.append(escaped)
            default:
                guard byte.isText else {
                    index -= 1
                    stop("control character in a quoted string")
                    return nil
                }
                value.append(byte)
            }
        }
        let rest = bytes[start...]
        let end = (rest.lastIndex { !$0.isSpace } ?? start - 1) + 1
        if rest.prefix(upTo: end).last == .quote { value = Array(rest.prefix(upTo: end).dropLast()) }
        // Others may have been meant to follow.
        if value.contains(where: { $0 == .comma || $0 == .semicolon || $0 == .equals }) {
            isCut = true
            report("quoted string without an end", at: start - 1)
        }
        return value
    }

    // MARK: Faults

    /// Reports a fault here, and leaves the rest of the field unread.
    private mutating func stop(_ what: String) {
        report(what, at: index)
        index = bytes.count
        isCut = true
    }

    private mutating func report(_ what: String, at index: Int) {
        guard fault == nil else { return }
        let place = "challenge field \(number), byte \(index + 1): \(what)"
        guard index < bytes.count else {
            fault = AuthenticationError(.unparsableChallenge, place + ", found the end")
            return
        }
        let byte = bytes[index]
        let found = (0x21...0x7E).contains(byte) ? "\"\(Character(Unicode.Scalar(byte)))\"" : "byte \(byte)"
        fault = AuthenticationError(.unparsableChallenge, "\(place), found \(found)")
    }
}

extension UInt8 {
    fileprivate static let tab: UInt8 = 0x09
    fileprivate static let space: UInt8 = 0x20
    fileprivate static let quote: UInt8 = 0x22
    fileprivate static let comma: UInt8 = 0x2C
    fileprivate static let semicolon: UInt8 = 0x3B
    fileprivate static let equals: UInt8 = 0x3D
    fileprivate static let backslash: UInt8 = 0x5C

    private var isAlphanumeric: Bool {
        switch self {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: false
        }
    }

    /// OWS (RFC 9110 §5.6.3).
    fileprivate var isSpace: Bool { self == .space || self == .tab }

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

    /// A character of a value without quotes, such as a URL.
    fileprivate var isUnquoted: Bool {
        switch self {
        case .quote, .comma, .semicolon, 0x00...0x20, 0x7F: false
        default: true
        }
    }

    /// HTAB, SP, VCHAR or obs-text (RFC 9110 §5.6.4).
    fileprivate var isText: Bool { self == .tab || (self >= 0x20 && self != 0x7F) }
}
