// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Makes text of a page, or of the program that shows it, safe for a terminal and for a person's eye.
package enum PageText {
    /// As ``PrintableText/line(_:limit:)``.
    package static func printable(_ text: String, limit: Int = 200) -> String {
        PrintableText.line(text, limit: limit)
    }
}
