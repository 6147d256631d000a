// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A line of the list that names no site, but the clients that may use a credential: `credential:NAME for=CLIENTS`.
///
/// Every line that sends the credential is for these clients only, in addition to its own `for=`.
package struct CredentialClients: Equatable, Sendable {
    /// What the line begins with.
    static let prefix = "credential:"

    /// The file name that was given to the parser.
    package let file: String
    /// Counted from 1.
    package let line: Int
    /// The line's text without its line end.
    package let text: String
    /// Of the credential.
    package let name: String
    package let clients: ClientRule

    /// `AllowedSites/work.sites:3`.
    package var location: String { "\(file):\(line)" }

    /// The name in the first word of such a line; nil in that of another line.
    static func name(in word: String) -> String? {
        word.hasPrefix(prefix) ? String(word.dropFirst(prefix.count)) : nil
    }

    /// The clients of such a line, whose words are given.
    static func parse(_ words: [SiteLineParser.Word]) throws(SiteOptions.Fault) -> (name: String, clients: ClientRule) {
        let first = words[0]
        guard let name = name(in: first.text), SiteRule.isStoredName(name) else {
            throw SiteOptions.Fault(
                column: first.column + prefix.count, message: "this cannot be the name of a credential",
                hint: "write credential:NAME for=CLIENTS; `countersign credential list` prints the names")
        }
        var clients: ClientRule?
        for word in words.dropFirst() {
            let start = "for="
            guard word.text.hasPrefix(start) else {
                throw SiteOptions.Fault(
                    column: word.column,
                    message: "a line about a credential has no \(PrintableText.quoteASCII(word.text))",
                    hint: "it has for= only; the other options belong to the lines of sites")
            }
            guard clients == nil else {
                throw SiteOptions.Fault(
                    column: word.column, message: "the option \"for\" is given twice", hint: "keep one of them")
            }
            clients = try SiteOptions.clients(
                in: String(word.text.dropFirst(start.count)), at: word.column + start.count)
        }
        guard let clients else {
            throw SiteOptions.Fault(
                column: first.column, message: "the line does not say which clients may use the credential",
                hint: "add for=, as in credential:\(name) for=exe:/usr/bin/curl")
        }
        return (name, clients)
    }
}
