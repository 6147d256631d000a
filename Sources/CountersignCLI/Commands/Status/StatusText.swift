// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignChallenges
import CountersignCryptography
import CountersignReporting
import CountersignSitePolicy
import CountersignVault

/// A ``HomeStatus`` as text for one screen.
struct StatusText {
    let status: HomeStatus
    /// The most columns of a line, apart from commands and tables.
    var columns = 100

    init(_ status: HomeStatus) { self.status = status }

    /// The sections, with an empty line between them. Each line ends in a line break.
    var text: String {
        var sections = [summary, problems]
        let endings = status.nearEndings
        if !endings.isEmpty {
            sections.append(
                "Ends within 30 days:\n"
                    + endings.map { item($0.sentence(at: status.now), [$0.advice]) }.joined())
        }
        if let contents = status.contents {
            sections +=
                SignInTables(
                    signIns: contents.signIns, profiles: contents.profiles, now: status.now, columns: columns
                ).texts
        }
        return sections.joined(separator: "\n")
    }

    private var problems: String {
        let problems = status.problems
        if problems.isEmpty { return "Nothing needs your attention.\n" }
        return
            (problems.count == 1
            ? "1 thing needs your attention:\n" : "\(problems.count) things need your attention:\n")
            + problems.map { item($0.message, $0.advice) }.joined()
    }

    /// A sentence, and below it what helps. Commands are not broken, so that they can be copied.
    private func item(_ message: String, _ advice: [String]) -> String {
        let indent = String(repeating: " ", count: 6)
        let lines = advice.flatMap { advice in
            advice.contains("`")
                ? [indent + Console.printable(PrintedCommand.complete(advice))]
                : wrapped(advice, first: indent, rest: indent)
        }
        return (wrapped(message, first: "  ", rest: "    ") + lines).map { "\($0)\n" }.joined()
    }

    // MARK: Summary

    private static let labelColumns = 13

    private var summary: String {
        rows.map { label, value in
            let label = label + String(repeating: " ", count: Self.labelColumns - label.count)
            let rest = String(repeating: " ", count: Self.labelColumns)
            return wrapped(PrintedCommand.complete(value), first: label, rest: rest).map { "\($0)\n" }.joined()
        }.joined()
    }

    private var rows: [(label: String, value: String)] {
        var rows = [("home", status.path + (status.isThere ? "" : " (does not exist yet)"))]
        rows += proxyRows.map { ("proxy", $0) }
        rows.append(("vault", vault))
        rows.append(("sites", sites))
        for index in rows.indices.dropFirst() where rows[index].0 == rows[index - 1].0 && rows[index].0 == "proxy" {
            rows[index].0 = ""
        }
        if let credentials { rows.append(("credentials", credentials)) }
        if let identities { rows.append(("identities", identities)) }
        if let signIns { rows.append(("sign-ins", signIns)) }
        if let ticket = status.ticket {
            let left = Day.left(until: status.now + ticket.remainingSeconds, now: status.now)
            rows.append(("ticket", "Kerberos, \(ticket.principal), \(left)"))
        }
        return rows.map { ($0.0, $0.1) }
    }

    private var proxyRows: [String] {
        switch status.server {
        case .none: return ["not running; `countersign serve` starts it"]
        case .unreachable: return ["does not answer"]
        case .running(let reply):
            let addresses = reply.addresses.map { "listening on \($0.joined(separator: ", "))" } ?? "running"
            var process = "process \(reply.processIdentifier)"
            if let since = reply.since { process += " since \(WallClock.rfc3339(since))" }
            if let version = reply.version {
                process += ", version "
                // A commit matters only if it is another one.
                process +=
                    version == status.version
                    ? String(version.prefix { $0 != " " }) : "\(version); this command is \(status.version)"
            }
            return [addresses, process]
        }
    }

    private var vault: String {
        let state =
            switch status.vault {
            case .none: "none yet"
            case .open where status.isLockedInServer: "locked in the proxy"
            case .open(.file): "open, with its key file"
            case .open(.passphrase): "open, with a passphrase"
            case .locked: "locked"
            case .closed(inServer: true): "open in the proxy, with a passphrase"
            case .closed(inServer: false): "closed, with a passphrase"
            case .faulty: "cannot be opened"
            }
        return state + (status.isPaused ? "; answering is paused" : "")
    }

    private var sites: String {
        guard case .listed(let rules, _) = status.sites else { return "the list has errors" }
        if rules.isEmpty { return "none listed; `countersign sites add https://git.corp.example` lists one" }
        let kinds = SiteKinds(rules).counts.map { "\($0.count) \($0.kind)" }.joined(separator: ", ")
        return "\(rules.count) \(rules.count == 1 ? "line" : "lines"): \(kinds)"
    }

    /// Without the tokens of sign-ins.
    private var credentials: String? {
        guard let contents = status.contents else { return nil }
        let signIns = Set(contents.signIns.map(\.name))
        let own = contents.credentials.filter { !signIns.contains($0.name) }
        guard own.isEmpty else { return Self.some(own.map { "\($0.name) (\($0.user ?? $0.kind.rawValue))" }) }
        guard signIns.isEmpty, contents.renewals.isEmpty else { return nil }
        return "none; `countersign credential set --user USER` stores a password"
    }

    private var identities: String? {
        guard let contents = status.contents else { return nil }
        let known = contents.renewals.compactMap { state in
            state.notAfter.map { "\(state.name) (\(validity(until: $0)))" }
        }
        let requested = (contents.identities?.pending ?? []).map { "\($0.name) (requested)" }
        return known.isEmpty && requested.isEmpty ? nil : Self.some(known + requested)
    }

    /// A date, or the time that is left if that is less than 90 days.
    private func validity(until time: Int64) -> String {
        time - status.now > 90 * Day.seconds ? "until \(Day.text(time))" : Day.left(until: time, now: status.now)
    }

    private var signIns: String? {
        guard let signIns = status.contents?.signIns, !signIns.isEmpty else { return nil }
        return Self.some(
            signIns.map { $0.account.isEmpty ? $0.name : "\($0.name) (\($0.account))" })
    }

    /// The first eight.
    private static func some(_ texts: [String]) -> String {
        guard texts.count > 8 else { return texts.joined(separator: ", ") }
        return texts.prefix(7).joined(separator: ", ") + " and \(texts.count - 7) more"
    }

    // MARK: Lines

    /// The lines of a paragraph, broken at spaces. A longer word is not broken.
    private func wrapped(_ text: String, first: String, rest: String) -> [String] {
        var lines: [String] = []
        var line = first
        var isEmpty = true
        for word in Console.printable(text).split(separator: " ") {
            if !isEmpty, line.count + 1 + word.count > columns {
                lines.append(line)
                (line, isEmpty) = (rest, true)
            }
            line += (isEmpty ? "" : " ") + word
            isEmpty = false
        }
        return lines + [line]
    }
}

/// The lines of the list by the schemes that they permit.
struct SiteKinds {
    /// The most frequent first. `kind` is `any scheme`, the value of `answer=`, or `tunnelled` for `intercept=no`.
    let counts: [(kind: String, count: Int)]

    init(_ rules: [SiteRule]) {
        let kinds = rules.map { rule in
            if !rule.intercepts { return "tunnelled" }
            return rule.answer == AuthenticationScheme.usual && !rule.usesBroker ? "any scheme" : rule.answerText
        }
        counts = Dictionary(kinds.map { ($0, 1) }, uniquingKeysWith: +).map { (kind: $0.key, count: $0.value) }
            .sorted { ($1.count, $0.kind) < ($0.count, $1.kind) }
    }
}
