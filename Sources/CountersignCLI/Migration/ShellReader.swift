// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// alpaca's settings in a file of variables or of a shell: assignments of its variables, and its command with flags. A
/// variable whose name begins with ALPACA and whose value begins with a dash contains such flags, as in a file for
/// systemd. Lines about other things are skipped.
///
/// Entries have the variable's name or the flag as their key: `NTLM_CREDENTIALS`, `-C`.
enum ShellReader {
    private static let variables = ["NTLM_CREDENTIALS", "BASIC_CREDENTIALS"]
    /// The flags of alpaca, and whether they have values.
    private static let flags = [
        "C": true, "d": true, "u": true, "p": true, "l": true, "H": false, "q": false, "version": false,
    ]

    static func mentionsAlpaca(_ text: String) -> Bool {
        text.split { !$0.isLetter && !$0.isNumber && $0 != "_" }.contains {
            $0 == "alpaca" || $0.hasPrefix("ALPACA") || variables.contains(String($0))
        }
    }

    static func read(_ lines: [ArraySlice<UInt8>]) -> (entries: [ForeignLine], problems: [ForeignProblem]) {
        var entries: [ForeignLine] = []
        var problems: [ForeignProblem] = []
        for (index, text) in joined(lines) {
            guard let first = text.first, first != UInt8(ascii: "#"),
                mentionsAlpaca(String(decoding: text, as: UTF8.self))
            else { continue }
            do throws(ForeignFault) {
                entries += try Self.entries(index + 1, text)
            } catch {
                problems += error.problems
            }
        }
        return (entries, problems)
    }

    /// The lines without blanks at both ends, and their indices from 0. One that ends in a backslash continues in the
    /// next, and has the index of the first.
    private static func joined(_ lines: [ArraySlice<UInt8>]) -> [(index: Int, text: ArraySlice<UInt8>)] {
        var joined: [(index: Int, text: ArraySlice<UInt8>)] = []
        var isContinued = false
        for (index, line) in lines.enumerated() {
            var text = line.trimmed
            let continues = text.last == UInt8(ascii: "\\") && text.first != UInt8(ascii: "#")
            if continues { text = text.dropLast() }
            if isContinued, let last = joined.popLast() {
                joined.append((last.index, last.text + [0x20] + text))
            } else {
                joined.append((index, text))
            }
            isContinued = continues
        }
        return joined
    }

    private static func isAlpaca(_ program: ArraySlice<UInt8>) -> Bool {
        String(decoding: program, as: UTF8.self).split(separator: "/").last == "alpaca"
    }

    private static func entries(_ number: Int, _ text: ArraySlice<UInt8>) throws(ForeignFault) -> [ForeignLine] {
        var words = try words(number, text)[...]
        var entries: [ForeignLine] = []
        while let word = words.popFirst() {
            let name = String(decoding: word.bytes.prefix(while: isName), as: UTF8.self)
            if !name.isEmpty, word.bytes.dropFirst(name.utf8.count).first == UInt8(ascii: "=") {
                let value = word.bytes.dropFirst(name.utf8.count + 1)
                if variables.contains(name) {
                    try check(number, name, word)
                    entries.append(ForeignLine(number, nil, name, value))
                } else if name.hasPrefix("ALPACA"), value.first == UInt8(ascii: "-") {
                    entries += try flags(number, try Self.words(number, value)[...])
                } else if name.hasPrefix("ALPACA") {
                    entries.append(ForeignLine(number, nil, name, value))
                } else if name == "ExecStart", isAlpaca(value) {
                    return entries + (try flags(number, words))
                }
            } else if isAlpaca(word.bytes) {
                return entries + (try flags(number, words))
            }
        }
        return entries
    }

    private static func check(_ number: Int, _ name: String, _ word: Word) throws(ForeignFault) {
        guard !word.isExpanded else {
            throw ForeignFault([
                ForeignProblem(
                    number, "the value of \(name) contains a $ or a backquote, which only a shell can replace",
                    hint: "write the value itself, in single quotes")
            ])
        }
    }

    /// Flags as Go's package `flag` reads them: one dash or two, the value behind `=` or in the next word.
    private static func flags(_ number: Int, _ given: ArraySlice<Word>) throws(ForeignFault) -> [ForeignLine] {
        var words = given
        var entries: [ForeignLine] = []
        while let word = words.popFirst() {
            guard word.bytes.first == UInt8(ascii: "-") else {
                if word.bytes.first == UInt8(ascii: "$") { try check(number, "the flags", word) }
                break
            }
            let flag = word.bytes.drop { $0 == UInt8(ascii: "-") }
            let name = String(decoding: flag.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self)
            guard let hasValue = Self.flags[name] else {
                throw ForeignFault([
                    ForeignProblem(
                        number, "alpaca has no flag \(PrintableText.quote("-" + name))",
                        hint: "its flags are " + Self.flags.keys.sorted().map { "-\($0)" }.joined(separator: " "))
                ])
            }
            var value = word
            value.bytes = flag.dropFirst(name.utf8.count + 1)
            if hasValue, !flag.contains(UInt8(ascii: "=")) {
                guard let next = words.popFirst() else {
                    throw ForeignFault([
                        ForeignProblem(number, "the flag -\(name) has no value", hint: "write -\(name) VALUE")
                    ])
                }
                value = next
            }
            try check(number, "-\(name)", value)
            entries.append(ForeignLine(number, nil, "-\(name)", value.bytes))
        }
        return entries
    }

    private static func isName(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x5F: true
        default: false
        }
    }

    // MARK: Words

    private struct Word {
        var bytes: ArraySlice<UInt8> = []
        /// The shell would replace a part of it.
        var isExpanded = false
    }

    /// The words of a line as sh splits it, up to a comment. `;`, `&` and `|` separate words, too.
    private static func words(_ number: Int, _ text: ArraySlice<UInt8>) throws(ForeignFault) -> [Word] {
        var words: [Word] = []
        var word: Word?
        var quote: UInt8?
        var isEscaped = false
        for byte in text {
            if isEscaped {
                isEscaped = false
                if quote == UInt8(ascii: "\""), !"$`\"\\".utf8.contains(byte) {
                    word?.bytes.append(UInt8(ascii: "\\"))
                }
                word?.bytes.append(byte)
            } else if byte == UInt8(ascii: "\\"), quote != UInt8(ascii: "'") {
                word = word ?? Word()
                isEscaped = true
            } else if byte == quote {
                quote = nil
            } else if quote == nil, byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\"") {
                word = word ?? Word()
                quote = byte
            } else if quote == nil, ArraySlice<UInt8>.isBlank(byte) || ";&|".utf8.contains(byte) {
                if let word { words.append(word) }
                word = nil
            } else if quote == nil, word == nil, byte == UInt8(ascii: "#") {
                break
            } else {
                word = word ?? Word()
                if quote != UInt8(ascii: "'"), byte == UInt8(ascii: "$") || byte == UInt8(ascii: "`") {
                    word?.isExpanded = true
                }
                word?.bytes.append(byte)
            }
        }
        guard quote == nil else {
            throw ForeignFault([
                ForeignProblem(number, "a quotation mark is not closed", hint: "add the second one to the line")
            ])
        }
        if let word { words.append(word) }
        return words
    }
}
