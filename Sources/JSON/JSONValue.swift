// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A value of a JSON text (RFC 8259 §3) and its place there. Two values are equal if their contents are; the places do
/// not count.
package struct JSONValue: Sendable, Equatable {
    package enum Content: Sendable, Equatable {
        case null
        case bool(Bool)
        /// A number without fraction and exponent that fits.
        case integer(Int64)
        /// Any other number, as written.
        case number(String)
        case string(String)
        /// The string of a member that the caller of ``JSONParser`` calls a secret.
        case secret(Secret)
        case array([JSONValue])
        /// In the order of the text. The names are unique.
        case object([JSONMember])
    }

    package let content: Content
    package let position: JSONPosition

    package init(_ content: Content, at position: JSONPosition = JSONPosition(line: 1, column: 1)) {
        self.content = content
        self.position = position
    }

    package static func == (left: Self, right: Self) -> Bool { left.content == right.content }

    /// The value of a member; nil without one, or if this is not an object.
    package subscript(name: String) -> JSONValue? {
        guard case .object(let members) = content else { return nil }
        return members.first { $0.name.isExactly(name) }?.value
    }

    /// `a string`, for messages.
    package var kind: String {
        switch content {
        case .null: "null"
        case .bool: "a truth value"
        case .integer, .number: "a number"
        case .string, .secret: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}

/// A member of an object (RFC 8259 §4).
package struct JSONMember: Sendable, Equatable {
    package let name: String
    package let value: JSONValue
    /// Where the name begins.
    package let position: JSONPosition

    package init(_ name: String, _ value: JSONValue, at position: JSONPosition = JSONPosition(line: 1, column: 1)) {
        self.name = name
        self.value = value
        self.position = position
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.name.isExactly(right.name) && left.value == right.value
    }
}

extension JSONValue {
    /// The text without white space. Only characters that RFC 8259 §7 requires are escaped. A secret is written as the
    /// string that it is.
    package var serialized: String {
        var bytes: [UInt8] = []
        write { bytes += $0 }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The same with a zero byte at its end, as a C string. For a value that contains a secret, which gets into no
    /// other memory.
    package var serializedSecret: Secret {
        var count = 0
        write { count += $0.count }
        return Secret(count: count + 1) { room in
            var offset = 0
            write { part in
                UnsafeMutableRawBufferPointer(rebasing: room[offset...]).copyMemory(from: part)
                offset += part.count
            }
        }
    }

    /// Hands the parts of the text to `emit`, in order.
    private func write(_ emit: (UnsafeRawBufferPointer) -> Void) {
        switch content {
        case .null: Self.write("null", emit)
        case .bool(let value): Self.write(value ? "true" : "false", emit)
        case .integer(let value): Self.write(String(value), emit)
        case .number(let number): Self.write(number, emit)
        case .string(var string): string.withUTF8 { Self.quote(UnsafeRawBufferPointer($0), emit) }
        case .secret(let secret): secret.withBytes { Self.quote($0, emit) }
        case .array(let values):
            Self.write("[", emit)
            for (index, value) in values.enumerated() {
                if index > 0 { Self.write(",", emit) }
                value.write(emit)
            }
            Self.write("]", emit)
        case .object(let members):
            Self.write("{", emit)
            for (index, member) in members.enumerated() {
                if index > 0 { Self.write(",", emit) }
                var name = member.name
                name.withUTF8 { Self.quote(UnsafeRawBufferPointer($0), emit) }
                Self.write(":", emit)
                member.value.write(emit)
            }
            Self.write("}", emit)
        }
    }

    private static func write(_ text: String, _ emit: (UnsafeRawBufferPointer) -> Void) {
        var text = text
        text.withUTF8 { emit(UnsafeRawBufferPointer($0)) }
    }

    /// `bytes` are UTF-8.
    private static func quote(_ bytes: UnsafeRawBufferPointer, _ emit: (UnsafeRawBufferPointer) -> Void) {
        write("\"", emit)
        var start = 0
        for (index, byte) in bytes.enumerated() {
            guard byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte < 0x20 else { continue }
            emit(UnsafeRawBufferPointer(rebasing: bytes[start..<index]))
            start = index + 1
            if byte < 0x20 {
                write("\\u00" + (byte < 16 ? "0" : "") + String(byte, radix: 16), emit)
            } else {
                write("\\" + String(Unicode.Scalar(byte)), emit)
            }
        }
        emit(UnsafeRawBufferPointer(rebasing: bytes[start...]))
        write("\"", emit)
    }
}
