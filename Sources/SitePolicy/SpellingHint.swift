// SPDX-License-Identifier: Apache-2.0

/// Suggests a correction for a misspelt word.
package enum SpellingHint {
    /// The closest known word if it is within two edits, else all known words.
    static func text(for word: String, among known: [String]) -> String {
        if let best = closest(to: word, among: known) { return "did you mean \"\(best)\"?" }
        return "known words: \(known.joined(separator: ", "))"
    }

    /// The closest known word if it is within two edits.
    package static func closest(to word: String, among known: [String]) -> String? {
        let distances = known.map { (word: $0, edits: edits(from: word, to: $0)) }
        guard let best = distances.min(by: { $0.edits < $1.edits }), best.edits <= 2, best.edits < best.word.utf8.count
        else { return nil }
        return best.word
    }

    /// The Levenshtein distance in bytes; `Int.max` for a word of more than 64 bytes.
    static func edits(from word: String, to other: String) -> Int {
        let left = Array(word.utf8)
        let right = Array(other.utf8)
        guard left.count <= 64 else { return Int.max }
        var row = Array(0...right.count)
        for (index, byte) in left.enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for column in right.indices {
                let replaced = diagonal + (right[column] == byte ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(replaced, row[column] + 1, diagonal + 1)
            }
        }
        return row[right.count]
    }
}
