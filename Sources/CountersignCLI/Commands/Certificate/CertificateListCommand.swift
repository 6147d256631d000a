// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCertificates
import CountersignHome
import CountersignVault

/// `countersign certificate list`.
struct CertificateListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the client identities: name, subject, issuer, days left, sites.",
        discussion: """
            Below them, lists the certificates about which an EST server has not yet decided: name, requested subject, \
            server, since when, and the time of the next request. In JSON, these have the field `pending`.

            EXAMPLES:
              countersign certificate list
              countersign certificate list --json | jq -r '.[] | select(.daysLeft and .daysLeft < 30) | .name'
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var output: ListOptions
    @OptionGroup var secrets: SecretOption

    func run() throws {
        let home = try homeOption.located()
        let enrolled = try VaultAccess(home: home, secrets: secrets.input).session().perform(ListIdentities())
        let sites = IdentitySites(of: home)
        let shown = try enrolled.identities.map { try IdentitySummary($0, sites) }
        let pending = enrolled.pending.map(PendingSummary.init)
        if output.json {
            try Console.result(json: shown.map(Listed.identity) + pending.map(Listed.pending))
        } else {
            output.show(
                ["NAME", "SUBJECT", "ISSUER", "VALIDITY", "SITES"],
                shown.map { [$0.name, $0.subject, $0.issuer, $0.remaining + $0.purpose, $0.sitesText] })
            if !shown.isEmpty, !pending.isEmpty { Console.result("\n") }
            output.show(
                ["NAME", "SUBJECT", "SERVER", "STATE", "NEXT"], pending.map { $0.row.map(Console.printable) })
        }
        if shown.isEmpty, pending.isEmpty, enrolled.faults.isEmpty, !output.json {
            ListOptions.empty(
                "there is no client identity", in: home, hint: "`countersign certificate import FILE` adds one")
        }
        for fault in enrolled.faults { Console.warning("identity \"\(fault.name)\" is not listed: \(fault.reason)") }
        for fault in enrolled.fileFaults { Console.warning("identity \"\(fault.name)\": \(fault.reason)") }
    }
}

/// An element of the JSON list.
private enum Listed: Encodable {
    case identity(IdentitySummary)
    case pending(PendingSummary)

    func encode(to encoder: any Encoder) throws {
        switch self {
        case .identity(let summary): try summary.encode(to: encoder)
        case .pending(let summary): try summary.encode(to: encoder)
        }
    }
}

/// `countersign certificate inspect`.
struct CertificateInspectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect",
        abstract: "Show one client identity.",
        discussion: """
            EXAMPLES:
              countersign certificate inspect laptop
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var output: JSONOption
    @OptionGroup var secrets: SecretOption
    @Argument(help: ArgumentHelp("The identity's name.", valueName: "name"))
    var name: String

    func run() throws {
        let home = try homeOption.located()
        let session = try VaultAccess(home: home, secrets: secrets.input).session()
        guard IdentityName.isGood(name), let found = try session.perform(ShowIdentity(name: name)) else {
            throw try IdentityName.unknown(name, home)
        }
        let shown = try IdentitySummary(found, IdentitySites(of: home))
        if output.json { return try Console.result(json: shown) }
        Console.result(shown.text)
    }
}
