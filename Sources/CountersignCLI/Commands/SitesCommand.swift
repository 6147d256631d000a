// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignAddresses
import CountersignChallenges
import CountersignCryptography
import CountersignHome
import CountersignSitePolicy

/// `countersign sites`.
struct SitesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sites",
        abstract: "Show or change the allowed-sites list.",
        subcommands: [List.self, Check.self, Add.self, Remove.self])

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the allowed sites: site, options, file and line.",
            discussion: """
                For scripts, use --json.

                EXAMPLES:
                  countersign sites list
                  countersign sites list --json | jq -r '.[].site'
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var output: ListOptions

        func run() throws {
            let home = try homeOption.located()
            let list = try home.sites()
            let rules = list.rules
            if output.json {
                try Console.result(json: rules.map(ListedSite.init))
            } else {
                output.show(
                    ["SITE", "OPTIONS", "LINE"],
                    rules.map { [$0.pattern.description, $0.options, $0.location] }
                        + list.credentialClients.map { ["credential:\($0.name)", "for=\($0.clients)", $0.location] })
            }
            if rules.isEmpty, !output.json { SiteReports.noneListed(in: home) }
            SiteReports.write(home.ignoredSiteFiles)
        }
    }

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "check",
            abstract: "Check whether a URL's site is listed: exit status 0 if it is, 1 if not.",
            discussion: """
                With a method, checks whether challenges of that request may be answered, and by which line: a site may \
                have several lines, for different methods and paths. Sends nothing.

                EXAMPLES:
                  countersign sites check https://git.corp.example/tools.git
                  countersign sites check POST https://git.corp.example/api/v1/users
                  countersign sites check --client exe:/usr/bin/git https://git.corp.example/
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var output: JSONOption
        @OptionGroup var client: ClientOption
        @Argument(
            help: ArgumentHelp("A URL, or a method and a URL; https:// may be left out.", valueName: "request"))
        var request: [String]

        func validate() throws {
            guard request.count <= 2 else { throw ValidationError("write a URL, or a method and a URL") }
        }

        func run() throws {
            let url = try AbsoluteURL(parsing: request[request.count - 1], defaultScheme: .https)
            let sites = try homeOption.located().sites()
            let checked = CheckedSite(
                url, method: request.count == 2 ? request[0] : nil, in: sites,
                for: try ClientOption.client(client.client, in: sites))
            if output.json { try Console.result(json: checked) } else { Console.result(checked.text) }
            if !checked.isListed { throw ExitCode.failure }
        }
    }

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "add",
            abstract: "Add a site to the list.",
            discussion: """
                The arguments form the line: the site, then its options. A line that would make the list invalid is \
                not written. A warning says if the line has no effect yet, for example without its credential.

                EXAMPLES:
                  countersign sites add https://git.corp.example:8443 answer=basic
                  countersign sites add --file work '*.corp.example' domain=ACME
                  countersign sites add credential:deploy for=unit:backup.service
                """)

        @OptionGroup var homeOption: HomeOption

        @Option(
            help: ArgumentHelp(
                "Add the line to AllowedSites/NAME.sites.", valueName: "name"))
        var file = "local"

        @Argument(help: ArgumentHelp("The site and its options.", valueName: "line"))
        var line: [String]

        func validate() throws {
            guard !line.contains(where: { $0.contains(where: \.isNewline) }) else {
                throw ValidationError("the line must not contain line breaks")
            }
        }

        func run() throws {
            let home = try homeOption.locatedOrNew()
            let text = SitesCommand.withoutSlash(line.joined(separator: " "))
            let added = try SiteFiles(home: home).add(text, to: file)
            Console.result("\(added.location): \(text)\n")
            let server = VaultAccess(home: home, secrets: SecretInput(isStandardInput: false)).server
            SiteReports.write(try home.remarks(on: added, server: server))
        }
    }

    /// The line without the slash after its site, which a URL from a browser has.
    private static func withoutSlash(_ line: String) -> String {
        let end = line.firstIndex(of: " ") ?? line.endIndex
        let site = line[..<end]
        guard site.hasSuffix("/"), !site.hasSuffix("//") else { return line }
        return String(site.dropLast() + line[end...])
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove",
            abstract: "Remove a site from the list.",
            discussion: """
                EXAMPLES:
                  countersign sites remove https://git.corp.example:8443
                  countersign sites remove '*.sharepoint.corp.example'
                """)

        @OptionGroup var homeOption: HomeOption
        @Argument(
            help: ArgumentHelp("The site, or credential:NAME, as it is listed, without options.", valueName: "site"))
        var site: String

        func run() throws {
            let subject = try SiteListText.Subject(parsing: SitesCommand.withoutSlash(site))
            let files = try SiteFiles(home: try homeOption.located()).remove(subject)
            Console.result(files.map { "\($0): \(subject) removed\n" }.joined())
        }
    }
}

/// One rule as JSON.
private struct ListedSite: Encodable {
    let site: String
    let location: String
    let answer: [String]
    let credential: String
    let identity: String?
    let domain: String?
    let charset: String
    let spn: String?
    let delegate: String?
    let plaintext: Bool
    let preempt: Bool
    let intercept: Bool
    let http2: Bool
    let revocation: String
    let crossSite: [String]?
    let methods: [String]?
    let paths: [String]?
    let caseOfPaths: String?
    let maximumBody: Int?
    let deny: Bool?
    let clients: String?
    let credentialClients: String?
    let inject: String?
    let placeholder: String?
    let redact: Bool?
    let challenge: String?
    let session: String?
    let cookies: [String]?
    let dryRun: Bool?
    let approve: String?

    private enum CodingKeys: String, CodingKey {
        case site, location, answer, credential, identity, domain, charset, spn, delegate, plaintext, preempt,
            intercept, http2, revocation, methods, paths, deny, inject, placeholder, redact, challenge, session,
            cookies,
            approve
        case crossSite = "cross-site"
        case caseOfPaths = "case"
        case maximumBody = "max-body"
        case clients = "for"
        case credentialClients = "credential-for"
        case dryRun = "dry-run"
    }

    init(_ rule: SiteRule) {
        site = rule.pattern.description
        location = rule.location
        answer = rule.answerWords
        credential = rule.credential
        identity = rule.identity
        domain = rule.domain
        charset = rule.charset.rawValue
        spn = rule.servicePrincipalName
        delegate = rule.delegatesByPolicy ? "policy" : nil
        plaintext = rule.answersPlaintext
        preempt = rule.preempts
        intercept = rule.intercepts
        http2 = rule.speaksHTTP2
        revocation = rule.revocation.rawValue
        crossSite = rule.crossSite.isEmpty ? nil : rule.crossSite.map(\.description)
        methods = rule.limits.flatMap { $0.methods.isEmpty ? nil : $0.methods }
        paths = rule.limits.flatMap { $0.comparesPaths ? $0.pathsText.split(separator: ",").map(String.init) : nil }
        caseOfPaths = rule.limits?.ignoresCase == true ? "ignore" : nil
        maximumBody = rule.maximumBodyBytes
        deny = rule.limits?.refusesOthers ?? (rule.clients == nil ? nil : rule.refusesOtherClients)
        clients = rule.clients?.description
        credentialClients = rule.credentialClients?.clients.description
        inject = rule.injection?.placeText
        placeholder = rule.injection?.placeholder
        redact = rule.injection?.isRedacted == true ? true : nil
        challenge = rule.assumesChallenge ? "none" : nil
        session = rule.session?.group
        cookies = rule.session?.cookies
        dryRun = rule.isDryRun ? true : nil
        approve = rule.approval?.rawValue
    }
}

extension SiteRule {
    /// The options that differ from their defaults, in the syntax of the list.
    var options: String {
        var words: [String] = []
        if answer != AuthenticationScheme.usual || usesBroker { words.append("answer=\(answerText)") }
        if credential != "enrollment" { words.append("credential=\(credential)") }
        if let identity { words.append("identity=\(identity)") }
        if let domain { words.append("domain=\(domain)") }
        if charset != .utf8 { words.append("charset=\(charset.rawValue)") }
        if let servicePrincipalName { words.append("spn=\(servicePrincipalName)") }
        if delegatesByPolicy { words.append("delegate=policy") }
        if answersPlaintext { words.append("plaintext=yes") }
        if !preempts { words.append("preempt=no") }
        if !intercepts { words.append("intercept=no") }
        if !speaksHTTP2 { words.append("http2=no") }
        if revocation != .soft { words.append("revocation=\(revocation.rawValue)") }
        if !crossSite.isEmpty { words.append("cross-site=\(crossSite.map(\.description).joined(separator: ","))") }
        if let limits { words += limits.words }
        if let maximumBodyBytes { words.append("max-body=\(ByteCount(bytes: maximumBodyBytes).text)") }
        if let clients {
            words.append("for=\(clients)")
            if refusesOtherClients, limits == nil { words.append("deny=yes") }
        }
        if let session {
            words += ["session=\(session.group)", "cookies=\(session.cookies.joined(separator: ","))"]
        }
        if let injection { words += injection.words }
        if assumesChallenge { words.append("challenge=none") }
        if isDryRun { words.append("dry-run=yes") }
        if let approval { words.append("approve=\(approval.rawValue)") }
        return words.joined(separator: " ")
    }
}
