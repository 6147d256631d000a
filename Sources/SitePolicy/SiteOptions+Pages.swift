// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography

extension SiteOptions {
    /// The pages of `cross-site=`. `column` is that of `text` in its line.
    static func pages(in text: String, at column: Int) throws(Fault) -> [PageOrigin] {
        var pages: [PageOrigin] = []
        var column = column
        for item in text.unicodeScalars.split(separator: ",", omittingEmptySubsequences: false) {
            let word = String(Substring(item))
            let page = try Self.page(word, at: column)
            guard !pages.contains(page) else {
                throw Fault(
                    column: column, message: "the page \(PrintableText.quoteASCII(page.description)) is given twice",
                    hint: "keep one of them")
            }
            pages.append(page)
            column += item.count + 1
        }
        return pages
    }

    private static func page(_ word: String, at column: Int) throws(Fault) -> PageOrigin {
        func fault(_ message: String, _ hint: String) -> Fault { Fault(column: column, message: message, hint: hint) }
        guard !word.isEmpty else {
            throw fault("an origin is missing", "write cross-site=https://app.corp.example,https://wiki.corp.example")
        }
        guard word != "null" else {
            throw fault("null stands for every page without an origin", "name the origins of the pages")
        }
        guard !word.contains("*") else {
            throw fault(
                "cross-site= has no wildcards: \(PrintableText.quoteASCII(word))",
                "name each origin, such as https://app.corp.example")
        }
        do {
            return try PageOrigin(parsing: word)
        } catch {
            throw fault("cross-site=: \(error.detail)", hint(for: error.code))
        }
    }

    private static func hint(for code: HostNameError.Code) -> String {
        switch code {
        case .scheme: "write the page's origin with its scheme: https://app.corp.example"
        case .path: "write scheme, host and port only: an origin has no path"
        case .port: "leave out the port to use the scheme's default"
        case .userInfo: "an origin has no user name"
        default: "write an origin as the refusal names it, such as https://app.corp.example"
        }
    }

    /// The fault of `cross-site=` together with the other options, once all words are read.
    func pagesFault() -> Fault? {
        guard let pagesColumn = column(of: "cross-site"), !intercepts else { return nil }
        return Fault(
            column: pagesColumn, message: "cross-site= has no effect with intercept=no",
            hint: "remove one of the two options")
    }
}
