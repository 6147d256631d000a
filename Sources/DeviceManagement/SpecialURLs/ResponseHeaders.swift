// SPDX-License-Identifier: Apache-2.0

/// The header fields of a response.
package struct ResponseHeaders: Equatable, Sendable {
    /// Limits on the state that a page can make the program keep.
    package static let maximumFields = 128
    package static let maximumValueBytes = 16 << 10

    /// The names are in lower case. Fields with the same name are separate.
    package private(set) var fields: [(name: String, value: String)] = []

    package init() {}

    /// Fields beyond ``maximumFields``, and those with a value beyond ``maximumValueBytes``, are ignored.
    package init(_ fields: some Sequence<(name: String, value: String)>) {
        for field in fields where self.fields.count < Self.maximumFields {
            guard field.value.utf8.count <= Self.maximumValueBytes else { continue }
            self.fields.append((field.name.lowercased(), Self.trimmed(field.value)))
        }
    }

    /// The value of the only field with this name; nil if it is missing, is empty, or occurs more than once.
    package subscript(name: String) -> String? {
        let name = name.lowercased()
        let values = fields.lazy.filter { $0.name == name }.map(\.value).prefix(2)
        guard values.count == 1, let value = values.first, !value.isEmpty else { return nil }
        return value
    }

    package static func == (left: Self, right: Self) -> Bool { left.fields.elementsEqual(right.fields, by: ==) }

    private static func trimmed(_ value: String) -> String {
        let isSpace = { (character: Character) in character == " " || character == "\t" }
        var rest = value.drop(while: isSpace)
        while let last = rest.last, isSpace(last) { rest.removeLast() }
        return String(rest)
    }
}
