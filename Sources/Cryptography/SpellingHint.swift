// SPDX-License-Identifier: Apache-2.0

/// Suggests a correction for a misspelt word.
package enum SpellingHint {
    /// The closest known word if there is one, else all known words.
    package static func text(for word: String, among known: [String]) -> String {
        if let best = closest(to: word, among: known) { return "did you mean \"\(best)\"?" }
        return "known words: \(known.joined(separator: ", "))"
    }

    /// The only known word that begins with `word`; otherwise the closest one, if it is one edit away, or two that are
    /// less than half of the word.
    package static func closest(to word: String, among known: [String]) -> String? {
        let longer = known.filter { word.utf8.count >= 2 && $0.hasPrefix(word) }
        if longer.count == 1 { return longer[0] }
        let distances = known.map { (word: $0, edits: edits(from: word, to: $0)) }
        guard let best = distances.min(by: { $0.edits < $1.edits }), best.edits <= 2, best.edits < word.utf8.count,
            best.edits <= 1 || 2 * best.edits < word.utf8.count
        else { return nil }
        return best.word
    }

    /// The least number of bytes to insert, remove or replace, and of neighbours to exchange; `Int.max` for a word of
    /// more than 64 bytes.
    static func edits(from word: String, to other: String) -> Int {
        let left = Array(word.utf8)
        let right = Array(other.utf8)
        guard left.count <= 64 else { return Int.max }
        var rows = [Array(0...right.count)]
        for (index, byte) in left.enumerated() {
            var row = [index + 1]
            for column in right.indices {
                let replaced = rows[index][column] + (right[column] == byte ? 0 : 1)
                var least = min(replaced, rows[index][column + 1] + 1, row[column] + 1)
                if index > 0, column > 0, left[index - 1] == right[column], byte == right[column - 1] {
                    least = min(least, rows[index - 1][column - 1] + 1)
                }
                row.append(least)
            }
            rows.append(row)
        }
        return rows[left.count][right.count]
    }
}
