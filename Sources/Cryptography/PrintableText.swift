// SPDX-License-Identifier: Apache-2.0

/// Makes text from a server safe for error messages.
package enum PrintableText {
    /// The maximum length, in characters.
    package static let limit = 60

    /// In quotes, truncated to ``limit`` characters, with a dot for each byte that is not printable ASCII.
    package static func quote(_ text: some StringProtocol) -> String { quote(Array(text.utf8)) }

    /// In quotes, truncated to ``limit`` bytes, with a dot for each byte that is not printable ASCII and one space for
    /// each run of white space.
    package static func quote(_ bytes: [UInt8]) -> String { "\"\(plain(bytes))\"" }

    /// The same without the quotes.
    package static func plain(_ text: some StringProtocol) -> String { plain(Array(text.utf8)) }

    /// Without quotes and with a higher limit, for messages of libcurl and of servers.
    package static func longer(_ text: String) -> String { plain(Array(text.utf8), limit: 200) }

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
