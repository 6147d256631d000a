// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography

extension SiteOptions {
    /// The words of a line about secrets that are sent without a challenge.
    struct Unchallenged {
        var place: (place: SecretInjection.Place, column: Int)?
        var placeholder: (text: String, column: Int)?
        /// The column of `redact=yes`.
        var redactColumn: Int?
        /// The column of `challenge=none`.
        var challengeColumn: Int?

        func apply(to rule: inout SiteRule) {
            rule.assumesChallenge = challengeColumn != nil
            guard let place else { return }
            rule.injection = SecretInjection(
                place.place, placeholder: placeholder?.text, isRedacted: redactColumn != nil)
            // The same token would be sent twice.
            if !rule.namesAnswer { rule.answer = [] }
        }
    }

    /// The place of `inject=`. `column` is that of `text` in its line.
    static func place(in text: String, at column: Int) throws(Fault) -> SecretInjection.Place {
        func fault(_ message: String, _ hint: String = Self.injectionHint) -> Fault {
            Fault(column: column, message: message, hint: hint)
        }
        if text == "aws" { return .aws }
        let halves = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard halves.count == 2 else { throw fault("inject= names no place") }
        guard halves[1].components(around: SecretInjection.token)?.after.contains(SecretInjection.token) == false else {
            throw fault(
                "inject= has \(SecretInjection.token) not exactly once",
                "write \(SecretInjection.token) where the token belongs: \(injectionExample)")
        }
        switch halves[0] {
        case "header": return try header(halves[1], fault)
        case "basic": return try basic(halves[1], fault)
        case "query": return .query(name: try parameter(halves[1], "parameter", fault))
        case "cookie": return .cookie(name: try parameter(halves[1], "cookie", fault))
        default:
            throw fault("unknown place \(PrintableText.quoteASCII(halves[0])) of inject=")
        }
    }

    private static let injectionExample = "inject=header:X-Api-Key: {secret}"
    private static let injectionHint =
        "write \(injectionExample), inject=basic:user:{secret}, inject=query:key={secret}, inject=cookie:name={secret} "
        + "or inject=aws"

    /// `Authorization: Bearer {secret}`
    private static func header(
        _ text: String, _ fault: (String, String) -> Fault
    ) throws(Fault) -> SecretInjection.Place {
        let halves = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard halves.count == 2, !halves[0].isEmpty, halves[0].utf8.allSatisfy(isToken) else {
            throw fault("inject=header: names no field", injectionHint)
        }
        let name = halves[0]
        guard !reservedFields.contains(name.lowercased()), !name.lowercased().hasPrefix("proxy-") else {
            throw fault(
                "the field \(PrintableText.quoteASCII(name)) belongs to the proxy",
                name.lowercased() == "cookie"
                    ? "write inject=cookie:name={secret}" : "name the field that the API wants")
        }
        let value = String(halves[1].drop { $0 == " " || $0 == "\t" })
        guard value.utf8.allSatisfy({ $0 < 0x7F && ($0 >= 0x20 || $0 == 0x09) }),
            let parts = value.components(around: SecretInjection.token)
        else {
            throw fault("the value of the field \(PrintableText.quoteASCII(name)) is not ASCII", injectionHint)
        }
        return .header(name: name, prefix: parts.before, suffix: parts.after)
    }

    /// `x-access-token:{secret}`
    private static func basic(
        _ text: String, _ fault: (String, String) -> Fault
    ) throws(Fault) -> SecretInjection.Place {
        guard let parts = text.components(around: SecretInjection.token),
            text.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        else { throw fault("the text of inject=basic: is not ASCII", basicHint) }
        guard text.utf8.count(where: { $0 == UInt8(ascii: ":") }) == 1 else {
            throw fault("inject=basic: needs one colon, which ends the user name (RFC 7617 §2)", basicHint)
        }
        return .basic(prefix: parts.before, suffix: parts.after)
    }

    private static let basicHint =
        "write inject=basic:user:{secret} for a token that is the password, or inject=basic:{secret}: for one that is "
        + "the user name"

    /// `key={secret}`
    private static func parameter(
        _ text: String, _ kind: String, _ fault: (String, String) -> Fault
    ) throws(Fault) -> String {
        let halves = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard halves.count == 2, halves[1] == SecretInjection.token else {
            throw fault("the \(kind) of inject= is not NAME=\(SecretInjection.token)", injectionHint)
        }
        guard !halves[0].isEmpty, halves[0].utf8.allSatisfy({ isToken($0) && !"%+&'*".utf8.contains($0) }) else {
            throw fault("\(PrintableText.quoteASCII(halves[0])) is not the name of a \(kind)", injectionHint)
        }
        return halves[0]
    }

    private static func isToken(_ octet: UInt8) -> Bool {
        switch octet {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!$%&'*+-.^_`|~".utf8.contains(octet)
        }
    }

    /// The fields that say how a message is framed and forwarded, or that the proxy reads itself.
    private static let reservedFields: Set<String> = [
        "host", "connection", "keep-alive", "te", "trailer", "transfer-encoding", "content-length", "upgrade", "expect",
        "via", "max-forwards", "cookie", "set-cookie", "range", "if-range", "accept-encoding", "date", "dpop",
        "countersign-trust", "http2-settings", "www-authenticate", "authentication-info", "x-ms-pkeyauth",
        "x-ms-refreshtokencredential",
    ]

    /// What clients may send in place of the token: long enough not to occur by chance.
    static func placeholder(in text: String, at column: Int) throws(Fault) -> String {
        guard (8...256).contains(text.utf8.count), text.utf8.allSatisfy({ isToken($0) && !"%+&".utf8.contains($0) })
        else {
            throw Fault(
                column: column, message: "\(PrintableText.quoteASCII(text)) cannot be a placeholder",
                hint: "write 8 to 256 letters, digits, dots, hyphens and underscores")
        }
        return text
    }

    /// The faults of the words together, once all are read. `pattern` is nil if it is faulty itself.
    func unchallengedFault(at pattern: SitePattern?) -> Fault? {
        func fault(_ column: Int, _ message: String, _ hint: String) -> Fault {
            Fault(column: column, message: message, hint: hint)
        }
        let words = unchallenged
        if let place = words.place {
            if let pattern, pattern.scheme != .https {
                return fault(place.column, "a token is injected over https only", "list the https:// site")
            }
            guard intercepts else {
                return fault(place.column, "inject= has no effect with intercept=no", "remove one of the two options")
            }
            if case .basic = place.place, let column = words.redactColumn {
                return fault(
                    column, "redact=yes cannot find a token that is sent as Base64",
                    "remove redact=yes, or write inject=header: if the API accepts the token in another field")
            }
            if case .cookie = place.place, let placeholder = words.placeholder {
                return fault(
                    placeholder.column, "a placeholder is replaced in a field or in the query only",
                    "remove placeholder=, or inject=header: or inject=query:")
            }
            guard permitsOnlyCertificates else {
                return fault(
                    place.column, "a token is injected in place of an answer",
                    "remove the schemes other than certificate from answer=, or inject=")
            }
            if case .aws = place.place, let fault = signatureFault(at: place.column) { return fault }
            if case .cookie = place.place, hasSession {
                return fault(
                    place.column, "inject=cookie: has no effect with session=", "remove one of the two options")
            }
        } else if let column = words.placeholder?.column ?? words.redactColumn {
            return fault(column, "the option has no effect without inject=", "add \(Self.injectionExample)")
        }
        return challengeFault(at: pattern)
    }

    /// The faults of `inject=aws`, which is at `column`, with the other words.
    private func signatureFault(at column: Int) -> Fault? {
        if unchallenged.placeholder == nil {
            return Fault(
                column: column, message: "inject=aws does not say with which access key ID clients sign",
                hint: "add placeholder=countersign, and give clients that access key ID with any secret")
        }
        return unchallenged.redactColumn.map { column in
            Fault(
                column: column, message: "redact=yes has no effect with inject=aws: no request contains the key",
                hint: "remove redact=")
        }
    }

    /// The faults of `challenge=none`.
    private func challengeFault(at pattern: SitePattern?) -> Fault? {
        guard let column = unchallenged.challengeColumn else { return nil }
        func fault(_ column: Int, _ message: String, _ hint: String) -> Fault {
            Fault(column: column, message: message, hint: hint)
        }
        if let pattern, pattern.scheme != .https {
            return fault(column, "challenge=none is for https only", "list the https:// site")
        }
        if unchallenged.place != nil {
            return fault(
                column, "challenge=none has no effect with inject=", "remove one of the two options")
        }
        guard let only = assumedScheme else {
            return fault(
                column, "challenge=none needs the one scheme with which a 401 is answered",
                "add answer= with one of "
                    + SiteRule.assumableSchemes.map(\.rawValue).joined(separator: ", "))
        }
        guard SiteRule.assumableSchemes.contains(only) else {
            return fault(
                column, "\(only.rawValue) cannot be answered without a challenge",
                "choose among \(SiteRule.assumableSchemes.map(\.rawValue).joined(separator: ", "))")
        }
        return nil
    }
}

extension SiteRule {
    /// The schemes whose challenge has nothing that only the server knows.
    static let assumableSchemes: [AuthenticationScheme] = [.negotiate, .ntlm, .bearer, .basic]

    /// The challenge that a 401 without one stands for, if the line says `challenge=none`.
    package var assumedChallenge: String? {
        guard assumesChallenge, let scheme = answer.first else { return nil }
        return switch scheme {
        case .negotiate: "Negotiate"
        case .ntlm: "NTLM"
        case .bearer: "Bearer"
        case .basic: "Basic realm=\"\(pattern.host.name.text)\""
        case .certificate, .pkeyauth, .digest: nil
        }
    }
}

extension String {
    /// The text before the first `mark`, and after it; nil without one.
    fileprivate func components(around mark: String) -> (before: String, after: String)? {
        guard let range = firstRange(of: mark) else { return nil }
        return (String(self[..<range.lowerBound]), String(self[range.upperBound...]))
    }
}
