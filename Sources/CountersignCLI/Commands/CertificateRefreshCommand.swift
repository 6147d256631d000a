// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignEnrollment
import Glibc
import CountersignVault

/// `countersign certificate refresh`.
struct CertificateRefreshCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "refresh",
        abstract: "Get a new certificate for an enrolled identity.",
        discussion: """
            With a name: now, whatever its age, which also mends a revoked or a damaged one. Without: for every enrolled identity \
            that is due, past two thirds of its life.

            The identity speaks for itself; where the server does not take it any more, the credential does that enrolled it. \
            The new certificate takes the place of the old one when the server has taken it in a TLS handshake; until then, and \
            whatever goes wrong, the old one stays.

            A server that will decide later is waited for, for a day at most. Whatever interrupts that, the next refresh goes on.

            EXAMPLES:
              countersign certificate refresh
              countersign certificate refresh laptop
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var secrets: SecretOption

    @Argument(help: ArgumentHelp("The identity's name. Default: all that are due.", valueName: "name"))
    var name: String?

    @Flag(help: "Ask for a certificate for the key that the identity has.")
    var reuseKey = false

    @Flag(help: "Do not wait for a server that will decide later.")
    var noWait = false

    func run() throws {
        let home = try homeOption.located()
        let vault = try VaultDoor(home: home, secrets: secrets.input).openIfThere()
        if let name {
            guard IdentityName.isGood(name), let vault else { throw try CertificateCommand.unknown(name, home) }
            guard vault.contents.plan(of: name) != nil || vault.contents.hasKey(of: name) else {
                throw try CertificateCommand.unknown(name, home)
            }
            return try refresh(name, home, vault)
        }
        guard let vault else { return Console.result("nothing is due\n") }
        try refreshDue(home, vault)
    }

    /// Every one that is due; a failure of one does not keep the others from it.
    private func refreshDue(_ home: Home, _ vault: OpenVault) throws {
        var hasFailed = false
        var isAnyDue = false
        for name in vault.contents.plannedNames {
            do {
                if try IdentityRenewal(home: home, vault: vault, now: Self.now).repairFile(of: name) {
                    isAnyDue = true
                    Console.result("the chain of identity \"\(name)\" is written again\n")
                }
                let state = RenewalState(named: name, in: vault.contents, home: home, now: Self.now())
                guard let state, state.isDue else { continue }
                isAnyDue = true
                try refresh(name, home, vault)
            } catch {
                hasFailed = true
                if error is ExitCode { continue }
                for diagnostic in Diagnostic.all(in: error) {
                    Console.error(Diagnostic("identity \"\(name)\": \(diagnostic.message)", hint: diagnostic.hint))
                }
            }
        }
        if hasFailed { throw ExitCode.failure }
        if !isAnyDue { Console.result("nothing is due\n") }
    }

    private func refresh(_ name: String, _ home: Home, _ vault: OpenVault) throws {
        let talk = RenewalTalk(name: name)
        let renewal = IdentityRenewal(home: home, vault: vault, now: Self.now, report: talk.report)
        var options = IdentityRenewal.Options()
        options.reusesKey = reuseKey
        if noWait { options.patienceSeconds = 0 }
        options.waitsForOtherProcess = !noWait
        defer { talk.end() }
        let outcome = try Blocking.run { [options] in try await renewal.refresh(name, options) }
        talk.end()
        try talk.result(outcome, verb: "refreshed")
    }

    private static let now: @Sendable () -> Int64 = { Int64(time(nil)) }
}
