// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignVault
import Glibc

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
        let vault = try VaultAccess(home: home, secrets: secrets.input).openIfThere()
        if let name {
            guard IdentityName.isGood(name), let vault else { throw try IdentityName.unknown(name, home) }
            guard vault.contents.plan(of: name) != nil || vault.contents.hasKey(of: name) else {
                throw try IdentityName.unknown(name, home)
            }
            return try refresh(name, home, vault)
        }
        guard let vault else { return Console.result("nothing is due\n") }
        try refreshDue(home, vault)
    }

    /// Refreshes every identity that is due. A failure of one does not stop the others.
    private func refreshDue(_ home: Home, _ vault: OpenVault) throws {
        var hasFailed = false
        var isPending = false
        var isAnyDue = false
        for name in vault.contents.plannedNames {
            do {
                if try IdentityRenewal(home: home, vault: vault, now: Self.now).repairFile(of: name) {
                    isAnyDue = true
                    Console.result("identity \"\(name)\": chain file restored\n")
                }
                let state = RenewalState(named: name, in: vault.contents, home: home, now: Self.now())
                guard let state, state.isRenewable else { continue }
                isAnyDue = true
                try refresh(name, home, vault)
            } catch let code as ExitCode where code == RenewalReporter.pending {
                isPending = true
            } catch {
                hasFailed = true
                for diagnostic in Diagnostic.all(in: error) {
                    Console.error(Diagnostic("identity \"\(name)\": \(diagnostic.message)", hint: diagnostic.hint))
                }
            }
        }
        warnAboutImported(home, vault)
        if hasFailed { throw ExitCode.failure }
        if isPending { throw RenewalReporter.pending }
        if !isAnyDue { Console.result("nothing is due\n") }
    }

    /// Nothing can renew an imported identity, so that it is not an error that it is due.
    private func warnAboutImported(_ home: Home, _ vault: OpenVault) {
        for name in vault.contents.identityOrder.sorted() {
            let state = RenewalState(named: name, in: vault.contents, home: home, now: Self.now())
            guard let state, state.isDue, !state.isEnrolled else { continue }
            Console.warning("identity \"\(name)\" needs a new certificate; \(RenewalState.importAgain)")
        }
    }

    private func refresh(_ name: String, _ home: Home, _ vault: OpenVault) throws {
        let reporter = RenewalReporter(name: name)
        let renewal = IdentityRenewal(home: home, vault: vault, now: Self.now, report: reporter.report)
        var options = IdentityRenewal.Options()
        options.reusesKey = reuseKey
        if noWait { options.patienceSeconds = 0 }
        options.waitsForOtherProcess = !noWait
        defer { reporter.end() }
        let outcome = try Blocking.run { [options] in try await renewal.refresh(name, options) }
        reporter.end()
        try reporter.result(outcome, verb: "refreshed")
    }

    private static let now: @Sendable () -> Int64 = { Int64(time(nil)) }
}
