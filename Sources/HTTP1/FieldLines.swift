// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The field lines of a head or a trailer section, as ranges of the bytes received, in order.
package struct FieldLines: Hashable, Sendable {
    /// The whole head: start-line, field lines and final empty line. A trailer section has no start-line.
    package let bytes: [UInt8]
    package let lines: [FieldLine]
    /// One bit per `FieldName`, set if the field occurs.
    private let present: UInt32
    /// The options of the Connection field.
    let connection: ConnectionField
    /// The contents of Content-Length and Transfer-Encoding.
    let framing: FramingFields

    /// `section` has been read completely from `bytes`.
    init(bytes: consuming [UInt8], _ section: consuming Section) {
        self.bytes = bytes
        lines = section.lines
        present = section.present
        connection = section.connection
        framing = section.framing
    }

    package func contains(_ name: FieldName) -> Bool { present & name.bit != 0 }

    package func count(of name: FieldName) -> Int {
        guard contains(name) else { return 0 }
        var count = 0
        for line in lines where line.known == name { count += 1 }
        return count
    }

    /// The value of the first line with this name; octets that are not UTF-8 become U+FFFD.
    package func value(of name: FieldName) -> String? {
        guard contains(name) else { return nil }
        return lines.first { $0.known == name }.map(value(of:))
    }

    /// The octets of the first line's value.
    package func valueBytes(of name: FieldName) -> ArraySlice<UInt8>? {
        guard contains(name) else { return nil }
        return lines.first { $0.known == name }.map(valueBytes(of:))
    }

    /// Whether the first line's value is exactly `octets`.
    package func value(of name: FieldName, equals octets: [UInt8]) -> Bool {
        guard contains(name) else { return false }
        for line in lines where line.known == name { return bytes.span.bytes.holds(octets, at: Range(line.value)) }
        return false
    }

    /// The value of every line with this name, in order.
    package func values(of name: FieldName) -> [String] {
        guard contains(name) else { return [] }
        return lines.filter { $0.known == name }.map(value(of:))
    }

    /// The octets of the value of every line with this name, in order.
    package func valuesBytes(of name: FieldName) -> [ArraySlice<UInt8>] {
        guard contains(name) else { return [] }
        return lines.filter { $0.known == name }.map(valueBytes(of:))
    }

    /// The value of every line with this name, in order. The name is compared case-insensitively.
    package func values(named name: String) -> [String] {
        let lowercase = name.lowercased()
        let span = bytes.span.bytes
        var values: [String] = []
        for line in lines where span.matches(lowercase, at: Range(line.name)) { values.append(value(of: line)) }
        return values
    }

    package func name(of line: FieldLine) -> String { String(decoding: bytes[Range(line.name)], as: UTF8.self) }

    package func value(of line: FieldLine) -> String { String(decoding: bytes[Range(line.value)], as: UTF8.self) }

    /// The octets of the line's value.
    package func valueBytes(of line: FieldLine) -> ArraySlice<UInt8> { bytes[Range(line.value)] }

    /// Overwrites the values of every line with this name, which are secrets, in copies of these fields, too.
    package func wipe(_ name: FieldName) {
        guard contains(name) else { return }
        bytes.withUnsafeBytes { octets in
            guard let start = octets.baseAddress else { return }
            for line in lines where line.known == name {
                let value = Range<Int>(line.value)
                explicit_bzero(UnsafeMutableRawPointer(mutating: start + value.lowerBound), value.count)
            }
        }
    }

    /// Overwrites each occurrence of `secret` in the whole head with asterisks, in copies of these fields, too. It must
    /// have no white space and no colon, so that it is no part of the head's structure.
    package func redact(_ secret: UnsafeRawBufferPointer) {
        guard let pattern = secret.baseAddress, secret.count > 0, bytes.count >= secret.count else { return }
        bytes.withUnsafeBytes { octets in
            guard let start = octets.baseAddress else { return }
            for offset in 0...(octets.count - secret.count)
            where memcmp(start + offset, pattern, secret.count) == 0 {
                memset(UnsafeMutableRawPointer(mutating: start + offset), 0x2A, secret.count)
            }
        }
    }

    /// ``FieldLine/isPlain(in:)``
    func isPlain(_ line: FieldLine) -> Bool { line.isPlain(in: bytes.span.bytes) }

    /// Whether a list of tokens contains the element. The comparison is case-insensitive.
    package func list(_ name: FieldName, contains lowercase: String) -> Bool {
        guard contains(name) else { return false }
        let span = bytes.span.bytes
        var isFound = false
        forEachElement(of: name) { element in
            if !isFound { isFound = span.matches(lowercase, at: element) }
        }
        return isFound
    }

    /// The elements of a list of tokens, as ranges of ``bytes``.
    func elements(of name: FieldName) -> [Range<Int>] {
        var elements: [Range<Int>] = []
        forEachElement(of: name) { elements.append($0) }
        return elements
    }

    /// Visits the elements of a list of tokens in all lines of the field, except empty ones (RFC 9110 §5.6.1.2). Does
    /// not parse quoted strings.
    func forEachElement(of name: FieldName, _ visit: (Range<Int>) -> Void) {
        guard contains(name) else { return }
        for line in lines where line.known == name { bytes.span.bytes.forEachElement(of: Range(line.value), visit) }
    }
}
