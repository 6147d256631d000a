// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignCryptography

extension SiteOptions {
    /// The value of one option, to be read as what the option wants.
    struct Value {
        let name: Name
        let text: String
        let column: Int

        struct Answers {
            /// Strongest first, independent of the order in the file.
            var schemes: [AuthenticationScheme] = []
            var usesBroker = false
        }

        func answers() throws(Fault) -> Answers {
            if text == "none" { return Answers() }
            let supported = AuthenticationScheme.supported
            var words: Set<String> = []
            var itemColumn = column
            for item in text.unicodeScalars.split(separator: ",", omittingEmptySubsequences: false) {
                let word = String(Substring(item))
                guard word == SiteRule.brokerWord || AuthenticationScheme(rawValue: word) != nil else {
                    throw fault(
                        "unknown scheme \(PrintableText.quoteASCII(word))", at: itemColumn,
                        hint: Self.otherName(of: word)
                            ?? SpellingHint.text(for: word, among: supported.map(\.rawValue) + [SiteRule.brokerWord]))
                }
                guard words.insert(word).inserted else {
                    throw fault(
                        "the scheme \(PrintableText.quoteASCII(word)) is given twice", at: itemColumn,
                        hint: "keep one of them")
                }
                itemColumn += item.count + 1
            }
            return Answers(
                schemes: supported.filter { words.contains($0.rawValue) },
                usesBroker: words.contains(SiteRule.brokerWord))
        }

        /// The name in the list of a scheme that people know by another name.
        private static func otherName(of word: String) -> String? {
            let names: [String: (name: String, scheme: AuthenticationScheme)] = [
                "kerberos": ("Kerberos", .negotiate), "krb5": ("Kerberos", .negotiate),
                "spnego": ("SPNEGO", .negotiate), "gssapi": ("GSSAPI", .negotiate), "ntlmv2": ("NTLMv2", .ntlm),
                "token": ("a token", .bearer), "oauth": ("OAuth", .bearer), "oauth2": ("OAuth", .bearer),
                "mtls": ("mutual TLS", .certificate), "tls": ("TLS with a client certificate", .certificate),
            ]
            return names[word.lowercased()].map { "\($0.name) is called \($0.scheme.rawValue)" }
        }

        func group() throws(Fault) -> String {
            guard SiteRule.isGroupName(text) else {
                throw fault(
                    "\(PrintableText.quoteASCII(text)) cannot be the name of a group",
                    hint: "names consist of 1 to 64 characters from A-Z a-z 0-9 . _ -, the first a letter or digit")
            }
            return text
        }

        func cookies() throws(Fault) -> [String] {
            let names = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
            if let reason = SiteRule.fault(ofCookies: names) {
                throw fault("cookies= \(reason)", hint: "write the names with commas between them")
            }
            return names
        }

        func charset() throws(Fault) -> CredentialCharset {
            if let charset = CredentialCharset(rawValue: text) { return charset }
            let known = CredentialCharset.allCases.map(\.rawValue).joined(separator: " or ")
            throw fault("unknown value \(PrintableText.quoteASCII(text)) of \(name.rawValue)", hint: "write \(known)")
        }

        /// Delegation is never unconditional.
        func policy() throws(Fault) -> Bool {
            guard text == "policy" else {
                throw fault(
                    "unknown value \(PrintableText.quoteASCII(text)) of \(name.rawValue)",
                    hint: "write policy, or leave it out")
            }
            return true
        }

        func revocation() throws(Fault) -> RevocationCheck {
            if let check = RevocationCheck(rawValue: text) { return check }
            throw fault(
                "unknown value \(PrintableText.quoteASCII(text)) of \(name.rawValue)",
                hint: "write soft, require or off")
        }

        func none() throws(Fault) -> Bool {
            guard text == "none" else {
                throw fault(
                    "unknown value \(PrintableText.quoteASCII(text)) of \(name.rawValue)",
                    hint: "write none, or leave it out")
            }
            return true
        }

        /// Nil for `no`.
        func approval() throws(Fault) -> ApprovalRule? {
            if text == "no" { return nil }
            guard let rule = ApprovalRule(rawValue: text) else {
                throw fault(
                    "unknown value \(PrintableText.quoteASCII(text)) of \(name.rawValue)",
                    hint: "write ask for all requests, write for those that change something, or no")
            }
            return rule
        }

        func byteCount() throws(Fault) -> ByteCount {
            guard let count = ByteCount(text) else {
                throw fault(
                    "\(PrintableText.quoteASCII(text)) is not a size",
                    hint: "write a whole number of bytes, or one with K, M or G: 64K")
            }
            return count
        }

        func ignoresCase() throws(Fault) -> Bool {
            switch text {
            case "ignore": return true
            case "exact": return false
            default:
                throw fault(
                    "unknown value \(PrintableText.quoteASCII(text)) of \(name.rawValue)",
                    hint: "write ignore or exact")
            }
        }

        func yesOrNo() throws(Fault) -> Bool {
            switch text {
            case "yes": return true
            case "no": return false
            default:
                throw fault(
                    "unknown value \(PrintableText.quoteASCII(text)) of \(name.rawValue)", hint: "write yes or no")
            }
        }

        /// The name of a credential or identity in the vault.
        func storedName() throws(Fault) -> String {
            guard SiteRule.isStoredName(text) else {
                throw fault(
                    "\(PrintableText.quoteASCII(text)) cannot be the name of \(name == .identity ? "an identity" : "a credential")",
                    hint: "names consist of 1 to 64 characters from A-Z a-z 0-9 . _ -")
            }
            return text
        }

        /// The part before the backslash in `ACME\jdoe`.
        func domain() throws(Fault) -> String {
            let isGood = text.unicodeScalars.allSatisfy {
                $0.value > 0x20 && $0 != "\\" && $0 != "/" && $0 != "@" && $0 != ":" && $0 != "\""
            }
            guard isGood, text.utf8.count <= HostName.maximumBytes else {
                throw fault(
                    "\(PrintableText.quoteASCII(text)) is not a domain",
                    hint: "write only the part before the backslash: ACME")
            }
            return text
        }

        /// `service/host` (RFC 4559 §4.1).
        func servicePrincipalName() throws(Fault) -> String {
            let halves = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            let isService = halves[0].utf8.allSatisfy { ($0 | 0x20) >= 0x61 && ($0 | 0x20) <= 0x7A }
            guard halves.count == 2, isService, !halves[0].isEmpty, (try? HostName(canonicalizing: halves[1])) != nil
            else {
                throw fault(
                    "\(PrintableText.quoteASCII(text)) is not a service principal name", hint: "write HTTP/host")
            }
            return text
        }

        private func fault(_ message: String, at column: Int? = nil, hint: String) -> Fault {
            Fault(column: column ?? self.column, message: message, hint: hint)
        }
    }
}
