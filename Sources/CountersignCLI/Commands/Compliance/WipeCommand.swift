// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignHome

/// `countersign wipe`.
struct WipeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "wipe",
        abstract: "Remove everything that one enrolment has brought, whatever happens.",
        discussion: """
            Removes what `unenroll` removes: the tokens, which the provider is asked to revoke, the certificate with \
            its key and anchors, the cookies, and the sites of the profile. Other enrolments stay as they are. From \
            the first moment on, no challenge of the enrolment is answered. If the command is interrupted or killed, \
            the next command that opens the vault completes the wipe, or `countersign serve` does.

            EXAMPLES:
              countersign wipe work
              countersign wipe work --yes
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var secrets: SecretOption
    @Argument(help: ArgumentHelp("The sign-in's name.", valueName: "name"))
    var name: String
    @Flag(help: "Do it without a prompt.")
    var yes = false

    func run() throws {
        let home = try homeOption.located()
        try Confirmation(isGiven: yes).check()
        let session = try VaultAccess(home: home, secrets: secrets.input).session()
        let listed = try session.perform(ListSignIns())
        if session.completedWipes.contains(name) { return Self.report(name) }
        if let signIn = listed.first(where: { $0.name == name }) {
            let account = signIn.account.isEmpty ? "" : " of \(Console.printable(signIn.account))"
            let question = "Remove everything that the enrolment \"\(name)\"\(account) at \(signIn.issuer) has brought?"
            guard try Confirmation(isGiven: yes).asks(question) else {
                throw CountersignError(.refused, "nothing was done")
            }
        }
        let result = try session.perform(
            WipeSignIn(name: name), OperationDialogue(report: { UnenrollCommand.reportWaiting($0, for: name) }))
        switch result {
        case .unknown(let known):
            throw CountersignError.unknown("sign-in", name, known: known, addedBy: "enroll PROFILE")
        case .done(let result):
            session.refreshServer()
            Self.report(name)
            if let warning = result.warning { Unrevoked.warn(warning) }
        }
    }

    private static func report(_ name: String) {
        Console.result("wiped: \"\(name)\" and all that it has brought is removed\n")
    }
}
