// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCertificates
import CountersignCryptography
import CountersignHome
import CountersignSitePolicy
import Glibc

/// `countersign trust anchor`.
struct TrustAnchorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "anchor",
        abstract: "Add, list or remove the CA certificates that are trusted besides the system's.",
        discussion: """
            They are the files Certs/anchors/*.pem, which verify the certificates of listed sites and of EST servers. \
            A running `countersign serve` applies changes within a second or two.
            """,
        subcommands: [Add.self, List.self, Remove.self])

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "add",
            abstract: "Trust the CA certificates in a file.",
            discussion: """
                FILE has one or more certificates in PEM, DER or PKCS#7 (.pem, .crt, .cer, .der, .p7b, .p7c). Compare \
                the fingerprint with the one that the CA's operator published.

                EXAMPLES:
                  countersign trust anchor add corp-root.crt
                  countersign trust anchor add bundle.p7b --name corp
                """)

        @OptionGroup var homeOption: HomeOption

        @Argument(help: ArgumentHelp("The file with the certificates.", valueName: "file"))
        var file: String

        @Option(
            help: ArgumentHelp(
                "Store them in Certs/anchors/NAME.pem. (default: the name of FILE)", valueName: "name"))
        var name: String?

        func validate() throws {
            if let name, !IdentityName.isGood(name) {
                throw ValidationError(
                    "\(name.debugDescription) is not a name; use 1 to 64 characters from A-Z a-z 0-9 . _ -")
            }
        }

        func run() throws {
            let certificates = try read()
            let home = try homeOption.locatedOrNew()
            for (entry, isNew) in try AnchorStore(home: home).add(certificates, as: name ?? Self.name(from: file)) {
                let certificate = entry.certificate
                Console.result(
                    "\(entry.file): \(isNew ? "trusts" : "already trusts") \(Console.printable(certificate.subject)), "
                        + "\(Day.validity(until: certificate.notAfter, now: Int64(time(nil))))\n"
                        + "  \(certificate.fingerprintText)\n")
                Self.warn(about: certificate)
            }
        }

        private func read() throws -> [Certificate] {
            try AnchorStore.read(try HomeFile(path: file).read(upTo: IdentityFile.maximumBytes), from: file)
        }

        private static func warn(about certificate: Certificate) {
            let subject = "\"\(Console.printable(certificate.subject))\""
            if !certificate.isCertificateAuthority {
                let issuer = "\"\(Console.printable(certificate.issuer))\""
                let isSelfSigned = certificate.issuer == certificate.subject
                let single = "for a single server, see `countersign trust allow --help`"
                Console.warning(
                    "\(subject) is not a CA certificate, and verifies at most itself",
                    hint: isSelfSigned ? single : "add the certificate of the CA \(issuer) instead; \(single)")
            }
            if certificate.notAfter < Int64(time(nil)) {
                Console.warning("\(subject) expired on \(Day.text(certificate.notAfter))")
            }
            let reasons = certificate.weaknessesAsAnchor
            if !reasons.isEmpty { Console.warning("\(subject) is weak: \(reasons.joined(separator: ", "))") }
        }

        /// The file's name without its extension, with every run of characters that a name may not have as `-`.
        static func name(from file: String) -> String {
            let base = file.split(separator: "/").last ?? ""
            let stem = base.lastIndex(of: ".").map { $0 > base.startIndex ? base[..<$0] : base } ?? base
            var name = ""
            for character in stem.prefix(64) {
                if SiteRule.isStoredName(String(character)) {
                    name.append(character)
                } else if name.last != "-" {
                    name.append("-")
                }
            }
            name = name.trimming("-.")
            return IdentityName.isGood(name) ? name : "anchor"
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the trust anchors and revocation lists of this home.",
            discussion: """
                The system's trust anchors are not listed. Revocation lists follow the anchors: issuer, time until the \
                next list, file. In JSON, they have the field `revocationList`.

                EXAMPLES:
                  countersign trust anchor list
                  countersign trust anchor list --json | jq -r '.[].fingerprint // empty'
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var output: ListOptions

        func run() throws {
            let home = try homeOption.located()
            let store = AnchorStore(home: home)
            let entries = try store.entries()
            let lists = try store.revocationLists()
            let now = Int64(time(nil))
            if output.json {
                try Console.result(json: entries.map { Listed.anchor($0) } + lists.map { Listed.list($0) })
            } else {
                output.show(
                    ["SUBJECT", "VALIDITY", "FINGERPRINT", "FILE"],
                    entries.map {
                        [
                            Console.printable($0.certificate.subject),
                            Day.left(until: $0.certificate.notAfter, now: now), $0.certificate.fingerprintText, $0.file,
                        ]
                    })
                if !entries.isEmpty, !lists.isEmpty { Console.result("\n") }
                output.show(
                    ["REVOCATIONS BY", "NEXT LIST", "FILE"],
                    lists.map { entry in
                        [
                            Console.printable(entry.list.issuer),
                            entry.list.nextUpdate.map { Day.left(until: $0, now: now) } ?? "not announced", entry.file,
                        ]
                    })
            }
            if entries.isEmpty, !output.json {
                ListOptions.empty(
                    "there is no trust anchor besides the system's", in: home,
                    hint: "`countersign trust anchor add FILE` adds one")
            }
            SiteReports.write(home.ignoredAnchorFiles)
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove",
            abstract: "Remove a trust anchor.",
            discussion: """
                Removes the certificate, or all certificates of a file, from each file in Certs/anchors that contains \
                them.

                EXAMPLES:
                  countersign trust anchor remove corp-root.crt
                  countersign trust anchor remove sha256:5f70…
                """)

        @OptionGroup var homeOption: HomeOption

        @Argument(
            help: ArgumentHelp(
                "The certificate's SHA-256 fingerprint, as `trust anchor list` prints it, or a file with certificates.",
                valueName: "fingerprint"))
        var fingerprint: String

        func run() throws {
            let home = try homeOption.located()
            let store = AnchorStore(home: home)
            for fingerprint in try fingerprints(home) {
                for entry in try store.remove(fingerprint) {
                    Console.result("\(entry.file): \(Console.printable(entry.certificate.subject)) removed\n")
                }
            }
        }

        private func fingerprints(_ home: Home) throws -> [[UInt8]] {
            do {
                return [try CertificateFingerprint.parse(fingerprint)]
            } catch {
                // `trust anchor list` prints files relative to the home.
                let files = [HomeFile(path: fingerprint), home.file(fingerprint)]
                guard let file = files.first(where: \.isRegular),
                    let found = try? IdentityFile.readCertificates(file.read(upTo: IdentityFile.maximumBytes))
                else {
                    throw CountersignError(
                        .configuration,
                        "\(fingerprint.debugDescription) is not a fingerprint: \(error)",
                        hint: "`countersign trust anchor list` prints the fingerprints")
                }
                return found.map(\.sha256Fingerprint)
            }
        }
    }

    /// An element of the JSON list.
    private enum Listed: Encodable {
        case anchor(AnchorStore.Entry)
        case list(AnchorStore.ListEntry)

        func encode(to encoder: any Encoder) throws {
            switch self {
            case .anchor(let entry): try ListedAnchor(entry).encode(to: encoder)
            case .list(let entry): try ListedRevocations(entry).encode(to: encoder)
            }
        }
    }

    /// One revocation list as JSON.
    private struct ListedRevocations: Encodable {
        let issuer: String
        let thisUpdate: String?
        let nextUpdate: String?
        let file: String
        let revocationList = true

        init(_ entry: AnchorStore.ListEntry) {
            issuer = entry.list.issuer
            thisUpdate = entry.list.thisUpdate.map(WallClock.rfc3339)
            nextUpdate = entry.list.nextUpdate.map(WallClock.rfc3339)
            file = entry.file
        }
    }

    /// One trust anchor as JSON.
    private struct ListedAnchor: Encodable {
        let subject: String
        let notAfter: String
        let fingerprint: String
        let file: String
        /// Why it is weak; empty if it is not.
        let weaknesses: [String]

        init(_ entry: AnchorStore.Entry) {
            subject = entry.certificate.subject
            notAfter = WallClock.rfc3339(entry.certificate.notAfter)
            fingerprint = entry.certificate.fingerprintText
            file = entry.file
            weaknesses = entry.certificate.weaknessesAsAnchor
        }
    }
}
