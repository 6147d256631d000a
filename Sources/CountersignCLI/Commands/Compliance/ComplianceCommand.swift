// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCryptography
import CountersignDeviceManagement
import CountersignHome
import CountersignOAuth
import CountersignSignIn
import FoundationEssentials
import Glibc
import Synchronization

/// `countersign compliance`.
struct ComplianceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "compliance",
        abstract: "Show whether this device complies with the policies of your sign-ins, and make it comply.",
        discussion: """
            A profile with "compliance_service" names a service of the organisation that knows whether this device \
            applies its policy. While it does not, no challenge of the sign-in's sites is answered.
            """,
        subcommands: [Status.self, Remediate.self])

    /// The response to a service's wish.
    static let restart =
        "the organisation wants programs to start again: restart those that use its sites"

    /// The rules that the device does not meet, with their help pages.
    static func show(_ rules: [ComplianceReport.Rule]) {
        for rule in rules {
            let more = rule.moreInformation.map { "; see \($0)" } ?? ""
            Console.log("info", Console.printable("\(rule.title): \(rule.description)\(more)"))
        }
    }

    /// Has the running server start again, if there is one.
    fileprivate static func restartServer(of home: Home) {
        do {
            _ = try ControlSocket.ask(.restart, of: home)
            Console.log("info", "`countersign serve` starts again")
        } catch let error as CountersignError where error.code == .notRunning {
        } catch {
            for diagnostic in Diagnostic.all(in: error) {
                Console.warning(
                    "`countersign serve` does not start again: \(diagnostic.message)", hint: diagnostic.hint)
            }
        }
    }

    struct Status: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "status",
            abstract: "Show what is known about compliance.",
            discussion: """
                The service is not asked. Exit status 1 if the device does not comply.

                EXAMPLES:
                  countersign compliance status
                  countersign compliance status --json | jq -r '.[].page'
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption
        @OptionGroup var output: ListOptions
        @Argument(help: ArgumentHelp("The sign-in's name. (default: all)", valueName: "name"))
        var name: String?

        func run() throws {
            let home = try homeOption.located()
            let all = try VaultAccess(home: home, secrets: secrets.input).session().perform(ListSignIns())
            let known = all.filter { $0.compliance != nil }
            if let name, !known.contains(where: { $0.name == name }) {
                throw CountersignError.unknown(
                    "sign-in with a compliance service", name, known: Set(known.map(\.name)), addedBy: "enroll PROFILE")
            }
            let shown = known.filter { name == nil || $0.name == name }.compactMap { signIn in
                signIn.compliance.map { (signIn, $0) }
            }
            if output.json {
                try Console.result(json: shown.map { ComplianceRow($0.1, name: $0.0.name) })
            } else {
                if shown.isEmpty {
                    ListOptions.empty(
                        "no sign-in has a compliance service", in: home,
                        hint: "profiles with \"compliance_service\" have one")
                }
                output.show(
                    ["NAME", "ACCOUNT", "STATUS", "CHECKED", "REASON", "PAGE"],
                    shown.map { signIn, compliance in
                        [
                            signIn.name, Console.printable(signIn.account), compliance.status,
                            WallClock.rfc3339(compliance.checked),
                            compliance.isCompliant ? "-" : Console.printable(compliance.text),
                            compliance.page ?? "-",
                        ]
                    })
            }
            if shown.contains(where: { !$0.1.isCompliant }) { throw ExitCode.failure }
        }
    }

    struct Remediate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remediate",
            abstract: "Make this device comply, and get a new access token.",
            discussion: """
                Asks the service to register this device, enrol it and apply the policy. If you have something to do, \
                its page is opened, and the command waits until you are done. Then the provider is asked for a new \
                access token. Exit status 1 if the device does not comply.

                EXAMPLES:
                  countersign compliance remediate work
                  countersign compliance remediate work --silent
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption
        @Argument(help: ArgumentHelp("The sign-in's name. (default: the only one)", valueName: "name"))
        var name: String?
        @Flag(help: "Open no page: fail if you have something to do.")
        var silent = false
        @Option(help: ArgumentHelp("Show the page in system, system-private or embedded.", valueName: "agent"))
        var userAgent: UserAgentKind?
        @Option(help: ArgumentHelp("Wait this long.", valueName: "seconds"))
        var timeout = 600

        func validate() throws {
            guard (1...86_400).contains(timeout) else { throw ValidationError("--timeout must be 1 to 86400 seconds") }
        }

        func run() async throws {
            let interrupts = Interrupts()
            let home = try homeOption.located()
            // The proxy of an embedded window needs the passphrase, too.
            let access = VaultAccess(home: home, secrets: secrets.input, remembered: RememberedPassphrase())
            let session = try access.session()
            let signIns = try session.perform(ListSignIns())
            let name = try name ?? UnenrollCommand.only(signIns)
            let environment = ProcessInfo.processInfo.environment
            let source = signIns.first { $0.name == name }?.profileText
            let profile = try source.map { try SignInProfile(Array($0.utf8)) }
            let kind = userAgent ?? profile?.userAgent ?? UserAgentKind.preferred(in: environment)
            let languages = PreferredLanguages.field(in: environment)
            // Asks a person only if something needs to be done.
            var isSilent = true
            var door: SignInDoor?
            while true {
                let pages = CompliancePages(profile, kind, environment, door, limit: .seconds(timeout))
                let operation = RemediateCompliance(
                    name: name, isSilent: isSilent, languages: languages, seconds: Int64(timeout))
                let result = Result {
                    try session.perform(
                        operation,
                        OperationDialogue(
                            report: { progress in
                                if case .pageToOpen(let url) = progress { pages.open(url) }
                            }, isAbandoned: { interrupts.haveArrived },
                            pageEnd: { pages.wasClosed ? .closed : nil }))
                }
                await pages.close()
                switch try result.get() {
                case .unknown(let known):
                    throw CountersignError.unknown("sign-in", name, known: known, addedBy: "enroll PROFILE")
                case .done(let report):
                    session.refreshServer()
                    if report.status == ComplianceStatus.interactionRequired.name, isSilent, !silent {
                        isSilent = false
                        if let profile {
                            door = try await SignInDoor.open(for: profile, in: kind, home, access)
                        }
                        continue
                    }
                    try Self.show(report, name)
                    if report.restarts { ComplianceCommand.restartServer(of: home) }
                    return
                }
            }
        }

        private static func show(_ report: ComplianceReport, _ name: String) throws {
            guard report.isCompliant else {
                ComplianceCommand.show(report.rules)
                let hint =
                    report.hasNoPolicy
                    ? "no protection policy is assigned; ask who administers the account"
                    : report.page.map { "open \($0)" }
                Console.error(
                    // Programs tell the outcomes apart by the name.
                    Diagnostic(Console.printable("\(report.status): \(report.title): \(report.message)"), hint: hint))
                throw ExitCode.failure
            }
            if report.restarts { Console.warning(ComplianceCommand.restart) }
            if let failure = report.tokenFailure {
                Console.warning(
                    "the device complies, but there is no new access token yet: \(failure)",
                    hint: "`countersign status` shows what becomes of it")
            }
            Console.result("compliant: the challenges of \"\(name)\" are answered\n")
        }
    }
}

/// A sign-in's compliance in JSON.
struct ComplianceRow: Encodable {
    let name: String?
    let account: String?
    let status: String
    let title: String?
    let message: String?
    let page: String?
    let checked: String
    let confirmed: String?
    let wipe: String?

    init(_ compliance: ListedCompliance, name: String? = nil) {
        self.name = name
        account = compliance.account
        status = compliance.status
        title = compliance.title.isEmpty ? nil : compliance.title
        message = compliance.message.isEmpty ? nil : compliance.message
        page = compliance.page
        checked = WallClock.rfc3339(compliance.checked)
        confirmed = compliance.confirmed.map { WallClock.rfc3339($0) }
        wipe = compliance.wipe.map { WallClock.rfc3339($0) }
    }
}

extension ListedCompliance {
    fileprivate var text: String { title.isEmpty ? message : "\(title): \(message)" }
}

/// Opens the page of a compliance service for a command, and ends the window's proxy with it.
final class CompliancePages: Sendable {
    private let profile: SignInProfile?
    private let kind: UserAgentKind
    private let environment: [String: String]
    private let door: SignInDoor?
    private let limit: Duration
    private let state = Mutex<(task: Task<Void, Never>?, wasClosed: Bool)>((nil, false))

    init(
        _ profile: SignInProfile?, _ kind: UserAgentKind, _ environment: [String: String], _ door: SignInDoor?,
        limit: Duration
    ) {
        self.profile = profile
        self.kind = kind
        self.environment = environment
        self.door = door
        self.limit = limit
    }

    /// Whether the person has closed the window.
    var wasClosed: Bool { state.withLock { $0.wasClosed } }

    /// Opens the page unless the agent is another device, and prints its address.
    func open(_ text: String) {
        guard let profile, let service = profile.compliance,
            let url = try? EndpointURL(text, "the page", profile.transport), service.pageOrigins.contains(url.origin)
        else { return }
        let agent = SignInFlow.Agent(kind, environment: environment, door: door?.door)
        let reporter = SignInReporter(isJSON: false, agent: kind, readsAddress: false)
        let show = ComplianceFlow.show(in: agent, for: profile, limit: limit, report: reporter.report)
        let task = Task.detached { [self] in
            do {
                try await show(url)
            } catch {
                failed(with: error)
            }
            await door?.close()
        }
        state.withLock { $0.task = task }
    }

    private func failed(with error: any Error) {
        guard !Task.isCancelled else { return }
        if (error as? SignInError)?.code == .cancelled { return state.withLock { $0.wasClosed = true } }
        for diagnostic in Diagnostic.all(in: error) {
            Console.warning(diagnostic.message, hint: diagnostic.hint)
        }
    }

    /// Closes the page if it is open.
    func close() async {
        guard let task = state.withLock({ $0.task }) else {
            await door?.close()
            return
        }
        task.cancel()
        await task.value
    }
}
