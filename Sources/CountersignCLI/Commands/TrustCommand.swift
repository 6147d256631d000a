// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignAddresses
import CountersignCertificates
import CountersignCryptography
import CountersignHome
import CountersignVault
import Glibc

/// `countersign trust`.
struct TrustCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trust",
        abstract: "Trust the issuers of servers' certificates, or single certificates that do not verify.",
        discussion: """
            A trust exception applies to one host, one port and one certificate. With it, requests are sent although \
            the certificate does not verify; challenges are answered only if it was added with --answer. A running \
            `countersign serve` applies changes within a second or two.

            For servers of a company or another private CA, trust the CA's certificate instead: see `countersign trust \
            anchor add`.
            """,
        subcommands: [List.self, Allow.self, Forget.self, TrustAnchorCommand.self])

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the trust exceptions.",
            discussion: """
                EXAMPLES:
                  countersign trust list
                  countersign trust list --json | jq -r '.[].host'
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var output: ListOptions
        @OptionGroup var secrets: SecretOption

        func run() throws {
            let home = try homeOption.located()
            let decisions = try VaultAccess(home: home, secrets: secrets.input).session().perform(ListTrustExceptions())
            if decisions.isEmpty, !output.json {
                ListOptions.empty(
                    "there is no trust exception", in: home,
                    hint: "`countersign trust anchor list` lists the trust anchors")
            }
            if output.json { return try Console.result(json: decisions.map(ListedDecision.init)) }
            let now = Int64(time(nil))
            let rows = decisions.map { decision in
                [
                    decision.place, CertificateFingerprint.text(decision.leafSHA256),
                    decision.answers ? "answered" : "not answered", decision.period(at: now),
                    WallClock.rfc3339(decision.made),
                ]
            }
            output.show(["SERVER", "CERTIFICATE", "CHALLENGES", "EXPIRY", "ADDED"], rows)
        }
    }

    struct Allow: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "allow",
            abstract: "Add a trust exception for one certificate of a server.",
            discussion: """
                The fingerprint is the SHA-256 of the server's certificate. The proxy's 502 response for the site \
                contains it, and this command prints it:
                  openssl s_client -connect HOST:PORT </dev/null | openssl x509 -noout -fingerprint -sha256
                Compare it with the one that the server's owner published: on a network under attack, it may be the \
                attacker's.

                Replaces an existing exception for the same host, port and certificate.

                EXAMPLES:
                  countersign trust allow printer.corp.example --fingerprint sha256:5f70… --answer
                  countersign trust allow printer.corp.example:8443 --fingerprint sha256:5F:70… --until 2027-03-31
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption

        @Argument(
            help: ArgumentHelp(
                "The server's host name or address, and its port if it is not 443.", valueName: "host[:port]"))
        var place: String

        @Option(
            help: ArgumentHelp(
                "The certificate's SHA-256 fingerprint: 64 hexadecimal digits, with or without colons and sha256:.",
                valueName: "sha256"))
        var fingerprint: String

        @Flag(help: "Also answer the server's challenges, as the site's line permits.")
        var answer = false

        @Option(
            help: ArgumentHelp(
                "Expire at the end of this day (YYYY-MM-DD, UTC) or at this time (RFC 3339). (default: never)",
                valueName: "date"))
        var until: String?

        func run() throws {
            let home = try homeOption.locatedOrNew()
            let origin = try TrustedServer.origin(place)
            let leaf = try TrustedServer.leaf(fingerprint, of: place)
            let now = Int64(time(nil))
            let end = try until.map { try LastSecond(parsing: $0).seconds }
            if let end, end < now {
                throw CountersignError(
                    .configuration, "--until \(WallClock.rfc3339(end)) is in the past",
                    hint: "omit --until for an exception that does not expire")
            }
            let sites = try home.sites()
            let exception = TrustExceptionRecord(
                host: origin.host, port: origin.port, leafSHA256: leaf, until: end, answers: answer, made: now)
            _ = try VaultAccess(home: home, secrets: secrets.input).session(creates: true)
                .perform(AddTrustException(exception))
            Console.result(
                "\(TrustedServer.text(origin)): \(CertificateFingerprint.text(leaf)) is allowed"
                    + (end.map { " until \(WallClock.rfc3339($0))" } ?? "")
                    + (answer ? ", challenges are answered\n" : ", challenges are not answered\n"))
            if case .answer = sites.verdict(for: origin, client: .anyone) { return }
            Console.log(
                "hint",
                sites.rule(for: origin).map { "it has no effect while \($0.location) says intercept=no" }
                    ?? "it has no effect until the site is listed: `countersign sites add https://\(origin.authority)`")
        }
    }

    struct Forget: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "forget",
            abstract: "Remove all trust exceptions for a server.",
            discussion: """
                EXAMPLES:
                  countersign trust forget printer.corp.example:8443
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption

        @Argument(
            help: ArgumentHelp(
                "The server's host name or address, and its port if it is not 443.", valueName: "host[:port]"))
        var place: String

        func run() throws {
            let origin = try TrustedServer.origin(place)
            let removed = try VaultAccess(home: try homeOption.located(), secrets: secrets.input).session()
                .perform(RemoveTrustExceptions(host: origin.host, port: origin.port))
            guard removed.count > 0 else {
                throw CountersignError.unknown(
                    "there is no trust exception for \(TrustedServer.text(origin))", known: removed.known,
                    addedBy: "trust allow HOST --fingerprint SHA256")
            }
            let count = removed.count == 1 ? "1 trust exception" : "\(removed.count) trust exceptions"
            Console.result("\(TrustedServer.text(origin)): \(count) removed\n")
        }
    }
}

/// The last second of a trust exception, from a date or an RFC 3339 timestamp.
struct LastSecond {
    /// Since 1970.
    let seconds: Int64

    init(parsing text: String) throws {
        guard let found = Self.day(text) ?? Self.moment(text) else {
            throw CountersignError(
                .configuration, "\(text.debugDescription) is not a date or time",
                hint: "use a date in UTC, such as 2027-03-31, or a time, such as 2027-03-31T18:00:00Z")
        }
        seconds = found
    }

    private static func day(_ text: String) -> Int64? {
        midnight(text[...]).map { $0 + 86_399 }
    }

    /// An RFC 3339 §5.6 timestamp; drops fractions of a second.
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

    /// The first second of the day `YYYY-MM-DD` in UTC, or nil if there is no such day.
    private static func midnight(_ text: Substring) -> Int64? {
        guard let match = text.wholeMatch(of: #/(\d\d\d\d)-(\d\d)-(\d\d)/#), let year = Int32(match.1),
            let month = Int32(match.2), let day = Int32(match.3)
        else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1900, month - 1, day)
        let seconds = timegm(&parts)
        // timegm turns 31 February into 3 March.
        guard parts.tm_mon == month - 1, parts.tm_mday == day, seconds >= 0 else { return nil }
        return Int64(seconds)
    }
}

extension TrustExceptionRecord {
    /// `host:port`, as on the command line.
    fileprivate var place: String {
        TrustedServer.text(Origin(scheme: .https, host: host, port: port))
    }

    fileprivate func period(at now: Int64) -> String {
        guard let until else { return "no expiry" }
        return (counts(at: now) ? "until " : "expired ") + WallClock.rfc3339(until)
    }
}

/// One trust exception as JSON.
private struct ListedDecision: Encodable {
    let host: String
    let port: UInt16
    let fingerprint: String
    let answers: Bool
    let until: String?
    let made: String

    init(_ decision: TrustExceptionRecord) {
        host = decision.host
        port = decision.port
        fingerprint = CertificateFingerprint.text(decision.leafSHA256)
        answers = decision.answers
        until = decision.until.map(WallClock.rfc3339)
        made = WallClock.rfc3339(decision.made)
    }
}
