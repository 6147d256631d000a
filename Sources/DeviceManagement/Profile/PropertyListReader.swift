// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Reads the subset of XML 1.0 that property lists need: elements without attributes (`plist` has `version`), character
/// references, the five entities, CDATA, comments, and a DOCTYPE without declarations.
///
/// Iterative: the depth of the document is not that of the stack.
struct PropertyListReader {
    /// An open element, with its content so far.
    private enum Open {
        case array([PropertyList])
        case dictionary([PropertyList.Entry], names: Set<String>, key: String?)
    }

    private let bytes: [UInt8]
    private var position = 0
    private var elementCount = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func document() throws(DeviceManagementError) -> PropertyList {
        if starts(with: "<?xml") { try skip(after: "?>", "the XML declaration does not end") }
        try skipSpace()
        if starts(with: "<!DOCTYPE") { try skipDocumentType() }
        try skipSpace()
        guard let start = try tag(), start.name == "plist", !start.isEmpty, !start.isEnd else {
            throw fault("the document does not begin with <plist>")
        }
        let value = try value()
        try skipSpace()
        guard let end = try tag(), end.name == "plist", end.isEnd else { throw fault("</plist> is missing") }
        try skipSpace()
        guard position == bytes.count else { throw fault("there is more after </plist>") }
        return value
    }

    private mutating func value() throws(DeviceManagementError) -> PropertyList {
        var stack: [Open] = []
        while true {
            try skipSpace()
            guard let tag = try tag() else { throw fault("an element is missing") }
            var finished: PropertyList?
            if tag.isEnd {
                finished = try close(tag.name, &stack)
            } else if tag.name == "key" {
                try openKey(tag, &stack)
            } else {
                finished = try open(tag, &stack)
            }
            guard let value = finished else { continue }
            guard let last = stack.indices.last else { return value }
            try append(value, to: &stack[last])
        }
    }

    /// The value of an element that is complete; nil for one that has others in it.
    private mutating func open(_ tag: Tag, _ stack: inout [Open]) throws(DeviceManagementError) -> PropertyList? {
        elementCount += 1
        guard elementCount <= PropertyList.maximumElements else {
            throw fault("there are more than \(PropertyList.maximumElements) elements")
        }
        if case .dictionary(_, _, nil)? = stack.last { throw fault("a value in <dict> has no <key> before it") }
        switch tag.name {
        case "array", "dict":
            let isArray = tag.name == "array"
            guard !tag.isEmpty else { return isArray ? .array([]) : .dictionary([]) }
            guard stack.count < PropertyList.maximumDepth else {
                throw fault("elements are nested more than \(PropertyList.maximumDepth) deep")
            }
            stack.append(isArray ? .array([]) : .dictionary([], names: [], key: nil))
            return nil
        case "true", "false":
            if !tag.isEmpty, !(try text(until: tag.name)).isEmpty { throw fault("<\(tag.name)> must be empty") }
            return .bool(tag.name == "true")
        case "string": return .string(tag.isEmpty ? "" : try text(until: tag.name))
        case "integer":
            guard let number = Int64(try simple(tag)) else { throw fault("an <integer> is not a number of 64 bits") }
            return .integer(number)
        case "real":
            guard let number = Double(try simple(tag)), number.isFinite else { throw fault("a <real> is not a number") }
            return .real(number)
        case "date":
            let text = try simple(tag)
            guard Self.isDate(text) else { throw fault("a <date> is not written as 2026-11-22T09:00:00Z") }
            return .date(text)
        case "data":
            let text = tag.isEmpty ? "" : try text(until: tag.name)
            guard let bytes = Base64.decode(String(decoding: text.utf8.filter { !Self.isSpace($0) }, as: UTF8.self))
            else {
                throw fault("a <data> element is not Base64")
            }
            return .data(bytes)
        default:
            throw fault("\(PrintableText.quote(tag.name)) is not an element of a property list")
        }
    }

    /// Text without white space around it.
    private mutating func simple(_ tag: Tag) throws(DeviceManagementError) -> String {
        var text = Array((tag.isEmpty ? "" : try text(until: tag.name)).utf8)[...]
        text = text.drop(while: Self.isSpace)
        while let last = text.last, Self.isSpace(last) { text.removeLast() }
        return String(decoding: text, as: UTF8.self)
    }

    private mutating func openKey(_ tag: Tag, _ stack: inout [Open]) throws(DeviceManagementError) {
        guard case .dictionary(let entries, var names, let pending)? = stack.last else {
            throw fault("a <key> is outside of <dict>")
        }
        guard pending == nil else { throw fault("a <key> has no value") }
        let name = tag.isEmpty ? "" : try text(until: "key")
        guard names.insert(name).inserted else { throw fault("the key \(PrintableText.quote(name)) occurs twice") }
        stack[stack.count - 1] = .dictionary(entries, names: names, key: name)
    }

    private func close(_ name: String, _ stack: inout [Open]) throws(DeviceManagementError) -> PropertyList {
        switch stack.popLast() {
        case .array(let elements)? where name == "array":
            return .array(elements)
        case .dictionary(let entries, _, let key)? where name == "dict":
            guard key == nil else { throw fault("a <key> has no value") }
            return .dictionary(entries)
        default:
            throw fault("</\(PrintableText.plain(name))> does not belong here")
        }
    }

    private func append(_ value: PropertyList, to open: inout Open) throws(DeviceManagementError) {
        switch open {
        case .array(var elements):
            // Emptied first, so that the elements are not copied.
            open = .array([])
            elements.append(value)
            open = .array(elements)
        case .dictionary(var entries, let names, let key):
            guard let key else { throw fault("a value in <dict> has no <key> before it") }
            open = .array([])
            entries.append(PropertyList.Entry(key, value))
            open = .dictionary(entries, names: names, key: nil)
        }
    }

    // MARK: XML

    private struct Tag {
        var name: String
        var isEnd: Bool
        /// `<name/>`
        var isEmpty: Bool
    }

    /// The next tag; nil at the end of the document.
    private mutating func tag() throws(DeviceManagementError) -> Tag? {
        guard position < bytes.count else { return nil }
        guard bytes[position] == UInt8(ascii: "<") else { throw fault("there is text outside of an element") }
        guard let end = bytes[position...].prefix(256).firstIndex(of: UInt8(ascii: ">")) else {
            throw fault("a tag does not end")
        }
        var inside = bytes[(position + 1)..<end]
        let isEnd = inside.first == UInt8(ascii: "/")
        if isEnd { inside = inside.dropFirst() }
        let isEmpty = inside.last == UInt8(ascii: "/")
        if isEmpty { inside = inside.dropLast() }
        let name = inside.prefix { !Self.isSpace($0) }
        let rest = inside[name.endIndex...]
        let text = String(decoding: name, as: UTF8.self)
        guard !name.isEmpty, !(isEnd && isEmpty) else { throw fault("a tag has no name") }
        let isVersion = text == "plist" && !isEnd && rest.contains(UInt8(ascii: "="))
        guard isVersion || rest.allSatisfy(Self.isSpace) else {
            throw fault("<\(PrintableText.plain(text))> has an attribute")
        }
        position = end + 1
        return Tag(name: text, isEnd: isEnd, isEmpty: isEmpty)
    }

    /// Everything up to the end tag, with references replaced. Leaves the position after the tag.
    private mutating func text(until name: String) throws(DeviceManagementError) -> String {
        var text: [UInt8] = []
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "<"):
                if starts(with: "<![CDATA[") {
                    position += 9
                    let start = position
                    try skip(after: "]]>", "a CDATA section does not end")
                    text += bytes[start..<(position - 3)]
                } else if starts(with: "<!--") {
                    try skipComment()
                } else {
                    guard let tag = try tag(), tag.isEnd, tag.name == name else {
                        throw fault("<\(name)> has an element in it")
                    }
                    guard let string = String(validating: text, as: UTF8.self) else {
                        throw fault("<\(name)> is not UTF-8")
                    }
                    return string
                }
            case UInt8(ascii: "&"): try reference(into: &text)
            case let byte:
                guard byte >= 0x20 || Self.isSpace(byte) else { throw fault("there is a control character") }
                text.append(byte)
                position += 1
            }
        }
        throw fault("<\(name)> does not end")
    }

    private mutating func reference(into text: inout [UInt8]) throws(DeviceManagementError) {
        guard let end = bytes[position...].prefix(12).firstIndex(of: UInt8(ascii: ";")) else {
            throw fault("a reference does not end with a semicolon")
        }
        let name = String(decoding: bytes[(position + 1)..<end], as: UTF8.self)
        let entities = ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'"]
        if let character = entities[name] {
            text += character.utf8
        } else {
            let digits = name.dropFirst(name.hasPrefix("#x") ? 2 : 1)
            guard name.hasPrefix("#"), digits.first?.isHexDigit == true,
                let value = UInt32(digits, radix: name.hasPrefix("#x") ? 16 : 10),
                let scalar = Unicode.Scalar(value), value >= 0x20 || [9, 10, 13].contains(value)
            else { throw fault("&\(PrintableText.plain(name)); is not known") }
            text += String(Character(scalar)).utf8
        }
        position = end + 1
    }

    /// A DOCTYPE has no declarations: entities of a document's own could grow without limit.
    private mutating func skipDocumentType() throws(DeviceManagementError) {
        let start = position
        try skip(after: ">", "the DOCTYPE does not end")
        guard !bytes[start..<position].contains(UInt8(ascii: "[")) else {
            position = start
            throw fault("the DOCTYPE has declarations")
        }
    }

    /// White space and comments.
    private mutating func skipSpace() throws(DeviceManagementError) {
        while position < bytes.count {
            if Self.isSpace(bytes[position]) {
                position += 1
            } else if starts(with: "<!--") {
                try skipComment()
            } else {
                return
            }
        }
    }

    private mutating func skipComment() throws(DeviceManagementError) {
        position += 4
        try skip(after: "-->", "a comment does not end")
    }

    /// Moves past the next `text`.
    private mutating func skip(after text: StaticString, _ otherwise: String) throws(DeviceManagementError) {
        var next = position
        while next < bytes.count {
            if bytes[next] == text.utf8Start[0], starts(with: text, at: next) {
                position = next + text.utf8CodeUnitCount
                return
            }
            next += 1
        }
        throw fault(otherwise)
    }

    private func starts(with text: StaticString) -> Bool { starts(with: text, at: position) }

    private func starts(with text: StaticString, at position: Int) -> Bool {
        text.withUTF8Buffer { text in
            position + text.count <= bytes.count && bytes[position..<(position + text.count)].elementsEqual(text)
        }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }

    /// `2026-11-22T09:00:00Z`
    private static func isDate(_ text: String) -> Bool {
        let pattern = "0000-00-00T00:00:00Z"
        return text.utf8.count == pattern.utf8.count
            && zip(text.utf8, pattern.utf8).allSatisfy { byte, place in
                place == UInt8(ascii: "0") ? byte &- UInt8(ascii: "0") < 10 : byte == place
            }
    }

    private func fault(_ reason: String) -> DeviceManagementError {
        let before = bytes[..<min(position, bytes.count)]
        let line = before.count { $0 == 0x0A } + 1
        let column = before.count - (before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0) + 1
        return DeviceManagementError(
            .malformed, "the profile cannot be read: line \(line), column \(column): \(reason)")
    }
}
