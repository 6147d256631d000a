// SPDX-License-Identifier: Apache-2.0

/// A word of a shell command that is shown to the user.
package enum ShellWord {
    /// The word, in quotes if it needs them.
    package static func quoted(_ word: String) -> String {
        let isPlain = word.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2B...0x2F, 0x3A, 0x5F: true
            default: false
            }
        }
        guard !isPlain || word.hasPrefix("-") else { return word }
        return "'" + word.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
