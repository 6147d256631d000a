// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The limits of a text that a ``JSONParser`` accepts.
package struct JSONLimits: Sendable, Equatable {
    /// The whole text, in bytes.
    package var bytes: Int
    /// How deep arrays and objects may be nested.
    package var depth: Int
    /// The name of a member, in bytes.
    package var nameBytes: Int

    package init(bytes: Int = 256 * 1024, depth: Int = 32, nameBytes: Int = 256) {
        self.bytes = bytes
        self.depth = depth
        self.nameBytes = nameBytes
    }
}

/// A parser for RFC 8259 that accepts nothing else: one value in UTF-8 without a byte order mark, and nothing but white
/// space around it. Two members of one name are an error (RFC 8259 §4 leaves their meaning open), and so is a surrogate
/// that is not one of a pair (§8.2).
package struct JSONParser {
    private let bytes: [UInt8]
    private let limits: JSONLimits
    /// The names in UTF-8.
    private let secrets: Set<[UInt8]>
    private var offset = 0
    private var depth = 0
    private var line = 1
    private var lineStart = 0
    /// The last offset whose column was counted, and that column from 0. Counting from the start of the line for each
    /// value would take quadratic time in a text of one line.
    private var counted = (offset: 0, column: 0)

    /// Parses the whole of `bytes`. The string values of members named in `secrets`, at any depth, are not copied to
    /// ordinary memory; the caller wipes `bytes`.
    package static func parse(
        _ bytes: [UInt8], limits: JSONLimits = JSONLimits(), secrets: Set<String> = []
    ) throws(JSONError) -> JSONValue {
        var parser = JSONParser(bytes: bytes, limits: limits, secrets: secrets)
        return try parser.text()
    }

    private init(bytes: [UInt8], limits: JSONLimits, secrets: Set<String>) {
        self.bytes = bytes
        self.limits = limits
        self.secrets = Set(secrets.map { Array($0.utf8) })
    }

    // MARK: Grammar

    private mutating func text() throws(JSONError) -> JSONValue {
        guard bytes.count <= limits.bytes else {
            throw JSONError(.tooLong, at: here(), "the text is longer than \(limits.bytes) bytes")
        }
        try checkEncoding()
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { throw malformed("the text begins with a byte order mark") }
        skipWhiteSpace()
        let value = try self.value()
        skipWhiteSpace()
        guard offset == bytes.count else { throw malformed("there is more text after the end of the value") }
        return value
    }

    private mutating func checkEncoding() throws(JSONError) {
        do throws(UTF8.ValidationError) {
            _ = try UTF8Span(validating: bytes.span)
        } catch {
            let fault = error.byteOffsets.lowerBound
            while offset < fault {
                if bytes[offset] == 0x0A { startLine(after: offset) }
                offset += 1
            }
            throw malformed("the text is not UTF-8")
        }
    }

    private mutating func value(secret: Bool = false) throws(JSONError) -> JSONValue {
        let position = here()
        switch next {
        case UInt8(ascii: "{"): return JSONValue(.object(try object()), at: position)
        case UInt8(ascii: "["): return JSONValue(.array(try array()), at: position)
        case UInt8(ascii: "\""):
            var content = try string()
            defer { content.wipe() }
            if secret { return JSONValue(.secret(Secret(content)), at: position) }
            return JSONValue(.string(String(decoding: content, as: UTF8.self)), at: position)
        case UInt8(ascii: "t"): return JSONValue(try literal("true", .bool(true)), at: position)
        case UInt8(ascii: "f"): return JSONValue(try literal("false", .bool(false)), at: position)
        case UInt8(ascii: "n"): return JSONValue(try literal("null", .null), at: position)
        case UInt8(ascii: "-"), .some(UInt8(ascii: "0")...UInt8(ascii: "9")):
            return JSONValue(try number(), at: position)
        default: throw unexpected("a value")
        }
    }

    /// RFC 8259 §4.
    private mutating func object() throws(JSONError) -> [JSONMember] {
        try descend()
        var members: [JSONMember] = []
        // Compared as bytes: `String` normalises, in quadratic time.
        var names: Set<[UInt8]> = []
        skipWhiteSpace()
        if take(UInt8(ascii: "}")) { return leave(members) }
        while true {
            skipWhiteSpace()
            let position = here()
            guard next == UInt8(ascii: "\"") else { throw unexpected("the name of a member in quotes") }
            let bytes = try string()
            guard bytes.count <= limits.nameBytes else {
                throw JSONError(
                    .tooLong, at: position, "the name of a member is longer than \(limits.nameBytes) bytes")
            }
            let name = String(decoding: bytes, as: UTF8.self)
            guard names.insert(bytes).inserted else {
                throw JSONError(
                    .duplicateMember, at: position, "the key \(PrintableText.quote(name)) occurs twice in one object")
            }
            skipWhiteSpace()
            guard take(UInt8(ascii: ":")) else { throw unexpected("a colon") }
            skipWhiteSpace()
            members.append(JSONMember(name, try value(secret: secrets.contains(bytes)), at: position))
            skipWhiteSpace()
            if take(UInt8(ascii: "}")) { return leave(members) }
            guard take(UInt8(ascii: ",")) else { throw unexpected("a comma or the end of the object") }
        }
    }

    /// RFC 8259 §5.
    private mutating func array() throws(JSONError) -> [JSONValue] {
        try descend()
        var values: [JSONValue] = []
        skipWhiteSpace()
        if take(UInt8(ascii: "]")) { return leave(values) }
        while true {
            skipWhiteSpace()
            values.append(try value())
            skipWhiteSpace()
            if take(UInt8(ascii: "]")) { return leave(values) }
            guard take(UInt8(ascii: ",")) else { throw unexpected("a comma or the end of the array") }
        }
    }

    private mutating func literal(_ word: String, _ content: JSONValue.Content) throws(JSONError) -> JSONValue.Content {
        guard bytes[offset...].starts(with: word.utf8) else { throw unexpected("a value") }
        offset += word.utf8.count
        return content
    }

    /// RFC 8259 §6.
    private mutating func number() throws(JSONError) -> JSONValue.Content {
        let start = offset
        var isInteger = true
        _ = take(UInt8(ascii: "-"))
        if !take(UInt8(ascii: "0")) { try digits() }
        if take(UInt8(ascii: ".")) {
            isInteger = false
            try digits()
        }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            isInteger = false
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            try digits()
        }
        let text = String(decoding: bytes[start..<offset], as: UTF8.self)
        if isInteger, text != "-0", let value = Int64(text) { return .integer(value) }
        return .number(text)
    }

    private mutating func digits() throws(JSONError) {
        let start = offset
        while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { offset += 1 }
        guard offset > start else { throw unexpected("a digit") }
    }

    // MARK: Strings

    /// The content of a string in UTF-8 (RFC 8259 §7).
    private mutating func string() throws(JSONError) -> [UInt8] {
        var content: [UInt8] = []
        // A string is never longer than its text, so that the bytes are not moved, which would leave copies in memory.
        content.reserveCapacity(try rawLength())
        do throws(JSONError) {
            try string(into: &content)
        } catch {
            content.wipe()
            throw error
        }
        return content
    }

    /// The bytes between the quotes.
    private mutating func rawLength() throws(JSONError) -> Int {
        var end = offset + 1
        while end < bytes.count, bytes[end] != UInt8(ascii: "\"") {
            end += bytes[end] == UInt8(ascii: "\\") ? 2 : 1
        }
        guard end < bytes.count else { throw malformed("a string has no closing quote") }
        return end - offset - 1
    }

    private mutating func string(into content: inout [UInt8]) throws(JSONError) {
        offset += 1
        while let byte = next {
            switch byte {
            case UInt8(ascii: "\""):
                offset += 1
                return
            case UInt8(ascii: "\\"):
                try escape(into: &content)
            case 0..<0x20:
                throw malformed("a control character in a string must be escaped")
            default:
                content.append(byte)
                offset += 1
            }
        }
        throw malformed("a string has no closing quote")
    }

    private mutating func escape(into content: inout [UInt8]) throws(JSONError) {
        let start = offset
        offset += 1
        let plain: UInt8
        switch next {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): plain = bytes[offset]
        case UInt8(ascii: "b"): plain = 0x08
        case UInt8(ascii: "f"): plain = 0x0C
        case UInt8(ascii: "n"): plain = 0x0A
        case UInt8(ascii: "r"): plain = 0x0D
        case UInt8(ascii: "t"): plain = 0x09
        case UInt8(ascii: "u"):
            offset += 1
            content.append(contentsOf: String(try escapedScalar(from: start)).utf8)
            return
        default: throw malformed("an unknown escape sequence")
        }
        content.append(plain)
        offset += 1
    }

    /// The scalar of `\uXXXX` or of two such escapes that make a surrogate pair.
    private mutating func escapedScalar(from start: Int) throws(JSONError) -> Unicode.Scalar {
        let first = try codeUnit()
        if let scalar = Unicode.Scalar(first) { return scalar }
        if first < 0xDC00, bytes[offset...].starts(with: "\\u".utf8) {
            offset += 2
            let second = try codeUnit()
            if (0xDC00..<0xE000).contains(second),
                let scalar = Unicode.Scalar(0x10000 + (UInt32(first) - 0xD800) << 10 + (UInt32(second) - 0xDC00))
            {
                return scalar
            }
        }
        offset = start
        throw malformed("an escaped surrogate is not one of a pair")
    }

    private mutating func codeUnit() throws(JSONError) -> UInt16 {
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let byte = next, let digit = Hex.value(of: byte) else {
                throw malformed("four hexadecimal digits must follow \\u")
            }
            unit = unit << 4 | UInt16(digit)
            offset += 1
        }
        return unit
    }

    // MARK: Positions

    private var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        offset += 1
        return true
    }

    private mutating func skipWhiteSpace() {
        while let byte = next {
            switch byte {
            case 0x0A: startLine(after: offset)
            case 0x20, 0x09, 0x0D: break
            default: return
            }
            offset += 1
        }
    }

    private mutating func startLine(after end: Int) {
        line += 1
        lineStart = end + 1
        counted = (lineStart, 0)
    }

    private mutating func here() -> JSONPosition {
        if offset < counted.offset { counted = (lineStart, 0) }
        // A scalar is counted at its first byte.
        counted.column += bytes[counted.offset..<offset].count { $0 & 0xC0 != 0x80 }
        counted.offset = offset
        return JSONPosition(line: line, column: counted.column + 1)
    }

    private mutating func descend() throws(JSONError) {
        guard depth < limits.depth else {
            throw JSONError(.tooDeep, at: here(), "nested deeper than \(limits.depth) levels")
        }
        depth += 1
        offset += 1
    }

    private mutating func leave<Value>(_ value: Value) -> Value {
        depth -= 1
        return value
    }

    private mutating func malformed(_ reason: String) -> JSONError { JSONError(.malformed, at: here(), reason) }

    private mutating func unexpected(_ wanted: String) -> JSONError {
        malformed(next == nil ? "the text ends where \(wanted) is expected" : "\(wanted) is expected here")
    }
}
