// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignCertificates
import Countersign
import CountersignCryptography
import CountersignEnrollment
import Glibc
import CountersignProxy
import CountersignVault

/// `countersign certificate enroll`.
struct CertificateEnrollCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "enroll",
        abstract: "Get a client certificate from an EST server (RFC 7030).",
        discussion: """
            The private key is made here and never leaves the vault. `serve` and `certificate refresh` get the next certificate \
            from the same server, by the certificate itself.

            Whom to trust: --anchor or --fingerprint name the server's authority. Without either, its fingerprint is shown and \
            to be confirmed on the terminal. The system's authorities are not used.

            Who asks: --credential answers the server's Basic or Digest challenge, --identity its request for a certificate. \
            Without either, the credential `enrollment`, if there is one.

            With --password-stdin the vault's passphrase is the first line of standard input.

            EXAMPLES:
              countersign certificate enroll laptop --est https://est.corp.example --fingerprint sha256:7f3a…
              countersign certificate enroll vpn --est https://est.corp.example:8443/vpn --anchor ca.pem --san dns:laptop.corp.example
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var secrets: SecretOption

    @Argument(help: ArgumentHelp("What to call the identity.", valueName: "name"))
    var name: String

    @Option(help: ArgumentHelp("The server: https://host[:port][/label].", valueName: "url"))
    var est: String

    @Option(
        help: ArgumentHelp(
            "The subject to ask for, as CN=jdoe,O=ACME. Default: CN= and the credential's user, or yours.",
            valueName: "name"))
    var subject: String?

    @Option(
        name: .customLong("san"),
        help: ArgumentHelp(
            "One more name to ask for: dns:, email:, uri:, ip: or upn: before it. May be repeated.", valueName: "name"))
    var alternativeNames: [String] = []

    @Option(
        help: ArgumentHelp(
            "\(KeySpecification.allCases.map(\.rawValue).joined(separator: ", ")).",
            discussion: "Default: what the server asks for, else ec-p256.", valueName: "kind"))
    var key: String?

    @Option(help: ArgumentHelp("The server's authority in PEM.", valueName: "file"))
    var anchor: String?

    @Option(help: ArgumentHelp("The SHA-256 of the server's authority: sha256:….", valueName: "sha256:…"))
    var fingerprint: String?

    @Option(help: ArgumentHelp("The credential that may enrol.", valueName: "name"))
    var credential: String?

    @Option(help: ArgumentHelp("The identity that may enrol.", valueName: "name"))
    var identity: String?

    @Flag(help: "Take the place of an identity of that name, once the new certificate has been proved.")
    var replace = false

    @Flag(help: "Do not wait for a server that will decide later: `certificate refresh` goes on.")
    var noWait = false

    func validate() throws {
        guard IdentityName.isGood(name) else {
            throw ValidationError("\(name.debugDescription) is not a name: 1 to 64 of A-Z a-z 0-9 . _ -")
        }
        guard anchor == nil || fingerprint == nil else {
            throw ValidationError("--anchor and --fingerprint are two ways to say the same: give one")
        }
        if let fingerprint { _ = try Self.digest(fingerprint) }
        if let key, KeySpecification(key) == nil {
            let kinds = KeySpecification.allCases.map(\.rawValue).joined(separator: ", ")
            throw ValidationError("\(key.debugDescription) is not a kind of key: \(kinds)")
        }
        do {
            _ = try ESTEndpoint(parsing: est)
            if let subject { _ = try SubjectName(subject) }
            for name in alternativeNames { _ = try SubjectAlternativeName(name) }
        } catch let error as EnrollmentError {
            throw ValidationError(error.detail)
        } catch let error as CertificateError {
            throw ValidationError(error.detail)
        }
    }

    func run() throws {
        let home = try homeOption.located()
        let vault = try VaultDoor(home: home, secrets: secrets.input).openOrCreate()
        let speaker = try speaker(in: vault.contents)
        let talk = RenewalTalk(name: name)
        let renewal = IdentityRenewal(home: home, vault: vault, now: { Int64(time(nil)) }, report: talk.report)
        var options = IdentityRenewal.Options()
        if noWait { options.patienceSeconds = 0 }
        options.waitsForOtherProcess = !noWait
        let outcome = try Blocking.run { [options] in
            let plan = EnrollmentRecord(
                name: name, server: try ESTEndpoint(parsing: est).description,
                subject: subject ?? Self.subject(of: speaker?.user ?? SystemUser.name),
                alternativeNames: alternativeNames,
                keySpecification: key.flatMap { KeySpecification($0) }?.rawValue ?? EnrollmentRecord.anyKey,
                anchors: try await anchors().map(\.der), credential: speaker?.name, identity: identity)
            return try await renewal.enroll(plan, replaces: replace, options)
        }
        talk.end()
        try talk.result(outcome, verb: "enrolled")
    }

    private func speaker(in contents: VaultContents) throws -> (name: String, user: String)? {
        if let identity, !contents.hasKey(of: identity) {
            throw CountersignError(
                .unknownName, "there is no identity \(identity.debugDescription)",
                hint: KnownNames.hint(
                    Array(contents.identityKeys.keys) + contents.tokenKeys.keys, enrolledBy: "certificate import"))
        }
        if credential == nil, identity != nil { return nil }
        let name = credential ?? "enrollment"
        if let found = contents.credentials[name] { return (name, found.user) }
        guard credential == nil else {
            throw CountersignError(
                .unknownName, "there is no credential \(name.debugDescription)",
                hint: KnownNames.hint(Array(contents.credentials.keys), enrolledBy: "credential set"))
        }
        return nil
    }

    // MARK: Whom to trust

    private func anchors() async throws -> [Certificate] {
        if let anchor {
            let file = HomeFile(path: anchor)
            do {
                return try Certificate.readPEM(try file.read(upTo: Home.fileLimitBytes))
            } catch let error as CertificateError {
                throw CountersignError(
                    .configuration, "\(anchor): \(error.detail)", hint: "certificates in PEM are wanted")
            }
        }
        let found = try await ESTBootstrap.fetch(try ESTEndpoint(parsing: est))
        if let fingerprint { return [try found.authority(fingerprint: try Self.digest(fingerprint))] }
        guard let authority = found.authorities.first else {
            throw CountersignError(
                .refused, "\(est) names no authority of its own that could be trusted",
                hint: "give the authority's certificate with --anchor")
        }
        guard found.authorities.count == 1, try Self.isConfirmed(authority, server: est) else {
            let shown = found.authorities.map { "\($0.subject), \($0.fingerprintText)" }.joined(separator: "; ")
            throw CountersignError(
                .refused, "nobody has confirmed the authority of \(est): \(shown)",
                hint: "compare it with what its operator says, then pass --fingerprint \(authority.fingerprintText)")
        }
        return [authority]
    }

    /// False where there is no terminal, or the answer is no.
    private static func isConfirmed(_ authority: Certificate, server: String) throws -> Bool {
        guard Confirmation.hasTerminal else { return false }
        return try Confirmation(isGiven: false).asks(
            """
            The authority of \(server) is not known yet:
              subject      \(Console.printable(authority.subject))
              valid        \(Day.text(authority.notBefore)) to \(Day.text(authority.notAfter))
              fingerprint  \(authority.fingerprintText)
            Compare the fingerprint with what its operator says. Trust it?
            """)
    }

    private static func digest(_ text: String) throws -> [UInt8] {
        do throws(TrustFingerprint.Fault) {
            return try TrustFingerprint.parse(text)
        } catch {
            throw ValidationError("\(text.debugDescription) is not a fingerprint: \(error)")
        }
    }

    /// `CN=` and the user's name without a Windows domain, escaped as RFC 4514 §2.4 has it.
    static func subject(of user: String) -> String {
        let name = user.split(separator: "\\", maxSplits: 1).last ?? ""
        let escaped = name.map { "\"#+,;<=>\\/".contains($0) ? "\\\($0)" : String($0) }.joined()
        return "CN=" + (escaped.isEmpty ? "countersign" : escaped)
    }
}
