// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography

/// Parses one line of the allowed-sites list and collects its errors.
struct SiteLineParser {
    /// A piece of text between white space.
    struct Word {
        let text: String
        /// Counted from 1.
        let column: Int
    }

    private(set) var problems: [SiteListError.Problem] = []
    /// What the line says about a credential, if it is about one.
    private(set) var credentialClients: CredentialClients?
    private let file: String
    private let line: SiteListText.Line
    private let publicSuffixes: PublicSuffixes
    private var siteColumn = 1
    private var options = SiteOptions()

    init(file: String, line: SiteListText.Line, publicSuffixes: PublicSuffixes) {
        self.file = file
        self.line = line
        self.publicSuffixes = publicSuffixes
    }

    /// Nil for a blank line, a comment, a line about a credential, and one with a problem.
    mutating func parse() -> SiteRule? {
        guard isText() else { return nil }
        let words = Self.words(of: line.scalars)
        guard let site = words.first else { return nil }
        siteColumn = site.column
        guard CredentialClients.name(in: site.text) == nil else {
            parseCredential(words)
            return nil
        }
        let pattern = parseSite(site)
        for word in words.dropFirst() {
            do {
                try options.read(word)
            } catch {
                problem(at: error.column, error.message, hint: error.hint)
            }
        }
        if let pattern, let fault = options.proxyFault(at: pattern) {
            problem(at: fault.column, fault.message, hint: fault.hint)
        }
        if let column = options.plaintextColumn, pattern?.scheme == .https {
            problem(
                at: column, "plaintext=yes has no effect for https",
                hint: "list the http:// site on its own line, or remove the option")
        }
        if problems.isEmpty, let fault = options.sessionFault(at: pattern, publicSuffixes) {
            problem(at: fault.column, fault.message, hint: fault.hint)
        }
        if problems.isEmpty, let fault = options.pagesFault() ?? options.clientsFault() {
            problem(at: fault.column, fault.message, hint: fault.hint)
        }
        if problems.isEmpty, let fault = options.unchallengedFault(at: pattern) {
            problem(at: fault.column, fault.message, hint: fault.hint)
        }
        if problems.isEmpty,
            let fault = options.brokerFault(at: pattern) ?? options.limitsFault() ?? options.approvalFault
        {
            problem(at: fault.column, fault.message, hint: fault.hint)
        }
        guard let pattern, problems.isEmpty else { return nil }
        return options.rule(file: file, line: line.number, text: string(line.scalars[...]), pattern: pattern)
    }

    private mutating func parseCredential(_ words: [Word]) {
        do throws(SiteOptions.Fault) {
            let (name, clients) = try CredentialClients.parse(words)
            credentialClients = CredentialClients(
                file: file, line: line.number, text: string(line.scalars[...]), name: name, clients: clients)
        } catch {
            problem(at: error.column, error.message, hint: error.hint)
        }
    }

    /// Reports that an earlier line is about the same credential.
    mutating func reportDuplicate(of first: CredentialClients) {
        problem(
            at: siteColumn,
            "the clients of credential \(PrintableText.quoteASCII(first.name)) are already given at \(first.location)",
            hint: "write all of them in one line, with commas between them")
    }

    /// Reports that an earlier line has the same pattern, for the same requests and clients.
    mutating func reportDuplicate(of first: SiteRule) {
        let requests = first.limits == nil ? "" : " for the same requests"
        problem(
            at: siteColumn,
            "\(PrintableText.quoteASCII(first.pattern.description)) is already listed\(requests) at \(first.location)",
            hint: "keep one of the two lines")
    }

    /// Reports that `option` differs from that of an earlier line with the same pattern.
    mutating func reportDifference(of option: String, from first: SiteRule) {
        problem(
            at: options.column(of: option) ?? siteColumn,
            "\(option)= differs from that of \(PrintableText.quoteASCII(first.pattern.description)) at "
                + first.location,
            hint: "it is for the connections to the site, which carry all requests: write the same in each line")
    }

    /// The words before the comment. `inject=header:` reaches to the word that contains `{secret}`, because the values
    /// of fields have spaces.
    static func words(of scalars: [Unicode.Scalar]) -> [Word] {
        let text = scalars.prefix { $0 != "#" }
        var words: [Word] = []
        var pieces = text.split { $0 == " " || $0 == "\t" }[...]
        while var piece = pieces.popFirst() {
            if string(piece).hasPrefix("inject=header:"), !string(piece).contains(SecretInjection.token),
                let last = pieces.firstIndex(where: { string($0).contains(SecretInjection.token) }),
                !pieces[...last].contains(where: { SiteOptions.isOption(string($0)) })
            {
                piece = text[piece.startIndex..<pieces[last].endIndex]
                pieces = pieces[(last + 1)...]
            }
            words.append(Word(text: string(piece), column: piece.startIndex + 1))
        }
        return words
    }

    private mutating func isText() -> Bool {
        for (index, scalar) in line.scalars.enumerated() {
            switch scalar.value {
            case 0x09: continue
            case 0x00...0x1F, 0x7F...0x9F:
                problem(
                    at: index + 1, "the control character \(PrintableText.quoteASCII(String(scalar)))",
                    hint: "remove it")
                return false
            case 0xFFFD:
                problem(at: index + 1, "the text is not UTF-8", hint: "save the file as UTF-8")
                return false
            default: continue
            }
        }
        return true
    }

    private mutating func parseSite(_ site: Word) -> SitePattern? {
        do {
            return try SitePattern(parsing: site.text, publicSuffixes: publicSuffixes)
        } catch {
            var column = site.column
            if error.code == .port, !error.detail.contains("missing"),
                let colon = site.text.unicodeScalars.lastIndex(of: ":")
            {
                column += site.text.unicodeScalars.distance(from: site.text.startIndex, to: colon) + 1
            }
            problem(at: column, error.detail, hint: error.hint ?? Self.hint(for: error.code, site.text))
            return nil
        }
    }

    private static func hint(for code: HostNameError.Code, _ site: String) -> String? {
        if site.contains("=") { return "write the site first, then its options" }
        return switch code {
        case .userInfo: "`countersign credential set --user USER` enrols the user"
        case .path: "write scheme, host and port only; for some paths of the site, add paths=/api/**"
        case .scheme: "write http://, https://, or no scheme for https"
        case .wildcard: "a wildcard is the whole first label, before a domain that you own: https://*.corp.example"
        case .port:
            site.lowercased().hasPrefix("proxy://")
                ? "write proxy://HOST:PORT" : "leave out the port to use the scheme's default"
        case .address: "write an IPv4 address as four decimal numbers, an IPv6 address in brackets"
        case .zone: "an address with a zone cannot be listed"
        case .international: "write the name as its A-label (xn--...) if it is registered like this"
        case .empty, .tooLong, .forbiddenCharacter, .emptyLabel, .labelTooLong, .misplacedHyphen: nil
        }
    }

    private mutating func problem(at column: Int, _ message: String, hint: String?) {
        problems.append(.init(file: file, line: line.number, column: column, message: message, hint: hint))
    }
}

private func string(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
    String(String.UnicodeScalarView(scalars))
}
