// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCryptography
import CountersignHome
import CountersignSignIn
import CountersignVault
import FoundationEssentials
import Glibc

/// `countersign unenroll`.
struct UnenrollCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unenroll",
        abstract: "Sign out, and remove what the profile of a sign-in has brought.",
        discussion: """
            Revokes the tokens at the provider (RFC 7009), and removes them, the profile's sites, the certificate that \
            the profile's EST service has issued, with its key and anchors, and the configuration profiles that the \
            sign-in has installed, from the home, even if the provider cannot be reached. If the command is interrupted, run it again. Your browser stays \
            signed in, if you have used it: if the provider has a page to sign out there, the command offers to open \
            it, or prints its address on a machine without a display or a terminal.

            EXAMPLES:
              countersign unenroll work
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var secrets: SecretOption
    @Argument(help: ArgumentHelp("The sign-in's name. (default: the only one)", valueName: "name"))
    var name: String?

    @Flag(help: "Leave your browser signed in at the provider.")
    var noSignOut = false

    static func reportWaiting(_ progress: RenewalProgress, for name: String) {
        guard progress == .waitingForOtherProcess else { return }
        Console.log(
            "info",
            "another process is renewing the access token or the certificate of \(name.debugDescription): waiting for it"
        )
    }

    func run() throws {
        let home = try homeOption.located()
        let session = try VaultAccess(home: home, secrets: secrets.input).session()
        let name = try name ?? Self.only(session.perform(ListSignIns()))
        let result = try session.perform(
            RemoveSignIn(name: name), OperationDialogue(report: { Self.reportWaiting($0, for: name) }))
        switch result {
        case .unknown where session.completedWipes.contains(name):
            Console.result("signed out: \"\(name)\" removed\n")
        case .unknown(let known):
            throw CountersignError.unknown("sign-in", name, known: known, addedBy: "enroll PROFILE")
        case .done(let result):
            Console.result("signed out: \"\(name)\" removed\n")
            for profile in result.profiles ?? [] { ProfileCommand.Remove.report(profile) }
            if let warning = result.warning {
                Console.warning(
                    "the provider has not revoked the tokens: \(warning)", hint: Self.unrevoked)
            }
            if let page = result.page, !noSignOut { try signOut(at: page, result) }
        }
    }

    /// The fate of tokens that the provider has not revoked.
    static let unrevoked = "they end by themselves; the provider's operator can end them earlier"

    /// Opens the page in the browser of the sign-in if the person agrees, and otherwise prints its address.
    private func signOut(at page: String, _ result: SignedOut) throws {
        let environment = ProcessInfo.processInfo.environment
        let used = result.userAgent.flatMap(UserAgentKind.init)
        // These windows have taken their cookies with them.
        guard used != .systemPrivate, used != .embedded else { return }
        // An earlier version, or an app, may have used a window.
        let state = used == nil ? "your browser may still be signed in" : "your browser is still signed in"
        if used != .device, UserAgentKind.preferred(in: environment) == .system, Confirmation.hasTerminal {
            let sentence = state.prefix(1).uppercased() + state.dropFirst()
            let question = "\(sentence). Open the provider's page to sign out?"
            guard try Confirmation(isGiven: false).asks(question) else { return }
            do throws(SignInError) {
                return try SystemBrowser(environment: environment).open(page)
            } catch {
                Console.warning(error.detail, hint: error.hint)
            }
        }
        Console.log("info", "\(state); this page ends that:")
        Console.write("\(page)\n", to: STDERR_FILENO)
    }

    static func only(_ signIns: [ListedSignIn]) throws -> String {
        guard let first = signIns.first, signIns.count == 1 else {
            throw CountersignError.unknown(
                signIns.isEmpty ? "there is no sign-in" : "there are several sign-ins; name one",
                known: signIns.map(\.name), addedBy: "enroll PROFILE")
        }
        return first.name
    }
}

/// `countersign status`.
struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show who is signed in, at which provider, and until when.",
        discussion: """
            STATE is `valid until` the time at which the access token expires; it is renewed before that if the \
            provider permits it. `at risk` says that another process has new tokens and cannot store them; if it ends \
            before it can, the sign-in is lost. The next tables show for what the sign-ins are: the granted scopes, \
            and the sites that they have added to the list, with all of them in --json; the client certificates that \
            they have brought, and until when they are valid; and the configuration profiles. Exit status 1 if a \
            sign-in has ended, or if the device does not comply with the policy of its organisation.

            EXAMPLES:
              countersign status
              countersign status --json | jq -r '.signIns[].account'
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var secrets: SecretOption
    @OptionGroup var output: ListOptions

    func run() throws {
        let home = try homeOption.located()
        let session = try VaultAccess(home: home, secrets: secrets.input).session()
        let signIns = try session.perform(ListSignIns())
        let profiles = try session.perform(ListProfiles()).filter { $0.owner != nil }
        let now = Int64(time(nil))
        if output.json {
            try Console.result(json: Report(signIns: signIns.map { Row($0, profiles, now: now) }))
        } else {
            output.show(
                ["NAME", "ACCOUNT", "PROVIDER", "STATE"],
                signIns.map {
                    [$0.name, Console.printable($0.account), $0.issuer, Console.printable($0.state(at: now))]
                })
            if !signIns.isEmpty { Console.result("\n") }
            output.show(
                ["NAME", "SCOPES", "SITES"],
                signIns.map { [$0.name, Self.some($0.scopes), Self.some($0.plainSites)].map(Console.printable) })
            let certified = signIns.compactMap { signIn in signIn.certificate.map { (signIn.name, $0) } }
            if !certified.isEmpty { Console.result("\n") }
            output.show(
                ["NAME", "CERTIFICATE", "SERVER", "STATE"],
                certified.map { name, certificate in
                    [
                        name, Console.printable(certificate.subject ?? "-"), certificate.server,
                        certificate.state(at: now),
                    ]
                })
            if !profiles.isEmpty { Console.result("\n") }
            output.show(
                ["NAME", "PROFILE", "IDENTIFIER", "INSTALLED"],
                profiles.map {
                    [$0.owner?.signIn ?? "", Console.printable($0.name), $0.identifier, Day.text($0.installed)]
                })
            if signIns.isEmpty {
                ListOptions.empty(
                    "there is no sign-in", in: home, hint: "`countersign enroll PROFILE` signs you in")
            }
        }
        let isAnyUnused = signIns.contains { $0.hasEnded(at: now) || $0.compliance?.isCompliant == false }
        if isAnyUnused { throw ExitCode.failure }
    }

    /// The first elements, so that the table stays readable.
    private static func some(_ texts: [String]) -> String {
        let shown = texts.prefix(texts.count == 5 ? 5 : 4).joined(separator: ", ")
        return texts.isEmpty ? "none" : texts.count > 5 ? "\(shown) and \(texts.count - 4) more" : shown
    }

    private struct Report: Encodable {
        let signIns: [Row]
    }

    private struct Row: Encodable {
        let name: String
        let issuer: String
        let account: String?
        let subject: String?
        let scope: String
        let profile: String
        let sites: [String]
        let signedIn: String
        let expires: String?
        let isRenewable: Bool
        let hasEnded: Bool
        let state: String
        let certificate: CertificateRow?
        let compliance: ComplianceRow?
        /// The identifiers of the configuration profiles that it has installed.
        let profiles: [String]

        init(_ signIn: ListedSignIn, _ known: [ProfileRecord], now: Int64) {
            compliance = signIn.compliance.map { ComplianceRow($0) }
            name = signIn.name
            issuer = signIn.issuer
            account = signIn.account.isEmpty ? nil : signIn.account
            subject = signIn.subject.isEmpty ? nil : signIn.subject
            scope = signIn.scope
            profile = signIn.source
            sites = signIn.sites
            signedIn = WallClock.rfc3339(signIn.signedIn)
            expires = signIn.expires == 0 ? nil : WallClock.rfc3339(signIn.expires)
            isRenewable = signIn.isRenewable
            hasEnded = signIn.hasEnded(at: now)
            state = signIn.state(at: now)
            certificate = signIn.certificate.map { CertificateRow($0, now: now) }
            profiles = known.filter { $0.owner?.signIn == signIn.name }.map(\.identifier)
        }
    }

    private struct CertificateRow: Encodable {
        let server: String
        let subject: String?
        let notAfter: String?
        let state: String

        init(_ certificate: ListedCertificate, now: Int64) {
            server = certificate.server
            subject = certificate.subject
            notAfter = certificate.notAfter.map(WallClock.rfc3339)
            state = certificate.state(at: now)
        }
    }
}

extension ListedCertificate {
    fileprivate func state(at now: Int64) -> String {
        if isMissing == true { return "refused; sign in again to request one" }
        guard let notAfter else { return pendingUntil == nil ? "to be requested" : "the server has not decided yet" }
        if notAfter <= now { return "expired \(WallClock.rfc3339(notAfter))" }
        let renewal = pendingUntil == nil ? failures > 0 ? ", not renewed" : "" : ", renewal requested"
        return "valid until \(WallClock.rfc3339(notAfter))\(renewal)"
    }
}

extension ListedSignIn {
    var scopes: [String] { scope.split(separator: " ").map(String.init) }

    /// The sites without their options.
    fileprivate var plainSites: [String] { sites.compactMap { $0.split(separator: " ").first.map(String.init) } }

    /// The person has to sign in again.
    fileprivate func hasEnded(at now: Int64) -> Bool {
        !ended.isEmpty || !isRenewable && expires != 0 && expires <= now
    }

    fileprivate func state(at now: Int64) -> String {
        if let unstored { return "at risk until new tokens can be stored: \(unstored)" }
        if !ended.isEmpty { return "ended: \(ended)" }
        if let compliance, !compliance.isCompliant {
            let remedy = "`countersign compliance remediate \(name)`"
            return "not used: the device does not comply: \(compliance.title); \(remedy)"
        }
        if hasEnded(at: now) { return "expired \(WallClock.rfc3339(expires))" }
        if failures > 0 { return "not renewed since \(WallClock.rfc3339(lastFailure))" }
        if expires == 0 { return "valid" }
        if expires <= now { return "to be renewed" }
        return "valid until \(WallClock.rfc3339(expires))" + (isRenewable ? ", renewable" : "")
    }
}
