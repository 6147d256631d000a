// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Text of a provider, made fit for messages and logs. The errors of some providers repeat secrets from the request: a
/// code, a refresh token.
enum ProviderText {
    /// Bytes beyond this limit are ignored.
    static let maximumBytes = 4096

    /// A run of so many characters of a token (RFC 6750 §2.1) is masked, whether it is known or not.
    static let longestWord = 19

    /// A sentence: printable and shortened. A text with one of `secrets` in it is not shown at all.
    static func sentence(_ text: String, hiding secrets: [Secret]) -> String {
        let bytes = Array(text.utf8.prefix(maximumBytes))
        guard !secrets.contains(where: { occurs($0, in: bytes) }) else { return "(a text that repeats a secret)" }
        return PrintableText.longer(masked(bytes))
    }

    /// An error code: the same, but words of lower-case letters are shown regardless of their length.
    static func code(_ text: String, hiding secrets: [Secret]) -> String {
        let bytes = Array(text.utf8.prefix(maximumBytes))
        let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
        let isWord = bytes.allSatisfy { letters.contains($0) || $0 == UInt8(ascii: "_") }
        // A short secret may be a part of a registered code by chance.
        let isSecret = secrets.contains { (!isWord || $0.count > longestWord) && occurs($0, in: bytes) }
        return isSecret ? "(hidden)" : PrintableText.plain(isWord ? text : masked(bytes))
    }

    /// Whether `text` repeats one of `secrets`.
    static func repeats(_ secrets: [Secret], _ text: String) -> Bool {
        secrets.contains { occurs($0, in: Array(text.utf8)) }
    }

    private static func occurs(_ secret: Secret, in bytes: [UInt8]) -> Bool {
        guard secret.count >= 4, secret.count <= bytes.count else { return false }
        return secret.withBytes { secret in
            (0...bytes.count - secret.count).contains { bytes[$0...].starts(with: secret) }
        }
    }

    private static func masked(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        for run in runs(bytes) {
            let isLong = run.count > longestWord && isTokenCharacter(run[run.startIndex])
            text += isLong ? ArraySlice("(hidden)".utf8) : run
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The parts of `bytes` that have only characters of tokens, or none.
    private static func runs(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        var runs: [ArraySlice<UInt8>] = []
        var rest = bytes[...]
        while let first = rest.first {
            let isToken = isTokenCharacter(first)
            let run = rest.prefix { isTokenCharacter($0) == isToken }
            runs.append(run)
            rest = rest[run.endIndex...]
        }
        return runs
    }

    /// RFC 6750 §2.1, and the percent sign of an encoded token.
    private static func isTokenCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "-._~+/=%".utf8.contains(byte)
        }
    }
}
