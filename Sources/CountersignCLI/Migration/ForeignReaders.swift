// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The lines of a file of another product. They may contain passwords, so they stay bytes.
enum ForeignFile {
    /// Without line endings and byte order mark. Throws for a file that is not made of lines of text.
    static func lines(_ bytes: [UInt8]) throws(ForeignFault) -> [ArraySlice<UInt8>] {
        if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) {
            throw ForeignFault(
                [ForeignProblem(1, "the file is in UTF-16", hint: "convert it: iconv -f UTF-16 -t UTF-8 FILE")])
        }
        if let zero = bytes.firstIndex(of: 0) {
            let line = 1 + bytes[..<zero].count { $0 == UInt8(ascii: "\n") }
            throw ForeignFault([
                ForeignProblem(
                    line, "a zero byte: this is no text file", hint: "name px.ini, cntlm.conf or alpaca's variables")
            ])
        }
        let text = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
        return text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
            line.last == UInt8(ascii: "\r") ? line.dropLast() : line
        }
    }
}

/// The faults of a file, in the order of its lines.
struct ForeignFault: Error, Equatable {
    let problems: [ForeignProblem]

    init(_ problems: [ForeignProblem]) {
        self.problems = problems
    }
}

/// px.ini, in the grammar of Python's ConfigParser: sections, `key = value` or `key: value`, comments in lines of their
/// own, and lines that continue a value because they are indented more than its key.
enum INIReader {
    static func read(_ lines: [ArraySlice<UInt8>]) -> (entries: [ForeignLine], problems: [ForeignProblem]) {
        var entries: [ForeignLine] = []
        var problems: [ForeignProblem] = []
        var section: String?
        /// The column of the key whose value may continue; nil behind the name of a section.
        var keyColumn: Int?
        for (index, line) in lines.enumerated() {
            let number = index + 1
            let text = line.trimmed
            guard let first = text.first, first != UInt8(ascii: "#"), first != UInt8(ascii: ";") else { continue }
            if first == UInt8(ascii: "[") {
                guard let end = text.firstIndex(of: UInt8(ascii: "]")) else {
                    problems.append(ForeignProblem(number, "the section's name has no ]", hint: "write [proxy]"))
                    continue
                }
                section = String(decoding: text[text.startIndex..<end].dropFirst(), as: UTF8.self).lowercased()
                keyColumn = nil
                continue
            }
            let column = text.startIndex - line.startIndex
            if let keyColumn, column > keyColumn, let last = entries.popLast() {
                let value = last.value + (last.value.isEmpty ? [] : [0x20]) + text
                entries.append(ForeignLine(last.number, last.section, last.key, value))
                continue
            }
            guard let sign = text.firstIndex(where: { $0 == UInt8(ascii: "=") || $0 == UInt8(ascii: ":") }),
                sign > text.startIndex
            else {
                problems.append(
                    ForeignProblem(number, "neither a section nor a key with a value", hint: "write KEY = VALUE"))
                continue
            }
            let key = String(decoding: text[..<sign].trimmed, as: UTF8.self)
            keyColumn = nil
            guard let section else {
                problems.append(
                    ForeignProblem(
                        number, "\(PrintableText.quote(key)) stands before the first section",
                        hint: "put [proxy] above it"))
                continue
            }
            if let earlier = entries.first(where: {
                $0.section == section && $0.key.lowercased() == key.lowercased()
            }) {
                problems.append(
                    ForeignProblem(
                        number, "\(PrintableText.quote(key)) is already in line \(earlier.number)",
                        hint: "remove one of the two lines"))
                continue
            }
            keyColumn = column
            entries.append(ForeignLine(number, section, key, text[text.index(after: sign)...].trimmed))
        }
        return (entries, problems)
    }
}

/// cntlm.conf: a key, blanks, and a value up to `#` or the end of the line, or in double quotes.
enum CntlmReader {
    static func read(_ lines: [ArraySlice<UInt8>]) -> (entries: [ForeignLine], problems: [ForeignProblem]) {
        var entries: [ForeignLine] = []
        var problems: [ForeignProblem] = []
        for (index, line) in lines.enumerated() {
            let text = line.trimmed
            // cntlm reads the names of sections and ignores them.
            guard let first = text.first, !"#;[".utf8.contains(first) else { continue }
            let key = String(decoding: text.prefix(while: isKey), as: UTF8.self)
            let rest = text.dropFirst(key.utf8.count)
            do throws(Fault) {
                let value = try value(of: key, rest)
                entries.append(ForeignLine(index + 1, nil, key, value))
            } catch {
                problems.append(ForeignProblem(index + 1, error.reason, hint: error.hint))
            }
        }
        return (entries, problems)
    }

    private struct Fault: Error {
        let reason: String
        let hint: String
    }

    private static func isKey(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: false
        }
    }

    private static func value(of key: String, _ rest: ArraySlice<UInt8>) throws(Fault) -> ArraySlice<UInt8> {
        guard !key.isEmpty else { throw Fault(reason: "the line begins with no key", hint: "write KEY VALUE") }
        let name = PrintableText.quote(key)
        let value = rest.trimmed
        if value.first == UInt8(ascii: "=") {
            throw Fault(reason: "\(name) has a =, which would belong to the value", hint: "write \(key) VALUE")
        }
        guard let first = value.first, first != UInt8(ascii: "#"), first != UInt8(ascii: ";") else {
            throw Fault(reason: "\(name) has no value", hint: "write \(key) VALUE, or remove the line")
        }
        guard let next = rest.first, ArraySlice<UInt8>.isBlank(next) || next == UInt8(ascii: "\"") else {
            throw Fault(reason: "there is no blank after \(name)", hint: "write KEY VALUE")
        }
        guard first == UInt8(ascii: "\"") else { return value.prefix { $0 != UInt8(ascii: "#") }.trimmed }
        let inner = value.dropFirst()
        guard let end = inner.firstIndex(of: first) else {
            throw Fault(reason: "the quotation mark in the value of \(name) is not closed", hint: "add the second one")
        }
        return inner[..<end]
    }
}
