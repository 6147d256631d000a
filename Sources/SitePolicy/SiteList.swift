// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignCryptography

/// The allowed-sites list: all files of `AllowedSites/`, parsed once. An origin is looked up by hash, first by its
/// host, then by each parent domain, so that the time does not depend on the length of the list.
package struct SiteList: Sendable {
    /// In the order of files and lines. Several are for one site if they are for different requests.
    package let rules: [SiteRule]
    /// The first line of each site.
    private let indexByPattern: [SitePattern: Int]
    /// The lines of the sites that have some for some requests only.
    private let requestRulesByPattern: [SitePattern: RequestRules]
    /// The lines of the sites whose lines are for different clients.
    private let dividedSites: [SitePattern: [SiteRule]]
    /// The lines about credentials, in the order of files and lines.
    package let credentialClients: [CredentialClients]
    private let hosts: Set<SitePattern.Host>
    private let hasWildcards: Bool
    /// Whether any line is for http.
    package let hasPlainSites: Bool
    /// Whether any line has `approve=`.
    package let hasApprovals: Bool
    /// The values of `for=`, also of the lines about credentials.
    package let clientRules: Set<ClientRule>
    /// What must be known about a client to decide them; nil without any.
    package let clientNeeds: ClientNeeds?

    /// The reason of a verdict if there are no rules.
    private var reasonIfEmpty = Self.noneListed

    /// A list without sites: no challenge is answered.
    package static let empty = SiteList(unique: [])

    /// The same, with `reason` for its verdicts.
    package static func empty(because reason: Refusal) -> SiteList {
        var list = empty
        list.reasonIfEmpty = reason
        return list
    }

    /// Parses all files. Errors and ``SiteRule/location`` refer to a file by its `name`.
    package init(
        files: [(name: String, text: String)], publicSuffixes: PublicSuffixes = .builtIn
    ) throws(SiteListError) {
        struct Users: Hashable {
            let requests: RequestLimits.Requests?
            let clients: ClientRule?
        }
        var rules: [SiteRule] = []
        var firsts: [SitePattern: SiteRule] = [:]
        var listed: [SitePattern: [Users: SiteRule]] = [:]
        var credentials: [CredentialClients] = []
        var problems: [SiteListError.Problem] = []
        for file in files {
            for line in SiteListText.lines(of: file.text) {
                var parser = SiteLineParser(file: file.name, line: line, publicSuffixes: publicSuffixes)
                if let rule = parser.parse() {
                    let first = firsts[rule.pattern]
                    let users = Users(requests: rule.limits?.requests, clients: rule.clients)
                    if let same = listed[rule.pattern]?[users] {
                        parser.reportDuplicate(of: same)
                    } else if let first, let option = rule.connectionOption(differingFrom: first) {
                        parser.reportDifference(of: option, from: first)
                    } else {
                        if first == nil { firsts[rule.pattern] = rule }
                        listed[rule.pattern, default: [:]][users] = rule
                        rules.append(rule)
                    }
                } else if let credential = parser.credentialClients {
                    if let same = credentials.first(where: { $0.name == credential.name }) {
                        parser.reportDuplicate(of: same)
                    } else {
                        credentials.append(credential)
                    }
                }
                problems += parser.problems
            }
        }
        guard problems.isEmpty else { throw SiteListError(problems: problems) }
        self.init(unique: rules, credentials)
    }

    /// The same list, with a line for each of the `origins` that it does not have, or that it has for some clients
    /// only: they are intercepted, and their challenges are not answered. An origin that cannot be listed is ignored.
    package func observing(_ origins: [Origin]) -> SiteList {
        let lines = origins.filter { $0.scheme == .https && isTunnelled($0) }.map { "\($0) answer=none\n" }
        let added = Set(lines).sorted().flatMap { line in
            (try? SiteList(files: [("the sign-in's hosts", line)], publicSuffixes: .none))?.rules ?? []
        }
        return SiteList(unique: rules + added, credentialClients)
    }

    /// The same list, of which no line answers: what would have been answered is only decided.
    package var dryRun: SiteList {
        SiteList(
            unique: rules.map { rule in
                var rule = rule
                rule.isDryRun = true
                return rule
            }, credentialClients)
    }

    /// Whether a client that is not known gets a tunnel, and no line says that all do.
    private func isTunnelled(_ origin: Origin) -> Bool {
        guard case .tunnel = verdict(for: origin) else { return false }
        return rule(for: origin)?.intercepts != false
    }

    private init(unique listed: [SiteRule], _ credentials: [CredentialClients] = []) {
        let rules = Self.completed(listed, credentials)
        self.rules = rules
        credentialClients = credentials
        var indexByPattern: [SitePattern: Int] = [:]
        var limited: Set<SitePattern> = []
        var divided: Set<SitePattern> = []
        for (index, rule) in rules.enumerated() {
            let first = indexByPattern[rule.pattern].map { rules[$0] }
            if first == nil { indexByPattern[rule.pattern] = index }
            if rule.limits != nil { limited.insert(rule.pattern) }
            if let first, first.clients != rule.clients || first.credentialClients != rule.credentialClients {
                divided.insert(rule.pattern)
            }
        }
        self.indexByPattern = indexByPattern
        dividedSites =
            divided.isEmpty
            ? [:] : Dictionary(grouping: rules.filter { divided.contains($0.pattern) }, by: \.pattern)
        requestRulesByPattern =
            limited.isEmpty
            ? [:]
            : Dictionary(grouping: rules.filter { limited.contains($0.pattern) }, by: \.pattern)
                .mapValues { RequestRules($0) }
        hosts = Set(rules.map(\.pattern.host))
        hasPlainSites = rules.contains { $0.pattern.scheme == .http }
        hasApprovals = rules.contains { $0.approval != nil }
        clientRules = Set(rules.compactMap(\.clients) + credentials.map(\.clients))
        clientNeeds = ClientNeeds(clientRules)
        hasWildcards = hosts.contains { if case .subdomains = $0 { true } else { false } }
    }

    /// The lines with what the others say about them.
    private static func completed(_ rules: [SiteRule], _ credentials: [CredentialClients]) -> [SiteRule] {
        let lineCounts = Dictionary(rules.map { ($0.pattern, 1) }, uniquingKeysWith: +)
        let clients = Dictionary(credentials.map { ($0.name, $0) }) { first, _ in first }
        let refusing = Set(rules.filter(\.refusesOtherClients).map(\.pattern))
        var ordinals: [SitePattern: Int] = [:]
        return rules.map { rule in
            var rule = rule
            if lineCounts[rule.pattern] ?? 1 > 1 || rule.limits != nil {
                ordinals[rule.pattern, default: 0] += 1
                rule.ordinal = ordinals[rule.pattern] ?? 0
            }
            rule.credentialClients = rule.intercepts ? clients[rule.credential] : nil
            rule.refusesOtherClients = refusing.contains(rule.pattern)
            return rule
        }
    }

    /// The lines of the site that ``rule(for:)`` returns the first of, if some of them are for some requests only:
    /// those that are for `client`.
    package func requestRules(for origin: Origin, client: Client) -> RequestRules? {
        guard !requestRulesByPattern.isEmpty, let pattern = rule(for: origin)?.pattern else { return nil }
        guard let lines = dividedSites[pattern] else { return requestRulesByPattern[pattern] }
        let own = lines.filter { refusal(of: client, by: $0) == nil }
        return own.contains { $0.limits != nil } ? RequestRules(own) : nil
    }

    /// How to handle `request`. Nil if method and path are not known: a line for some requests only does not answer it.
    package func verdict(for origin: Origin, request: SiteRequest?, client: Client = .unknown) -> SiteVerdict {
        let verdict = verdict(for: origin, client: client)
        guard case .answer = verdict, let lines = requestRules(for: origin, client: client) else { return verdict }
        return lines.verdict(of: lines.decision(on: request))
    }

    /// The rule that applies to connections to an origin, the first one of its site: an exact host takes precedence
    /// over a wildcard, a longer wildcard over a shorter one. Nil if no rule applies, or if the origin's host could not
    /// be listed.
    ///
    /// The other lines of the site differ from it in everything that is about requests and clients, such as the
    /// credential: see ``rules(for:)`` and ``line(for:request:)``.
    package func rule(for origin: Origin) -> SiteRule? {
        guard let host = try? HostName(canonicalizing: origin.host), host.text == origin.host else { return nil }
        return match(for: origin, host)
    }

    /// All lines of the site that ``rule(for:)`` returns the first of, in the order of the list.
    package func rules(for origin: Origin) -> [SiteRule] {
        guard let first = rule(for: origin) else { return [] }
        return dividedSites[first.pattern] ?? requestRulesByPattern[first.pattern]?.rules ?? [first]
    }

    /// The line that a report about a request names: the one that answers it, or the first of the site without one.
    package func line(for origin: Origin, request: SiteRequest?) -> SiteRule? {
        if case .answer(let rule) = verdict(for: origin, request: request) { return rule }
        return rule(for: origin)
    }

    /// The reason of a verdict if the list has no sites.
    package static let noneListed = Refusal(.notListed, "no site is listed")

    /// Whether no site is answered because none is listed, and for no other reason.
    package var isReallyEmpty: Bool { rules.isEmpty && reasonIfEmpty.cause == .notListed }

    /// How to handle a connection to an origin. For its requests see ``verdict(for:request:)``.
    package func verdict(for origin: Origin, client: Client = .unknown) -> SiteVerdict {
        guard !rules.isEmpty else { return .tunnel(reason: reasonIfEmpty) }
        let forwarded: HostName
        do {
            forwarded = try HostName(canonicalizing: origin.host, for: .forwarded)
        } catch {
            return .refuse(reason: Refusal(error.detail))
        }
        guard forwarded.text == origin.host else {
            return .refuse(
                reason: "the host \(PrintableText.quoteASCII(origin.host)) is not in its canonical form")
        }
        guard var rule = match(for: origin, forwarded) else {
            return .tunnel(reason: missReason(origin, forwarded))
        }
        guard rule.intercepts else {
            return .tunnel(reason: Refusal(.notIntercepted, "\(rule.location) says intercept=no"))
        }
        if let refusal = refusal(of: client, by: rule) {
            guard let own = dividedSites[rule.pattern]?.first(where: { self.refusal(of: client, by: $0) == nil }) else {
                return rule.refusesOtherClients ? .refuse(reason: refusal) : .tunnel(reason: refusal)
            }
            rule = own
        }
        do {
            _ = try HostName(canonicalizing: origin.host, for: .listed)
            return .answer(rule)
        } catch {
            return .refuse(reason: "\(error.detail), which \(rule.location) does not cover")
        }
    }

    private func match(for origin: Origin, _ host: HostName) -> SiteRule? {
        func rule(_ pattern: SitePattern.Host) -> SiteRule? {
            let key = SitePattern(scheme: origin.scheme, host: pattern, port: origin.port)
            return indexByPattern[key].map { rules[$0] }
        }
        if let exact = rule(.exact(host)) { return exact }
        guard hasWildcards else { return nil }
        var parent = host.parent
        while let name = parent {
            if let below = rule(.subdomains(of: name)) { return below }
            parent = name.parent
        }
        return nil
    }

    private func missReason(_ origin: Origin, _ host: HostName) -> Refusal {
        let other: Origin.Scheme = origin.scheme == .http ? .https : .http
        if match(for: Origin(scheme: other, host: host), host) != nil {
            return other == .http ? Self.listedForHTTP : Self.listedForHTTPS
        }
        return hosts.contains(.exact(host)) ? Self.listedOtherwise : .unlisted
    }

    // Constants, so that a request to a site that is not listed allocates nothing for them.
    private static let listedForHTTP = Refusal(.notListed, "listed for http only")
    private static let listedForHTTPS = Refusal(.notListed, "listed for https only")
    private static let listedOtherwise = Refusal(.notListed, "not on the list with this scheme and port")

    /// Remarks about the requests and clients that the lines are for, in the order of the list: about `line` only,
    /// unless it is nil.
    func matchRemarks(on line: SiteRule? = nil) -> [SiteRemark] {
        var seen: Set<SitePattern> = []
        let sites = line.map { [$0.pattern] } ?? rules.map(\.pattern).filter { seen.insert($0).inserted }
        return sites.flatMap { site -> [SiteRemark] in
            let limited = requestRulesByPattern[site]
            guard let lines = dividedSites[site] ?? limited?.rules else { return [] }
            let shadowed = Dictionary(ShadowedLines(lines).found.map { ($0.line.location, $0.other) }) { first, _ in
                first
            }
            return lines.filter { line == nil || $0 == line }.flatMap { rule -> [SiteRemark] in
                let own = limited?.remarks(on: rule) ?? []
                guard own.isEmpty, let other = shadowed[rule.location] else { return own }
                return [
                    SiteRemark(
                        message: "\(rule.location): no request gets to this line: \(other.location) comes first",
                        hint: "remove one of the two lines, or name fewer methods, paths or clients in the other; of "
                            + "lines for the same requests, the first counts")
                ]
            }
        }
    }

    // MARK: Intercepted hosts

    /// The names of the sites whose TLS the proxy terminates, for X.509 name constraints: each once, in the order of
    /// the list.
    package var interceptedNames: [(name: String, includesSubdomains: Bool)] {
        interceptedHosts.filter { $0.name.kind == .name }.map { host in
            if case .subdomains = host { (host.name.text, true) } else { (host.name.text, false) }
        }
    }

    /// The addresses of the sites whose TLS the proxy terminates: each once, in the order of the list.
    package var interceptedAddresses: [HostName] {
        interceptedHosts.map(\.name).filter { $0.kind != .name }
    }

    private var interceptedHosts: [SitePattern.Host] {
        var seen: Set<SitePattern.Host> = []
        return rules.filter { $0.intercepts && $0.pattern.scheme == .https }.map(\.pattern.host)
            .filter { seen.insert($0).inserted }
    }
}
