// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

extension ClientRule {
    /// An error in the value of `for=`.
    package struct Fault: Error, Equatable {
        /// Counted from 0, in Unicode scalars.
        package let offset: Int
        package let message: String
        package let hint: String
    }

    private static let example = "for=user:build,exe:/usr/bin/curl"

    /// Parses `user:build,exe:/usr/bin/curl,!unit:backup.service`.
    package init(parsing text: String) throws(Fault) {
        var permitted: [Word] = []
        var excluded: [Word] = []
        var offset = 0
        for item in text.unicodeScalars.split(separator: ",", omittingEmptySubsequences: false) {
            let isExcluded = item.first == "!"
            let word = try Word(parsing: String(Substring(isExcluded ? item.dropFirst() : item)), at: offset)
            guard !permitted.contains(word), !excluded.contains(word) else {
                throw Fault(
                    offset: offset, message: "the client \(PrintableText.quoteASCII(word.description)) is given twice",
                    hint: "keep one of them")
            }
            if isExcluded { excluded.append(word) } else { permitted.append(word) }
            offset += item.count + 1
        }
        self.init(permitted: permitted, excluded: excluded)
    }

    fileprivate static func missing(at offset: Int) -> Fault {
        Fault(offset: offset, message: "a client is missing", hint: "write \(example)")
    }

    /// Whether `path` begins with a slash and has no component that is empty, `.` or `..`.
    static func isAbsolutePath(_ path: String) -> Bool {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        return parts.count > 1 && parts[0].isEmpty && parts.dropFirst().allSatisfy { !["", ".", ".."].contains($0) }
    }
}

extension ClientRule.Word {
    /// The words before the colon.
    enum Kind: String, CaseIterable {
        case user, group, unit
        case userUnit = "user-unit"
        case cgroup, container, exe, token, socket
    }

    private typealias Fault = ClientRule.Fault

    var kind: Kind {
        switch self {
        case .user: .user
        case .group: .group
        case .unit: .unit
        case .userUnit: .userUnit
        case .controlGroup: .cgroup
        case .container: .container
        case .executable: .exe
        case .token: .token
        case .socket: .socket
        }
    }

    fileprivate init(parsing word: String, at offset: Int) throws(ClientRule.Fault) {
        guard !word.isEmpty else { throw ClientRule.missing(at: offset) }
        guard let colon = word.unicodeScalars.firstIndex(of: ":") else {
            throw Fault(
                offset: offset, message: "\(PrintableText.quoteASCII(word)) does not say what it names",
                hint: Self.hint(forBare: word))
        }
        guard let kind = Kind(rawValue: String(word[..<colon])) else {
            throw Fault(
                offset: offset, message: "unknown kind of client \(PrintableText.quoteASCII(word[..<colon]))",
                hint: SpellingHint.text(for: String(word[..<colon]), among: Kind.allCases.map(\.rawValue)))
        }
        let value = String(word[word.index(after: colon)...])
        guard !value.isEmpty else {
            throw Fault(offset: offset, message: "\(kind.rawValue): names nothing", hint: "write \(kind.example)")
        }
        try self.init(kind, value, at: offset)
    }

    private init(_ kind: Kind, _ value: String, at offset: Int) throws(ClientRule.Fault) {
        func fault(_ what: String, _ hint: String) -> Fault {
            Fault(offset: offset, message: "\(PrintableText.quoteASCII(value)) \(what)", hint: hint)
        }
        switch kind {
        case .user, .group:
            guard Self.isAccountName(value) else {
                throw fault("cannot be the name of a \(kind.rawValue)", "write \(kind.example), or the number")
            }
            self = kind == .user ? .user(value) : .group(value)
        case .unit, .userUnit:
            guard Self.isUnitName(value) else {
                throw fault("is not a unit that has processes", "write \(kind.example)")
            }
            self = kind == .unit ? .unit(value) : .userUnit(value)
        case .cgroup, .exe:
            guard let path = Self.unescaped(value) else {
                throw fault("has a % that is not followed by two hexadecimal digits", "write % as %25")
            }
            guard ClientRule.isAbsolutePath(path) else {
                throw fault(
                    "is not an absolute path without empty components, . and ..", "write \(kind.example)")
            }
            self = kind == .cgroup ? .controlGroup(path) : .executable(path)
        case .container, .token, .socket:
            guard Self.isName(value) else {
                throw fault(
                    "cannot be the name of a \(kind.rawValue)",
                    "names consist of 1 to 255 characters from A-Z a-z 0-9 . _ -, the first a letter or digit")
            }
            self = kind == .container ? .container(value) : kind == .token ? .token(value) : .socket(value)
        }
    }

    private static func hint(forBare word: String) -> String {
        if Kind(rawValue: word) != nil { return "write \(Kind(rawValue: word)?.example ?? "")" }
        if word.hasPrefix("/") { return "write exe:\(word)" }
        if word.hasPrefix("!") { return "write one ! before the kind" }
        if ControlGroup.unitEndings.contains(where: { word.hasSuffix($0) }) { return "write unit:\(word)" }
        return "write one of \(Kind.allCases.map { "\($0.rawValue):" }.joined(separator: " ")) before it"
    }

    /// A name may have any characters but those that separate fields in the system's files.
    private static func isAccountName(_ text: String) -> Bool {
        let isNumber = text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        return text.utf8.count <= 255 && (!isNumber || UInt32(text) != nil)
            && text.unicodeScalars.allSatisfy { $0.value > 0x20 && $0.value != 0x7F && $0 != ":" && $0 != "/" }
            && !text.hasPrefix("-") && !text.hasPrefix("!")
    }

    /// The name of a unit that is running: not that of a template, which ends in `@` before its suffix
    /// (systemd.unit(5)).
    private static func isUnitName(_ text: String) -> Bool {
        guard text.utf8.count <= 255, let ending = ControlGroup.unitEndings.first(where: { text.hasSuffix($0) }) else {
            return false
        }
        let stem = text.utf8.dropLast(ending.utf8.count)
        return !stem.isEmpty && stem.last != UInt8(ascii: "@")
            && stem.allSatisfy { isLetterOrDigit($0) || ":-_.\\@".utf8.contains($0) }
    }

    /// Whether `text` can be the name of a client token or a socket.
    package static func isName(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count) && text.utf8.first.map(isLetterOrDigit) == true
            && text.utf8.allSatisfy { isLetterOrDigit($0) || "._-".utf8.contains($0) }
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }

    /// `text` with the bytes of its escapes, `%2C` for a comma; nil for a faulty escape, a NUL and bytes that are not
    /// UTF-8.
    private static func unescaped(_ text: String) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard digits.count == 2, digits.allSatisfy({ ControlGroup.isHexDigit($0 | 0x20) }),
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16), value != 0
            else { return nil }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    /// `path` as in a line, in printable ASCII.
    private static func escaped(_ path: String) -> String {
        var text = ""
        for byte in path.utf8 {
            let isPlain = (0x21..<0x7F).contains(byte) && !"%,#".utf8.contains(byte)
            text +=
                isPlain
                ? String(UnicodeScalar(byte)) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16).uppercased()
        }
        return text
    }
}

extension ClientRule.Word.Kind {
    fileprivate var example: String {
        switch self {
        case .user: "user:build"
        case .group: "group:staff"
        case .unit: "unit:backup.service"
        case .userUnit: "user-unit:backup.service"
        case .cgroup: "cgroup:/system.slice/backup.service"
        case .container: "container:NAME"
        case .exe: "exe:/usr/bin/curl"
        case .token: "token:NAME"
        case .socket: "socket:NAME"
        }
    }
}

extension ClientRule.Word: CustomStringConvertible {
    /// As in a line.
    package var description: String {
        let value =
            switch self {
            case .user(let name), .group(let name), .unit(let name), .userUnit(let name), .container(let name),
                .token(let name), .socket(let name):
                name
            case .controlGroup(let path), .executable(let path): Self.escaped(path)
            }
        return "\(kind.rawValue):\(value)"
    }
}
