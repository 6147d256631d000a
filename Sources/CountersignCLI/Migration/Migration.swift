// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignChallenges
import CountersignCryptography
import CountersignHome
import CountersignReporting
import CountersignSitePolicy

/// One run of `countersign migrate`: the plan, carried out in a home.
struct Migration {
    let plan: MigrationPlan
    let home: Home
    /// As on the command line, or `standard input`.
    let file: String
    /// Whether it is standard input.
    let isInput: Bool
    let replaces: Bool

    private static let sitesFile = "parents"

    private var environment: ServeEnvironment { ServeEnvironment(options: plan.options) }
    private var environmentText: String {
        environment.text(
            origin: "taken over from \(isInput ? file : HomeFile.absolutePath(file) ?? file)", home: home)
    }

    /// Throws if a file of the home does not permit it, before anything is written.
    func check() throws {
        _ = try home.sites()
        let target = ServeEnvironment.file(of: home)
        guard !replaces, let present = try target.readIfThere(upTo: 1 << 20), present != Array(environmentText.utf8)
        else { return }
        throw CountersignError(
            .nameInUse, "\(target.path) is there already, with other contents; nothing was written",
            hint:
                "compare it with `countersign migrate --dry-run --replace \(ShellWord.quoted(file))`, and pass --replace"
        )
    }

    /// The lines to add, and those that are not needed because a site is listed.
    private func siteLines() throws -> (new: [String], listed: [SiteRule]) {
        let rules = try home.sites().rules
        var new: [String] = []
        var listed: [SiteRule] = []
        for line in plan.siteLines {
            if let rule = rules.first(where: { $0.pattern.description == line.prefix { $0 != " " } }) {
                listed.append(rule)
            } else {
                new.append(line)
            }
        }
        return (new, listed)
    }

    /// Writes the files, and the password if `input` is given. Returns a line for each change.
    func perform(_ input: SecretInput?) throws -> [String] {
        let credential = try input.map(storePassword) ?? nil
        var done: [String] = []
        for line in try siteLines().new {
            let added = try SiteFiles(home: home).add(line, to: Self.sitesFile)
            done.append("\(added.location): \(line)")
        }
        if !plan.options.isEmpty {
            let target = ServeEnvironment.file(of: home)
            try target.replace(with: Array(environmentText.utf8))
            done.append("\(target.path): written")
        }
        return done + [credential].compactMap(\.self)
    }

    private func storePassword(_ input: SecretInput) throws -> String? {
        guard let password = plan.password, let user = plan.credentialUser else { return nil }
        let name = MigrationPlan.credential
        let session = try VaultAccess(home: home, secrets: input).session(creates: true)
        let present = try session.perform(ListCredentials()).first { $0.name == name }
        guard replaces || present == nil else {
            throw CountersignError(
                .nameInUse, "there is a credential \"\(name)\" already; nothing was written",
                hint: "pass --replace, or answer no to keep it")
        }
        let blocked = try session.perform(SetCredential(name: name, user: user), secret: Secret(password.value))
        if let blocked {
            Console.warning(
                "this user name and password are blocked: \(blocked.sentence)",
                hint: Remedy.permitRetry(name: name).sentence)
        }
        return "credential \"\(name)\" stored for \(user)"
    }

    // MARK: What is shown

    func showFindings(takesPassword: Bool) {
        let rows = findings(takesPassword: takesPassword).map { finding in
            ["\(file):\(finding.line)", finding.key, finding.isTaken ? "taken" : "left", finding.text]
        }
        if !rows.isEmpty { Console.result(TextTable(rows: rows.map { $0.map(PrintableText.longer) }).text) }
        if plan.options.contains(where: { $0.value == "system" }) {
            Console.result("\(file) names no parent: taken as system, the desktop's settings\n")
        }
    }

    private func findings(takesPassword: Bool) -> [MigrationPlan.Finding] {
        let password = plan.password.map { password in
            MigrationPlan.Finding(
                line: password.line, key: plan.product == .alpaca ? "BASIC_CREDENTIALS" : "Password",
                isTaken: takesPassword,
                text: takesPassword ? "password, into the vault" : "a password, for the vault only if you say so")
        }
        return (plan.findings + [password].compactMap(\.self)).enumerated().sorted { left, right in
            (left.element.line, left.offset) < (right.element.line, right.offset)
        }.map(\.element)
    }

    func show(isDone: Bool, _ done: [String]) {
        Console.result("\n")
        if isDone {
            for line in done { Console.result("\(line)\n") }
        } else {
            for line in (try? siteLines().new) ?? [] {
                Console.result("AllowedSites/\(Self.sitesFile).sites: would get: \(line)\n")
            }
            if !plan.options.isEmpty { Console.result("\(ServeEnvironment.file(of: home).path): would be written\n") }
        }
        for rule in (try? siteLines().listed) ?? [] where !isDone || !done.contains("\(rule.location): \(rule.text)") {
            Console.result("\(rule.location): already listed: \(rule.text)\n")
        }
        for assignment in environment.assignments { Console.result("  \(assignment)\n") }
        let command = PrintedCommand.complete("`\(environment.command)`").dropFirst().dropLast()
        Console.result("\nthe same by hand: \(command)\n")
    }

    /// The steps that are left to the person, on standard error.
    func advise(isDone: Bool, takesPassword: Bool) {
        guard isDone else { return }
        if let user = plan.credentialUser, !takesPassword, plan.answer != ["negotiate"] {
            Console.log(
                "hint",
                "store the password: `countersign credential set \(MigrationPlan.credential) --user "
                    + "\(ShellWord.quoted(user))`")
        }
        if takesPassword, let line = plan.password?.line {
            Console.log("hint", "the password is still in \(file):\(line); remove it there")
        }
        if plan.proxies.isEmpty {
            let words = [
                plan.answer.isEmpty ? nil : "answer=\(plan.answer.joined(separator: ","))",
                plan.hasCredential ? "credential=\(MigrationPlan.credential)" : nil,
                plan.answer == ["negotiate"] ? nil : "plaintext=yes",
            ]
            let options = words.compactMap(\.self).joined(separator: " ")
            Console.log(
                "hint",
                "a script or the desktop names the parents: `countersign route URL` prints them. List each that demands "
                    + "a password: `countersign sites add proxy://HOST:PORT \(options)`")
        }
        if let address = plan.listen {
            Console.log(
                "hint",
                "with countersign.socket, the address \(address) belongs into that unit (ListenStream=): remove "
                    + "COUNTERSIGN_LISTEN from serve.env, or the service does not start")
        }
        Console.log(
            "hint", "stop \(plan.product.rawValue) before you start `countersign serve`, if it has the same port")
    }

    // MARK: JSON

    struct Report: Encodable {
        struct Line: Encodable {
            let line: Int
            let key: String
            let taken: Bool
            let text: String
        }

        let product: ForeignProduct
        let done: Bool
        let lines: [Line]
        let environment: [String: String]
        let sites: [String]
        let credential: String?
        let user: String?
        let passwordTaken: Bool
        let command: String
    }

    func report(isDone: Bool, takesPassword: Bool) -> Report {
        Report(
            product: plan.product, done: isDone,
            lines: findings(takesPassword: takesPassword).map {
                Report.Line(line: $0.line, key: $0.key, taken: $0.isTaken, text: $0.text)
            },
            environment: Dictionary(
                uniqueKeysWithValues: plan.options.map { (ServeEnvironment.variable($0.name), $0.value) }),
            sites: plan.siteLines, credential: plan.hasCredential ? MigrationPlan.credential : nil,
            user: plan.credentialUser, passwordTaken: takesPassword, command: environment.command)
    }
}
