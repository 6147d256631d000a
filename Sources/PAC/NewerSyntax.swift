// SPDX-License-Identifier: Apache-2.0

/// Recognises syntax of ECMAScript after its fifth edition, for the explanation of an error.
enum NewerSyntax {
    private static let signs = ["=>", "`", "...", "?.", "??", "**"].map { Array($0.utf8) }
    private static let words: Set<String> = [
        "let", "const", "class", "async", "await", "of", "yield", "import", "export", "extends",
    ]

    /// Whether a line of a script, counted from 1, has such a word or sign.
    static func isIn(_ script: [UInt8], line number: Int) -> Bool {
        let lines = script.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        guard lines.indices.contains(number - 1) else { return false }
        let line = lines[number - 1]
        if signs.contains(where: { line.firstRange(of: $0) != nil }) { return true }
        return line.split { byte in !(0x61...0x7A).contains(byte | 0x20) && byte != UInt8(ascii: "_") }
            .contains { words.contains(String(decoding: $0, as: UTF8.self)) }
    }
}
