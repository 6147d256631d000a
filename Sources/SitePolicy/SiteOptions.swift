// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignCryptography

/// The `name=value` words of one line.
struct SiteOptions {
    /// An error in one word.
    struct Fault: Error {
        let column: Int
        let message: String
        let hint: String?
    }

    enum Name: String, CaseIterable {
        case answer
        case credential
        case identity
        case domain
        case charset
        case spn
        case delegate
        case plaintext
        case preempt
        case intercept
        case http2
        case revocation
        case session
        case cookies
        case crossSite = "cross-site"
        case inject
        case placeholder
        case redact
        case challenge
        case methods
        case paths
        case caseOfPaths = "case"
        case maximumBody = "max-body"
        case deny
        case clients = "for"
        case dryRun = "dry-run"
        case approve
    }

    /// The column of `plaintext=yes`.
    private(set) var plaintextColumn: Int?
    /// The column of each option that was read.
    private var seen: [Name: Int] = [:]
    private var answer: Value.Answers?
    private var answerColumn = 1
    private var credential: String?
    private var identity: String?
    private var domain: String?
    private var charset: CredentialCharset?
    private var servicePrincipalName: String?
    private var delegatesByPolicy = false
    private var preempts = true
    private(set) var intercepts = true
    private var speaksHTTP2 = true
    private var revocation = RevocationCheck.soft
    private var group: (name: String, column: Int)?
    private var cookies: (names: [String], column: Int)?
    private var crossSite: [PageOrigin] = []
    private(set) var unchallenged = Unchallenged()
    private var limits = RequestLimits()
    private var maximumBody: ByteCount?
    /// The column of the option of this name, if the line has it.
    func column(of name: String) -> Int? { Name(rawValue: name).flatMap { seen[$0] } }
    private var clients: ClientRule?
    private var isDryRun = false
    private var approval: (rule: ApprovalRule, column: Int)?

    mutating func read(_ word: SiteLineParser.Word) throws(Fault) {
        let halves = word.text.unicodeScalars.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            .map { String(Substring($0)) }
        guard let name = Name(rawValue: halves[0]) else {
            let names = Name.allCases.map(\.rawValue)
            let hint =
                halves.count == 1 && AuthenticationScheme(rawValue: halves[0]) != nil
                ? "write answer=\(halves[0])" : SpellingHint.text(for: halves[0], among: names)
            throw Fault(
                column: word.column, message: "unknown option \(PrintableText.quoteASCII(halves[0]))", hint: hint)
        }
        guard halves.count == 2, !halves[1].isEmpty else {
            throw Fault(
                column: word.column, message: "the option \(PrintableText.quoteASCII(name.rawValue)) has no value",
                hint: "write \(name.rawValue)=\(Self.example(name)) without white space")
        }
        guard seen.updateValue(word.column, forKey: name) == nil else {
            throw Fault(
                column: word.column, message: "the option \(PrintableText.quoteASCII(name.rawValue)) is given twice",
                hint: "keep one of them")
        }
        let value = Value(name: name, text: halves[1], column: word.column + name.rawValue.utf8.count + 1)
        switch name {
        case .answer:
            answer = try value.answers()
            answerColumn = word.column
        case .credential: credential = try value.storedName()
        case .identity: identity = try value.storedName()
        case .domain: domain = try value.domain()
        case .charset: charset = try value.charset()
        case .spn: servicePrincipalName = try value.servicePrincipalName()
        case .delegate: delegatesByPolicy = try value.policy()
        case .plaintext: plaintextColumn = try value.yesOrNo() ? word.column : nil
        case .preempt: preempts = try value.yesOrNo()
        case .intercept: intercepts = try value.yesOrNo()
        case .http2: speaksHTTP2 = try value.yesOrNo()
        case .revocation: revocation = try value.revocation()
        case .session: group = (try value.group(), word.column)
        case .cookies: cookies = (try value.cookies(), word.column)
        case .crossSite: crossSite = try Self.pages(in: value.text, at: value.column)
        case .inject: unchallenged.place = (try Self.place(in: value.text, at: value.column), word.column)
        case .placeholder:
            unchallenged.placeholder = (try Self.placeholder(in: value.text, at: value.column), word.column)
        case .redact: unchallenged.redactColumn = try value.yesOrNo() ? word.column : nil
        case .challenge: unchallenged.challengeColumn = try value.none() ? word.column : nil
        case .methods: limits.methods = try Self.methods(in: value.text, at: value.column)
        case .paths: (limits.paths, limits.exceptions) = try Self.paths(in: value.text, at: value.column)
        case .caseOfPaths: limits.ignoresCase = try value.ignoresCase()
        case .maximumBody: maximumBody = try value.byteCount()
        case .deny: limits.refusesOthers = try value.yesOrNo()
        case .clients: clients = try Self.clients(in: value.text, at: value.column)
        case .dryRun: isDryRun = try value.yesOrNo()
        case .approve: approval = try value.approval().map { ($0, word.column) }
        }
    }

    var hasSession: Bool { group != nil }

    /// Whether the line permits no answer but a client certificate.
    var permitsOnlyCertificates: Bool {
        answer.map { !$0.usesBroker && $0.schemes.allSatisfy { $0 == .certificate } } ?? true
    }

    /// Whether a word is `name=value` of an option that exists.
    static func isOption(_ word: String) -> Bool {
        word.contains("=") && Name(rawValue: String(word.prefix { $0 != "=" })) != nil
    }

    /// The scheme that the line permits, if it is one.
    var assumedScheme: AuthenticationScheme? {
        guard let answer, !answer.usesBroker, answer.schemes.count == 1 else { return nil }
        return answer.schemes[0]
    }

    /// The fault of the session's options together, once all words are read. `pattern` is nil if it is faulty itself.
    func sessionFault(at pattern: SitePattern?, _ publicSuffixes: PublicSuffixes) -> Fault? {
        guard let group else {
            return cookies.map {
                Fault(
                    column: $0.column, message: "cookies= has no effect without session=",
                    hint: "add session=GROUP, or remove the option")
            }
        }
        func fault(_ message: String, _ hint: String) -> Fault {
            Fault(column: group.column, message: message, hint: hint)
        }
        guard cookies != nil else {
            return fault("session= shares no cookie", "add cookies= with the names of the session's cookies")
        }
        guard intercepts else {
            return fault("session= has no effect with intercept=no", "remove one of the two options")
        }
        guard let pattern else { return nil }
        guard pattern.scheme == .https else {
            return fault("session= is for https only", "list the https:// site, or remove the option")
        }
        guard case .exact(let host) = pattern.host else {
            return fault("session= is for one host", "list that host on its own line")
        }
        // The hosts of a network without domains, such as `sso`, are single labels.
        if host.parent != nil, publicSuffixes.isPublicSuffix(host) {
            return fault("anybody can register names below \(host)", "list the host that sets the cookies")
        }
        return nil
    }

    /// The fault of an option that has no effect for a parent proxy, once all words are read.
    func proxyFault(at pattern: SitePattern) -> Fault? {
        guard pattern.scheme == .proxy else { return nil }
        let without: [Name] = [
            .identity, .intercept, .http2, .revocation, .crossSite, .inject, .placeholder, .redact, .challenge,
            .methods, .paths, .caseOfPaths, .maximumBody, .deny, .clients, .approve,
        ]
        for name in without {
            guard let column = seen[name] else { continue }
            return Fault(
                column: column, message: "\(name.rawValue)= has no effect for a parent proxy",
                hint: "remove the option")
        }
        guard let answer, answer.usesBroker || !answer.schemes.allSatisfy(SiteRule.proxySchemes.contains) else {
            return nil
        }
        return Fault(
            column: answerColumn, message: "a parent proxy is not answered with all of these schemes",
            hint: "choose among \(SiteRule.proxySchemes.map(\.rawValue).joined(separator: ", "))")
    }

    /// The fault of `approve=` with the options beside it.
    var approvalFault: Fault? {
        for name in [Name.approve, .dryRun, .maximumBody] where !intercepts {
            guard let column = seen[name] else { continue }
            return Fault(
                column: column, message: "\(name.rawValue)= has no effect with intercept=no",
                hint: "remove one of the two options")
        }
        guard let approval, let answer, answer.schemes.contains(.certificate) else { return nil }
        return Fault(
            column: approval.column,
            message: "a client certificate is shown before there is a request that could wait for approve=",
            hint: "leave certificate out of answer=, or remove approve=")
    }

    /// The fault of `answer=broker`, once all words are read. `pattern` is nil if it is faulty itself.
    func brokerFault(at pattern: SitePattern?) -> Fault? {
        guard answer?.usesBroker == true, let pattern else { return nil }
        guard SiteRule.brokerSites.contains(pattern.description) else {
            return Fault(
                column: answerColumn, message: "answer=broker is for Microsoft's sign-in pages only",
                hint: "list \(SiteRule.brokerSites.joined(separator: " or ")), or remove the word")
        }
        guard intercepts else {
            return Fault(
                column: answerColumn, message: "answer=broker has no effect with intercept=no",
                hint: "remove one of the two options")
        }
        return nil
    }

    func rule(file: String, line: Int, text: String, pattern: SitePattern) -> SiteRule {
        var rule = SiteRule(file: file, line: line, text: text, pattern: pattern)
        if let answer {
            rule.answer = answer.schemes
            rule.namesAnswer = true
            rule.usesBroker = answer.usesBroker
        } else if pattern.scheme == .proxy {
            rule.answer = SiteRule.proxySchemes
        }
        if let credential {
            rule.credential = credential
            rule.namesCredential = true
        }
        rule.identity = identity
        rule.domain = domain
        if let charset { rule.charset = charset }
        rule.servicePrincipalName = servicePrincipalName
        rule.delegatesByPolicy = delegatesByPolicy
        rule.answersPlaintext = plaintextColumn != nil
        rule.preempts = preempts
        rule.intercepts = intercepts
        rule.speaksHTTP2 = speaksHTTP2
        rule.revocation = revocation
        rule.crossSite = crossSite
        unchallenged.apply(to: &rule)
        if limits.isLimited { rule.limits = limits }
        rule.maximumBodyBytes = maximumBody?.bytes
        rule.clients = clients
        rule.isDryRun = isDryRun
        rule.approval = approval?.rule
        // A certificate goes out in the handshake, before any request is known.
        if approval != nil { rule.answer.removeAll { $0 == .certificate } }
        rule.refusesOtherClients = clients != nil && limits.refusesOthers
        if let group, let cookies { rule.session = SharedSessionRule(group: group.name, cookies: cookies.names) }
        return rule
    }

    private static func example(_ name: Name) -> String {
        switch name {
        case .answer: "basic"
        case .credential: "enrollment"
        case .identity: "NAME"
        case .domain: "ACME"
        case .charset: "latin1"
        case .spn: "HTTP/host"
        case .delegate: "policy"
        case .plaintext: "yes"
        case .preempt, .intercept, .http2: "no"
        case .revocation: "require"
        case .session: "corp"
        case .cookies: "NAME,NAME"
        case .crossSite: "https://app.corp.example"
        case .inject: "header:X-Api-Key:{secret}"
        case .placeholder: "no-key-needed"
        case .redact, .dryRun: "yes"
        case .approve: "ask"
        case .challenge: "none"
        case .methods: "GET,HEAD"
        case .paths: "/api/**"
        case .caseOfPaths: "ignore"
        case .maximumBody: "1M"
        case .deny: "yes"
        case .clients: "exe:/usr/bin/curl"
        }
    }
}
