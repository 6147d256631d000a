// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A JSON object (RFC 8259 §4) under construction. Member names are literals and are not escaped.
package struct JSONObject: Sendable {
    private var bytes: [UInt8]

    package init() {
        bytes = []
        // Most lines of the access log need no more.
        bytes.reserveCapacity(512)
        bytes.append(UInt8(ascii: "{"))
    }

    package mutating func add(_ name: String, _ value: String) {
        key(name)
        Self.append(value, to: &bytes)
    }

    /// Adds nothing without a value.
    package mutating func add(_ name: String, ifAny value: String?) {
        if let value { add(name, value) }
    }

    package mutating func add(_ name: String, _ values: [String]) {
        key(name)
        bytes.append(UInt8(ascii: "["))
        for (index, value) in values.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            Self.append(value, to: &bytes)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    package mutating func add(_ name: String, _ value: UInt64) {
        key(name)
        Self.append(value, to: &bytes)
    }

    package mutating func add(_ name: String, _ value: JSONObject) {
        key(name)
        value.append(to: &bytes)
    }

    package mutating func add(_ name: String, _ values: [JSONObject]) {
        key(name)
        bytes.append(UInt8(ascii: "["))
        for (index, value) in values.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            value.append(to: &bytes)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    /// The whole object.
    package var utf8: [UInt8] { finished(spare: 0) }

    /// The whole object and a line feed.
    package var line: [UInt8] {
        var line = finished(spare: 1)
        line.append(UInt8(ascii: "\n"))
        return line
    }

    package var text: String { String(decoding: utf8, as: UTF8.self) }

    private func finished(spare: Int) -> [UInt8] {
        var object: [UInt8] = []
        object.reserveCapacity(bytes.count + 1 + spare)
        append(to: &object)
        return object
    }

    private func append(to output: inout [UInt8]) {
        output.append(contentsOf: bytes)
        output.append(UInt8(ascii: "}"))
    }

    private mutating func key(_ name: String) {
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: name.utf8)
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
    }

    /// Appends `text` as a JSON string.
    package static func append(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        var text = text
        let isPlain = text.withUTF8 { text in
            guard needsNoEscape(text) else { return false }
            bytes.append(contentsOf: text)
            return true
        }
        if !isPlain { bytes.append(contentsOf: escaped(text).utf8) }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Whether ``escaped(_:)`` returns the text as it is. False for letters beyond ASCII, too.
    package static func needsNoEscape(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        let bytes = UnsafeRawBufferPointer(text)
        let words = text.count / 8
        var found: UInt64 = 0
        for word in 0..<words {
            found |= escapes(in: bytes.loadUnaligned(fromByteOffset: 8 * word, as: UInt64.self))
        }
        for byte in bytes[(8 * words)...] { found |= escapes(in: UInt64(byte) * 0x0101_0101_0101_0101) }
        return found == 0
    }

    /// Not 0 if one of eight bytes is not plain. A carry only comes from a byte that is not.
    private static func escapes(in bytes: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let quotes = bytes ^ (ones &* 0x22)
        let backslashes = bytes ^ (ones &* 0x5C)
        let controls = (bytes &- ones &* 0x20) & ~bytes
        let others = bytes | (bytes &+ ones)
        return (controls | others | (quotes &- ones) & ~quotes | (backslashes &- ones) & ~backslashes) & (ones &* 0x80)
    }

    /// Appends the digits of `number`.
    package static func append(_ number: UInt64, to bytes: inout [UInt8]) {
        var rest = number
        let start = bytes.count
        repeat {
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
            rest /= 10
        } while rest > 0
        bytes[start...].reverse()
    }

    /// `text` as the content of a JSON string (RFC 8259 §7).
    package static func escaped(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\":
                result.append("\\")
                result.append(scalar)
            case "\n":
                result.append(contentsOf: "\\n".unicodeScalars)
            case " "..."~":
                result.append(scalar)
            default:
                // A person may read the log on a terminal.
                result.append(contentsOf: PrintableText.escapedJSON(scalar).unicodeScalars)
            }
        }
        return String(result)
    }
}
