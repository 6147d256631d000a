// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The proxies whose settings `countersign migrate` reads.
enum ForeignProduct: String, CaseIterable, Encodable {
    case px
    case cntlm
    case alpaca

    /// By the contents: px has sections, alpaca assignments or its own command, and cntlm keys with values behind
    /// blanks. Nil if no line decides.
    static func detect(_ lines: [ArraySlice<UInt8>]) -> ForeignProduct? {
        for line in lines {
            let text = String(decoding: line, as: UTF8.self).trimming(" \t\r")
            if text.isEmpty || text.hasPrefix("#") || text.hasPrefix(";") { continue }
            if text.hasPrefix("[") {
                if ["[proxy", "[client", "[settings"].contains(where: text.lowercased().hasPrefix) { return .px }
                // A section of another file, which cntlm ignores, or a command of a shell.
                continue
            }
            let name = text.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
            if CntlmSettings.knows(String(name)), text.dropFirst(name.count).first?.isWhitespace == true {
                return .cntlm
            }
            if text.contains("_CREDENTIALS=") || ShellReader.mentionsAlpaca(text) { return .alpaca }
        }
        return nil
    }
}

/// A setting in the file of another product. The value may be a password, so it is text only on request.
struct ForeignLine: Equatable {
    /// From 1.
    let number: Int
    /// In lower case; nil for products without sections.
    let section: String?
    /// As written.
    let key: String
    let value: ArraySlice<UInt8>

    /// With U+FFFD in the place of bytes that are not UTF-8.
    var text: String { String(decoding: value, as: UTF8.self) }

    static func == (left: Self, right: Self) -> Bool {
        left.number == right.number && left.section == right.section && left.key == right.key
            && left.value.elementsEqual(right.value)
    }

    init(_ number: Int, _ section: String? = nil, _ key: String, _ value: some Sequence<UInt8>) {
        self.number = number
        self.section = section
        self.key = key
        self.value = Array(value)[...]
    }
}

/// A fault in the file of another product. Contains no value that may be a password.
struct ForeignProblem: Equatable {
    /// From 1; 0 for the file as a whole.
    let line: Int
    let reason: String
    let hint: String?

    init(_ line: Int, _ reason: String, hint: String? = nil) {
        self.line = line
        self.reason = reason
        self.hint = hint
    }
}

extension ArraySlice<UInt8> {
    /// Without the blanks at both ends.
    var trimmed: ArraySlice<UInt8> {
        var rest = self
        while let first = rest.first, Self.isBlank(first) { rest.removeFirst() }
        while let last = rest.last, Self.isBlank(last) { rest.removeLast() }
        return rest
    }

    static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
}
