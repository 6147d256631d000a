// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignChallenges
import Countersign
import CountersignCryptography
import Glibc
import CountersignProxy
import CountersignSitePolicy
import CountersignVault

/// `countersign trust`.
struct TrustCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trust",
        abstract: "Show, make or forget standing decisions about servers whose certificate does not verify.",
        discussion: """
            A decision is for one host, one port and one certificate. It says to go on there although the certificate does not \
            verify; challenges are answered there only if it was made with --answer. A running `countersign serve` follows a \
            change a moment later.
            """,
        subcommands: [List.self, Allow.self, Forget.self])

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "Show the standing decisions.",
            discussion: """
                EXAMPLES:
                  countersign trust list
                  countersign trust list --json | jq -r '.[].host'
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var output: JSONOption
        @OptionGroup var secrets: SecretOption

        func run() throws {
            let vault = try VaultDoor(home: try homeOption.located(), secrets: secrets.input).openIfThere()
            let decisions = vault?.contents.trustDecisions ?? []
            if output.json { return try Console.result(json: decisions.map(ListedDecision.init)) }
            let now = Int64(time(nil))
            let rows = decisions.map { decision in
                [
                    decision.place, TrustFingerprint.text(decision.leafSHA256),
                    decision.answers ? "answered" : "not answered", decision.period(at: now),
                    "made \(WallClock.rfc3339(decision.made))",
                ]
            }
            Console.result(TextTable(rows: rows).text)
        }
    }

    struct Allow: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "allow",
            abstract: "Go on to a server although its certificate does not verify.",
            discussion: """
                The fingerprint is the SHA-256 of the server's certificate. The proxy's 502 to a request for the site has it, and \
                so does
                  openssl s_client -connect HOST:PORT </dev/null | openssl x509 -noout -fingerprint -sha256
                Compare it with what the server's owner says: over an attacked network it may be the attacker's.

                A decision for the same host, port and certificate takes the place of the one there is.

                EXAMPLES:
                  countersign trust allow printer.corp.example --fingerprint sha256:5f70…
                  countersign trust allow printer.corp.example:8443 --fingerprint sha256:5F:70… --answer --until 2027-03-31
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption

        @Argument(help: ArgumentHelp("The host, with a port other than 443.", valueName: "host[:port]"))
        var place: String

        @Option(
            help: ArgumentHelp("sha256: and 64 hexadecimal digits, colons between them or not.", valueName: "sha256"))
        var fingerprint: String

        @Flag(help: "Answer the server's challenges, too, as the site's line permits.")
        var answer = false

        @Option(
            help: ArgumentHelp(
                "The decision's last day, YYYY-MM-DD in UTC, or its last second in RFC 3339. Default: no end.",
                valueName: "date"))
        var until: String?

        func run() throws {
            let home = try homeOption.located()
            let origin = try TrustPlace.origin(place)
            let leaf = try TrustPlace.leaf(fingerprint, of: place)
            let now = Int64(time(nil))
            let end = try until.map { try LastSecond(parsing: $0).seconds }
            if let end, end < now {
                throw CountersignError(
                    .configuration, "--until \(WallClock.rfc3339(end)) is past",
                    hint: "leave it out for a decision that stands until it is forgotten")
            }
            let sites = try home.sites()
            let vault = try VaultDoor(home: home, secrets: secrets.input).openOrCreate()
            try vault.update {
                try $0.setTrustDecision(
                    TrustDecision(
                        host: origin.host, port: origin.port, leafSHA256: leaf, until: end, answers: answer, made: now))
            }
            Console.result(
                "\(TrustPlace.text(origin)): \(TrustFingerprint.text(leaf)) is allowed"
                    + (end.map { " until \(WallClock.rfc3339($0))" } ?? "")
                    + (answer ? ", challenges are answered\n" : ", challenges are not answered\n"))
            if case .answer = sites.verdict(for: origin) { return }
            Console.talk(
                "hint",
                sites.rule(for: origin).map { "it has no effect while \($0.location) says intercept=no" }
                    ?? "it has no effect until the site is listed: `countersign sites add https://\(origin.authority)`")
        }
    }

    struct Forget: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "forget",
            abstract: "Forget every standing decision about a server.",
            discussion: """
                EXAMPLES:
                  countersign trust forget printer.corp.example:8443
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption

        @Argument(help: ArgumentHelp("The host, with a port other than 443.", valueName: "host[:port]"))
        var place: String

        func run() throws {
            let origin = try TrustPlace.origin(place)
            let vault = try VaultDoor(home: try homeOption.located(), secrets: secrets.input).openIfThere()
            let forgotten = try vault?.update { $0.removeTrustDecisions(host: origin.host, port: origin.port) } ?? 0
            guard forgotten > 0 else {
                throw CountersignError(
                    .unknownName, "there is no decision about \(TrustPlace.text(origin))",
                    hint: KnownNames.hint(
                        Array(Set(vault?.contents.trustDecisions.map(\.place) ?? [])), enrolledBy: "trust allow"))
            }
            Console.result(
                "\(TrustPlace.text(origin)): \(forgotten) \(forgotten == 1 ? "decision" : "decisions") forgotten\n")
        }
    }
}

/// What the command line says of a server.
enum TrustPlace {
    /// `host` or `host:port`, of a site that could be listed.
    static func origin(_ place: String) throws -> Origin {
        guard !place.contains("*") else {
            throw CountersignError(
                .configuration, "a decision is for one host, \(place.debugDescription) has a wildcard",
                hint: "make one for each host")
        }
        guard !place.contains("/") else {
            throw CountersignError(
                .configuration, "\(place.debugDescription) is not a host, or host:port",
                hint: "write it without scheme and path: git.corp.example:8443")
        }
        return try Origin(scheme: .https, authority: place, for: .listed)
    }

    static func leaf(_ fingerprint: String, of place: String) throws -> [UInt8] {
        do {
            return try TrustFingerprint.parse(fingerprint)
        } catch {
            throw CountersignError(
                .configuration, "\(fingerprint.debugDescription) is not a fingerprint: \(error)",
                hint: """
                    it is sha256: and 64 hexadecimal digits: the "fingerprint" of the proxy's 502, or what this says
                    openssl s_client -connect HOST:PORT </dev/null | openssl x509 -noout -fingerprint -sha256
                    """)
        }
    }

    /// `host:port`.
    static func text(_ origin: Origin) -> String { "\(origin.uriHost):\(origin.port)" }
}

/// The end of a decision: a day's last second, or a moment.
struct LastSecond {
    /// Since 1970.
    let seconds: Int64

    init(parsing text: String) throws {
        guard let found = Self.day(text) ?? Self.moment(text) else {
            throw CountersignError(
                .configuration, "\(text.debugDescription) is not a date",
                hint: "write 2027-03-31 for the whole of that day in UTC, or 2027-03-31T18:00:00Z")
        }
        seconds = found
    }

    private static func day(_ text: String) -> Int64? {
        midnight(text[...]).map { $0 + 86_399 }
    }

    /// RFC 3339 §5.6; a fraction is dropped.
    private static func moment(_ text: String) -> Int64? {
        let parts = text.split(separator: #/[Tt]/#, omittingEmptySubsequences: false)
        guard parts.count == 2, let midnight = midnight(parts[0]),
            let time = parts[1].wholeMatch(of: #/(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))/#),
            let hours = Int64(time.1), let minutes = Int64(time.2), let seconds = Int64(time.3),
            hours < 24, minutes < 60, seconds < 60
        else { return nil }
        var offset: Int64 = 0
        if let sign = time.4 {
            guard let hours = time.5.flatMap({ Int64($0) }), let minutes = time.6.flatMap({ Int64($0) }), hours < 24,
                minutes < 60
            else { return nil }
            offset = (sign == "+" ? 1 : -1) * (hours * 3600 + minutes * 60)
        }
        return midnight + hours * 3600 + minutes * 60 + seconds - offset
    }

    /// The beginning of a day of the calendar, `YYYY-MM-DD`, in UTC.
    private static func midnight(_ text: Substring) -> Int64? {
        guard let match = text.wholeMatch(of: #/(\d\d\d\d)-(\d\d)-(\d\d)/#), let year = Int32(match.1),
            let month = Int32(match.2), let day = Int32(match.3)
        else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1900, month - 1, day)
        let seconds = timegm(&parts)
        // timegm makes the 3rd of March of the 31st of February.
        guard parts.tm_mon == month - 1, parts.tm_mday == day, seconds >= 0 else { return nil }
        return Int64(seconds)
    }
}

extension TrustDecision {
    /// `host:port`, as it is written on the command line.
    fileprivate var place: String {
        TrustPlace.text(Origin(scheme: .https, host: host, port: port))
    }

    fileprivate func period(at now: Int64) -> String {
        guard let until else { return "no end" }
        return (counts(at: now) ? "until " : "ended ") + WallClock.rfc3339(until)
    }
}

/// A decision as JSON.
private struct ListedDecision: Encodable {
    let host: String
    let port: UInt16
    let fingerprint: String
    let answers: Bool
    let until: String?
    let made: String

    init(_ decision: TrustDecision) {
        host = decision.host
        port = decision.port
        fingerprint = TrustFingerprint.text(decision.leafSHA256)
        answers = decision.answers
        until = decision.until.map(WallClock.rfc3339)
        made = WallClock.rfc3339(decision.made)
    }
}
