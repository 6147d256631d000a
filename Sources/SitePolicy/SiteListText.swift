// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// The text of one file of `AllowedSites/`, and the two changes that `countersign sites` makes to it. All other lines
/// stay the same, byte for byte.
package enum SiteListText {
    /// One line of a file.
    struct Line {
        /// Counted from 1.
        let number: Int
        /// Without the line end, and without a byte order mark.
        let scalars: [Unicode.Scalar]
        /// The range in the text, including the line end.
        let range: Range<String.Index>
    }

    /// Lines end in LF or CRLF; a leading byte order mark is ignored.
    static func lines(of text: String) -> [Line] {
        let view = text.unicodeScalars
        var lines: [Line] = []
        var start = view.startIndex
        if view.first == "\u{FEFF}" { start = view.index(after: start) }
        while start < view.endIndex {
            let feed = view[start...].firstIndex(of: "\n")
            let end = feed.map { view.index(after: $0) } ?? view.endIndex
            var scalars = Array(view[start..<(feed ?? end)])
            if feed != nil, scalars.last == "\r" { scalars.removeLast() }
            lines.append(Line(number: lines.count + 1, scalars: scalars, range: start..<end))
            start = end
        }
        return lines
    }

    package static func lineCount(of text: String) -> Int { lines(of: text).count }

    /// Appends a line, with the line end that the file uses. Does not validate it: parse the result with ``SiteList``
    /// before writing it.
    package static func add(_ line: String, to text: String) -> String {
        let usesCRLF = text.unicodeScalars.firstIndex(of: "\n").map { feed in
            feed > text.startIndex && text.unicodeScalars[text.unicodeScalars.index(before: feed)] == "\r"
        }
        let lineEnd = usesCRLF == true ? "\r\n" : "\n"
        let isOpen = !lines(of: text).isEmpty && text.unicodeScalars.last != "\n"
        return text + (isOpen ? lineEnd : "") + line + lineEnd
    }

    /// What a line is about.
    package enum Subject: Equatable, Sendable, CustomStringConvertible {
        case site(SitePattern)
        /// `credential:NAME`
        case credential(String)

        /// Without public suffixes: a wildcard that has become an error because of a new suffix can still be removed.
        package init(parsing word: String) throws(HostNameError) {
            if let name = CredentialClients.name(in: word) {
                self = .credential(name)
            } else {
                self = .site(try SitePattern(parsing: word, publicSuffixes: .none))
            }
        }

        package var description: String {
            switch self {
            case .site(let pattern): pattern.description
            case .credential(let name): CredentialClients.prefix + name
            }
        }
    }

    /// Removes all lines about exactly this site, in any spelling, or this credential; nil if no line is.
    package static func remove(_ subject: Subject, from text: String) -> String? {
        let listing = lines(of: text).filter { line in
            guard let first = SiteLineParser.words(of: line.scalars).first else { return false }
            return (try? Subject(parsing: first.text)) == subject
        }
        guard !listing.isEmpty else { return nil }
        var rest = text.unicodeScalars
        for line in listing.reversed() { rest.removeSubrange(line.range) }
        return String(rest)
    }
}
