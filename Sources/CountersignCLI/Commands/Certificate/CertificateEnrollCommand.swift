// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCertificates
import CountersignCryptography
import CountersignEnrollment
import CountersignHome
import CountersignVault
import FoundationEssentials

/// `countersign certificate enroll`.
struct CertificateEnrollCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "enroll",
        abstract: "Get a client certificate from an EST server (RFC 7030).",
        discussion: """
            Generates the private key locally; it never leaves the vault. `serve` and `certificate refresh` later \
            renew the certificate at the same server, authenticating with the certificate itself.

            The server is verified by --anchor, else by the CA certificate with --fingerprint, else by the system's \
            trust anchors and those in Certs/anchors. If none of them verifies it, the command shows its CA's \
            fingerprint and asks you to confirm it on the terminal.

            The certificates that it issues are verified by the roots that it sends. The command shows those that are \
            not among the server's anchors, and asks; --fingerprint chooses one, and --yes accepts them all if the \
            server has been verified. Both sets are stored. A later root needs a rollover certificate (RFC 4210).

            The request is authenticated by --credential (if the server challenges with Basic or Digest) or --identity \
            (if it requests a client certificate); by default with the credential `enrollment`, if it exists.

            Exit status 3: the server has not decided yet. `certificate list` shows the request.

            With --password-stdin, standard input contains the vault's passphrase, if it has one, then the token's \
            PIN, if the key is in one; one per line.

            EXAMPLES:
              countersign certificate enroll laptop --est https://est.corp.example --fingerprint sha256:7f3a…
              countersign certificate enroll vpn --est https://est.corp.example/vpn --anchor ca.pem --san dns:laptop
              countersign certificate enroll card --est https://est.corp.example --key 'pkcs11:token=card;id=%01'
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var secrets: SecretOption

    @Argument(help: ArgumentHelp("The name for the identity.", valueName: "name"))
    var name: String

    @Option(help: ArgumentHelp("The EST server, https://host[:port][/label].", valueName: "url"))
    var est: String

    @Option(
        help: ArgumentHelp(
            "Request this subject, such as CN=jdoe,O=ACME. (default: CN= and the credential's user, or yours)",
            valueName: "name"))
    var subject: String?

    @Option(
        name: .customLong("san"),
        help: ArgumentHelp(
            "Request this alternative name, starting with dns:, email:, uri:, ip: or upn:; may be repeated.",
            valueName: "name"))
    var alternativeNames: [String] = []

    @Option(
        help: ArgumentHelp(
            "Generate this kind of key: \(KeySpecification.allCases.map(\.rawValue).joined(separator: ", ")); or use "
                + "the key in a token at this pkcs11: URI. (default: the server's choice, else ec-p256)",
            valueName: "kind"))
    var key: String?

    @Option(help: ArgumentHelp("Verify the server with the CA certificates in this PEM file.", valueName: "file"))
    var anchor: String?

    @Option(
        help: ArgumentHelp(
            "Trust the root with this SHA-256 fingerprint for issued certificates, and without --anchor for the server.",
            valueName: "sha256:…"))
    var fingerprint: String?

    @Option(help: ArgumentHelp("Authenticate with this credential. (default: enrollment)", valueName: "name"))
    var credential: String?

    @Option(help: ArgumentHelp("Authenticate with this client identity.", valueName: "name"))
    var identity: String?

    @Flag(help: "Trust the roots that a verified server sends, without a prompt.")
    var yes = false

    @Flag(help: "Replace the identity of that name, once the new certificate has passed a test handshake.")
    var replace = false

    @Flag(help: "Do not wait if the server defers its decision; continue later with `certificate refresh`.")
    var noWait = false

    func validate() throws {
        guard IdentityName.isGood(name) else {
            throw ValidationError(
                "\(name.debugDescription) is not a name; use 1 to 64 characters from A-Z a-z 0-9 . _ -")
        }
        if let fingerprint { _ = try Self.digest(fingerprint) }
        if let key, KeySpecification(key) == nil, !TokenURI.isURI(key) {
            let kinds = KeySpecification.allCases.map(\.rawValue).joined(separator: ", ")
            throw ValidationError("\(key.debugDescription) is not a kind of key; use one of \(kinds)")
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
        let home = try homeOption.locatedOrNew()
        let uri = try key.flatMap { TokenURI.isURI($0) ? try IdentitySource.uri($0) : nil }
        let access = VaultAccess(home: home, secrets: secrets.input)
        // A token's key is only used by the process that has asked for its PIN.
        let session = uri == nil ? try access.session(creates: true) : try access.ownSession(creates: true)
        let requester = try requestCredential(session)
        let reporter = RenewalReporter(name: name)
        var options = IdentityRenewal.Options()
        if noWait { options.patienceSeconds = 0 }
        options.waitsForOtherProcess = !noWait
        let choice = ServerAnchorChoice(
            endpoint: try ESTEndpoint(parsing: est), home: home, given: try anchors(),
            fingerprint: try fingerprint.map(Self.digest), isAgreed: yes, prepareTerminal: reporter.end)
        var request = EnrollmentRequest(
            name: name, server: choice.endpoint.description,
            subject: subject ?? EnrollmentRecord.subject(ofUser: requester?.user ?? SystemUser.name),
            alternativeNames: alternativeNames,
            keySpecification: key.flatMap { KeySpecification($0) }?.rawValue ?? EnrollmentRecord.anyKey,
            credential: requester?.name, identity: identity, replaces: replace, options: options, serverAnchors: nil)
        let outcome: IdentityRenewal.Outcome
        if let uri {
            outcome = try enroll(request, keyAt: uri, choice, reporter, in: session)
        } else {
            _ = try session.perform(CheckEnrollment(name: name, replaces: replace))
            let serverAnchors = try Blocking.run { try await choice.serverAnchors() }
            if case .own(let anchors) = serverAnchors { request.serverAnchors = anchors.map { Data($0) } }
            outcome = try enroll(request, choice, reporter, in: session)
        }
        reporter.end()
        try reporter.result(outcome, verb: "enrolled")
    }

    /// Enrols a new key. A server asks for the user's choice of anchors by a result, and the request is repeated with
    /// it.
    private func enroll(
        _ request: EnrollmentRequest, _ choice: ServerAnchorChoice, _ reporter: RenewalReporter,
        in session: VaultSession
    ) throws -> IdentityRenewal.Outcome {
        let verifying = try (request.serverAnchors ?? []).map { try Certificate(der: Array($0)) }
        var request = request
        // Repeats the enrolment if the EST server's CA certificates change between two requests.
        for _ in 1...3 {
            let dialogue = OperationDialogue(
                report: reporter.report, confirm: { try choice.anchors(among: $0, verifying: verifying) })
            switch try session.perform(EnrollIdentity(request), dialogue) {
            case .enrolled(let outcome): return outcome
            case .needsAnchors(let published, let serverChain):
                let authorities = ESTPublishedAuthorities(certificates: published, serverChain: serverChain)
                let anchors = try choice.anchors(among: authorities, verifying: verifying)
                request.chosen = EnrollmentRequest.ChosenAnchors(
                    anchors: anchors.map { Data($0.der) }, published: published.map { Data($0.der) })
            }
        }
        throw CountersignError(.refused, "\(request.server) sends different CA certificates each time")
    }

    /// Enrols a key in a token, in this process.
    private func enroll(
        _ request: EnrollmentRequest, keyAt uri: TokenURI, _ choice: ServerAnchorChoice, _ reporter: RenewalReporter,
        in session: VaultSession
    ) throws -> IdentityRenewal.Outcome {
        let renewal = try session.operations().renewal(report: reporter.report)
        try renewal.checkName(name, replaces: replace, isInToken: true)
        let token = try IdentitySource.tokenKey(at: uri, for: name, asking: secrets.input)
        return try Blocking.run {
            var plan = EnrollmentRecord(request)
            plan.keySpecification = EnrollmentRecord.tokenKey
            plan.serverAnchors = try await choice.serverAnchors()
            var verifying: [Certificate] = []
            if case .own(let anchors) = plan.serverAnchors { verifying = try anchors.map { try Certificate(der: $0) } }
            return try await renewal.enroll(
                plan, replaces: request.replaces, token: token, request.options
            ) { [verifying] published in
                try choice.anchors(among: published, verifying: verifying)
            }
        }
    }

    /// The credential that authenticates the request; nil if the identity does, or if nothing does.
    private func requestCredential(_ session: VaultSession) throws -> (name: String, user: String)? {
        if let identity {
            let states = try session.perform(ListRenewalStates()).filter(\.hasKey).map(\.name)
            guard states.contains(identity) else {
                throw CountersignError.unknown("identity", identity, known: states, addedBy: "certificate import FILE")
            }
        }
        if credential == nil, identity != nil { return nil }
        let name = credential ?? "enrollment"
        let known = try session.perform(ListCredentials())
        let found = known.first { $0.name == name }
        if let user = found?.user { return (name, user) }
        guard credential == nil else {
            if found != nil {
                throw CountersignError(
                    .refused, "credential \(name.debugDescription) is a token, not a user name and password",
                    hint: "name a credential that `countersign credential list` shows with a user name")
            }
            throw CountersignError.unknown(
                "credential", name, known: known.map(\.name), addedBy: "credential set --user USER")
        }
        return nil
    }

    // MARK: The server's CA

    /// The certificates of `--anchor`.
    private func anchors() throws -> [Certificate]? {
        guard let anchor else { return nil }
        let file = HomeFile(path: anchor)
        do {
            return try Certificate.readPEM(try file.read(upTo: Home.fileLimitBytes))
        } catch let error as CertificateError {
            throw CountersignError(
                .configuration, "\(anchor): \(error.detail)", hint: "the file must contain certificates in PEM")
        }
    }

    private static func digest(_ text: String) throws -> [UInt8] {
        do throws(CertificateFingerprint.Fault) {
            return try CertificateFingerprint.parse(text)
        } catch {
            throw ValidationError("\(text.debugDescription) is not a fingerprint: \(error)")
        }
    }
}
