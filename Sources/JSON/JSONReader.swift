// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Reads the members of one object, by name and type, and knows which of them were read.
///
/// A document that a person has written is read with ``Strictness/strict``: after the last member, ``finish()`` throws
/// for any that is not known. A document of a server is read with ``Strictness/lenient``: unknown members are ignored,
/// and null is the same as no member.
package struct JSONReader {
    package enum Strictness: Sendable {
        case strict
        case lenient
    }

    private let members: [JSONMember]
    private let position: JSONPosition
    private let strictness: Strictness
    private var known: [String] = []

    /// `name` names the object in messages: `the profile`. Throws `wrongValue` if `value` is not an object.
    package init(_ value: JSONValue, _ name: String, _ strictness: Strictness) throws(JSONError) {
        guard case .object(let members) = value.content else {
            throw JSONError(.wrongValue, at: value.position, "\(name) must be an object, not \(value.kind)")
        }
        self.members = members
        self.position = value.position
        self.strictness = strictness
    }

    /// Throws `unknownMember` for the first member that was not asked for. A lenient reader accepts all.
    package func finish() throws(JSONError) {
        guard strictness == .strict, let member = members.first(where: { !known.containsExactly($0.name) }) else {
            return
        }
        throw unknown(member, closest: SpellingHint.closest(to: member.name, among: known))
    }

    /// The position of a member's value, or of the object if there is no such member.
    package func position(of name: String) -> JSONPosition {
        members.first { $0.name.isExactly(name) }?.value.position ?? position
    }

    // MARK: Optional members

    /// Nil if there is no such member.
    package mutating func valueIfPresent(_ name: String) -> JSONValue? {
        if !known.containsExactly(name) { known.append(name) }
        guard let value = members.first(where: { $0.name.isExactly(name) })?.value else { return nil }
        return strictness == .lenient && value.content == .null ? nil : value
    }

    package mutating func stringIfPresent(_ name: String) throws(JSONError) -> String? {
        guard let value = valueIfPresent(name) else { return nil }
        guard case .string(let string) = value.content else { throw wrong(name, value, "a string") }
        return string
    }

    /// A string of a member that the parser treats as a secret.
    package mutating func secretIfPresent(_ name: String) throws(JSONError) -> Secret? {
        guard let value = valueIfPresent(name) else { return nil }
        switch value.content {
        case .secret(let secret): return secret
        case .string(let string): return Secret(utf8: string)
        case .null, .bool, .integer, .number, .array, .object: throw wrong(name, value, "a string")
        }
    }

    package mutating func integerIfPresent(_ name: String) throws(JSONError) -> Int64? {
        guard let value = valueIfPresent(name) else { return nil }
        guard case .integer(let integer) = value.content else { throw wrong(name, value, "a whole number") }
        return integer
    }

    package mutating func boolIfPresent(_ name: String) throws(JSONError) -> Bool? {
        guard let value = valueIfPresent(name) else { return nil }
        guard case .bool(let bool) = value.content else { throw wrong(name, value, "true or false") }
        return bool
    }

    package mutating func arrayIfPresent(_ name: String) throws(JSONError) -> [JSONValue]? {
        guard let value = valueIfPresent(name) else { return nil }
        guard case .array(let values) = value.content else { throw wrong(name, value, "an array") }
        return values
    }

    package mutating func stringsIfPresent(_ name: String) throws(JSONError) -> [String]? {
        guard let values = try arrayIfPresent(name) else { return nil }
        var strings: [String] = []
        for value in values {
            guard case .string(let string) = value.content else {
                throw JSONError(
                    .wrongValue, at: value.position, "\"\(name)\" must be an array of strings, not of \(value.kind)")
            }
            strings.append(string)
        }
        return strings
    }

    /// A reader of the same strictness for an object in this one.
    package mutating func objectIfPresent(_ name: String) throws(JSONError) -> JSONReader? {
        guard let value = valueIfPresent(name) else { return nil }
        return try JSONReader(value, "\"\(name)\"", strictness)
    }

    // MARK: Required members

    package mutating func string(_ name: String) throws(JSONError) -> String {
        guard let string = try stringIfPresent(name) else { throw missing(name) }
        return string
    }

    package mutating func secret(_ name: String) throws(JSONError) -> Secret {
        guard let secret = try secretIfPresent(name) else { throw missing(name) }
        return secret
    }

    package mutating func integer(_ name: String) throws(JSONError) -> Int64 {
        guard let integer = try integerIfPresent(name) else { throw missing(name) }
        return integer
    }

    package mutating func strings(_ name: String) throws(JSONError) -> [String] {
        guard let strings = try stringsIfPresent(name) else { throw missing(name) }
        return strings
    }

    package mutating func array(_ name: String) throws(JSONError) -> [JSONValue] {
        guard let array = try arrayIfPresent(name) else { throw missing(name) }
        return array
    }

    package mutating func object(_ name: String) throws(JSONError) -> JSONReader {
        guard let object = try objectIfPresent(name) else { throw missing(name) }
        return object
    }

    /// For a member whose type is right and whose value is not: `"port" REASON`.
    package func invalid(_ name: String, _ reason: String) -> JSONError {
        JSONError(.wrongValue, at: position(of: name), "\"\(name)\" \(reason)")
    }

    /// A strict reader reports a member whose name is almost `name` instead: it is misspelt.
    private func missing(_ name: String) -> JSONError {
        if strictness == .strict {
            let misspelt = members.first { member in
                !known.containsExactly(member.name) && SpellingHint.closest(to: member.name, among: [name]) != nil
            }
            if let misspelt { return unknown(misspelt, closest: name) }
        }
        return JSONError(.missingMember, at: position, "the key \"\(name)\" is missing")
    }

    private func unknown(_ member: JSONMember, closest: String?) -> JSONError {
        let hint = closest.map { "; did you mean \"\($0)\"?" } ?? ""
        return JSONError(
            .unknownMember, at: member.position, "\(PrintableText.quote(member.name)) is not a known key\(hint)")
    }

    private func wrong(_ name: String, _ value: JSONValue, _ wanted: String) -> JSONError {
        JSONError(.wrongValue, at: value.position, "\"\(name)\" must be \(wanted), not \(value.kind)")
    }
}
