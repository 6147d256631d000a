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

    /// The value of a member; nil if there is none, or if this is not an object.
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
        var text = ""
        write(to: &text)
        return text
    }

    private func write(to text: inout String) {
        switch content {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .integer(let value): text += String(value)
        case .number(let number): text += number
        case .string(let string): Self.write(string, to: &text)
        case .secret(let secret): Self.write(secret.utf8Text ?? "", to: &text)
        case .array(let values):
            text += "["
            for (index, value) in values.enumerated() {
                if index > 0 { text += "," }
                value.write(to: &text)
            }
            text += "]"
        case .object(let members):
            text += "{"
            for (index, member) in members.enumerated() {
                if index > 0 { text += "," }
                Self.write(member.name, to: &text)
                text += ":"
                member.value.write(to: &text)
            }
            text += "}"
        }
    }

    private static func write(_ string: String, to text: inout String) {
        text += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\u{00}"..."\u{1F}":
                text += "\\u00" + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16)
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}
