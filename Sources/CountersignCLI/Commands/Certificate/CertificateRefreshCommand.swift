// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignHome

/// `countersign certificate refresh`.
struct CertificateRefreshCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "refresh",
        abstract: "Get a new certificate for an enrolled identity.",
        discussion: """
            With a name, refreshes that identity now, even if it is not due; this also repairs a revoked or damaged \
            certificate. Without a name, refreshes every enrolled identity that is past two thirds of its lifetime.

            The current certificate authenticates the request; if the server no longer accepts it, the enrolment \
            credential is used. The old certificate is replaced only after the server has accepted the new one in a \
            TLS handshake. A failed refresh leaves the working certificate untouched.

            If the server defers its decision, the command polls it for up to one day. If it is interrupted, the next \
            refresh continues the same request. Exit status 3: the server has not decided yet.

            EXAMPLES:
              countersign certificate refresh
              countersign certificate refresh laptop
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var secrets: SecretOption

    @Argument(help: ArgumentHelp("The identity's name. (default: all that are due)", valueName: "name"))
    var name: String?

    @Flag(help: "Keep the current key instead of generating a new one.")
    var reuseKey = false

    @Flag(help: "Do not wait if the server defers its decision.")
    var noWait = false

    func run() throws {
        let home = try homeOption.located()
        let session = try VaultAccess(home: home, secrets: secrets.input).session()
        if let name {
            guard IdentityName.isGood(name),
                let state = try session.perform(ListRenewalStates(of: name)).first, state.hasKey || state.isEnrolled
            else { throw try IdentityName.unknown(name, home) }
            return try refresh(name, session)
        }
        try refreshDue(session)
    }

    /// Refreshes every identity that is due. A failure of one does not stop the others.
    private func refreshDue(_ session: VaultSession) throws {
        var hasFailed = false
        var isPending = false
        var isAnyDue = false
        for name in try session.perform(ListRenewalStates()).filter(\.isEnrolled).map(\.name) {
            do {
                if try session.perform(RepairIdentity(name: name)) {
                    isAnyDue = true
                    Console.result("identity \"\(name)\": chain file restored\n")
                }
                let state = try session.perform(ListRenewalStates(of: name)).first
                guard let state, state.isRenewable else { continue }
                isAnyDue = true
                try refresh(name, session)
            } catch let code as ExitCode where code == RenewalReporter.pending {
                isPending = true
            } catch {
                hasFailed = true
                for diagnostic in Diagnostic.all(in: error) {
                    Console.error(Diagnostic("identity \"\(name)\": \(diagnostic.message)", hint: diagnostic.hint))
                }
            }
        }
        let needsImport = try reportImported(session)
        if hasFailed || needsImport { throw ExitCode.failure }
        if isPending { throw RenewalReporter.pending }
        if !isAnyDue { Console.result("nothing is due\n") }
    }

    /// Nothing can renew an imported identity. Returns whether one needs a new certificate.
    private func reportImported(_ session: VaultSession) throws -> Bool {
        let states = try session.perform(ListRenewalStates()).filter { $0.hasKey && $0.isDue && !$0.isEnrolled }
        for state in states {
            Console.error(
                Diagnostic("identity \"\(state.name)\" has no server; \(RenewalState.importAgain(state.name))"))
        }
        return !states.isEmpty
    }

    private func refresh(_ name: String, _ session: VaultSession) throws {
        let reporter = RenewalReporter(name: name)
        var options = IdentityRenewal.Options()
        options.reusesKey = reuseKey
        if noWait { options.patienceSeconds = 0 }
        options.waitsForOtherProcess = !noWait
        defer { reporter.end() }
        let outcome = try session.perform(
            RefreshIdentity(name: name, options: options), OperationDialogue(report: reporter.report))
        reporter.end()
        try reporter.result(outcome, verb: "refreshed")
    }
}
