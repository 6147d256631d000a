// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCryptography
import CountersignHome
import Glibc

/// `countersign certificate needs-refresh`.
struct CertificateNeedsRefreshCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "needs-refresh",
        abstract: "Check whether an identity needs a new certificate.",
        discussion: """
            Without a name, checks all identities. Exit status: 0 if one needs a new certificate, because it is past \
            two thirds of its lifetime, expired or damaged; 1 if not; 2 if there is no such identity.

            An imported identity has no server to refresh it: the reason names the command that imports a new file, \
            and `certificate refresh` fails with the same line.

            EXAMPLES:
              countersign certificate needs-refresh laptop && countersign certificate refresh laptop
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var output: JSONOption
    @OptionGroup var secrets: SecretOption

    @Argument(help: ArgumentHelp("The identity's name. (default: all)", valueName: "name"))
    var name: String?

    private static let noSuchCertificate = ExitCode(2)

    func run() throws {
        let home = try located()
        let session = try VaultAccess(home: home, secrets: secrets.input).session()
        let isName = name.map(IdentityName.isGood) ?? true
        let states = isName ? try session.perform(ListRenewalStates(of: name)) : []
        if name != nil, states.isEmpty {
            for diagnostic in Diagnostic.all(in: try IdentityName.unknown(name ?? "", home)) {
                Console.error(diagnostic)
            }
            throw Self.noSuchCertificate
        }
        let shown = states.map(Shown.init)
        if output.json {
            if name != nil, let only = shown.first {
                try Console.result(json: only)
            } else {
                try Console.result(json: shown)
            }
        } else {
            Console.result(shown.map(\.text).joined())
        }
        guard states.contains(where: \.isDue) else { throw ExitCode.failure }
    }

    private func located() throws -> Home {
        do {
            return try homeOption.located()
        } catch let error as CountersignError where error.code == .unknownName {
            Console.error(Diagnostic(error.detail, hint: error.hint))
            throw Self.noSuchCertificate
        }
    }

    /// One identity's state as text and JSON.
    private struct Shown: Encodable {
        let name: String
        let needsRefresh: Bool
        let reason: String
        let due: String
        let notAfter: String?
        let enrolled: Bool

        init(_ state: RenewalState) {
            name = state.name
            needsRefresh = state.isDue
            enrolled = state.isEnrolled
            due = WallClock.rfc3339(state.due)
            notAfter = state.notAfter.map(WallClock.rfc3339)
            let need =
                switch state.need {
                case .none: "not before \(Day.text(state.due))"
                case .aging: "since \(Day.text(state.due))"
                case .expired: state.notAfter.map { "expired \(Day.text($0))" } ?? "expired"
                case .damaged(let fault): fault
                case .missing: "its first certificate has not been issued yet"
                }
            reason = state.isDue && !state.isEnrolled ? "\(need); \(RenewalState.importAgain(state.name))" : need
        }

        var text: String { "\(name): \(needsRefresh ? "yes" : "no"), \(reason)\n" }
    }
}
