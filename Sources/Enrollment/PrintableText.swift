// SPDX-License-Identifier: Apache-2.0

/// What a server sent, as an error may repeat it.
enum PrintableText {
    /// The longest piece that is repeated, in characters.
    static let limit = 60

    /// In quotes, cut after ``limit`` characters, everything but printable ASCII as a dot.
    static func quote(_ text: some StringProtocol) -> String { quote(Array(text.utf8)) }

    /// In quotes, cut after ``limit`` bytes, everything but printable ASCII as a dot; runs of white space as one space.
    static func quote(_ bytes: [UInt8]) -> String { "\"\(plain(bytes))\"" }

    /// The same without the quotes.
    static func plain(_ text: some StringProtocol) -> String { plain(Array(text.utf8)) }

    /// For libcurl's own sentences, which are longer.
    static func longer(_ text: String) -> String { plain(Array(text.utf8), limit: 200) }

    private static func plain(_ bytes: [UInt8], limit: Int = limit) -> String {
        var text = ""
        var isSpace = true
        for byte in bytes {
            guard text.utf8.count < limit else { return text + "..." }
            let isBlank = byte == 0x20 || (0x09...0x0D).contains(byte)
            if isBlank {
                if !isSpace { text += " " }
            } else {
                text.unicodeScalars.append(
                    (0x21...0x7E).contains(byte) && byte != UInt8(ascii: "\"") ? Unicode.Scalar(byte) : ".")
            }
            isSpace = isBlank
        }
        return text
    }
}
