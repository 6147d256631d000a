// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignHome
import CountersignVault

/// `countersign certificate`.
struct CertificateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "certificate",
        abstract: "Import, enrol, refresh, show or remove client certificates and their keys.",
        subcommands: [
            CertificateImportCommand.self, CertificateEnrollCommand.self, CertificateRefreshCommand.self,
            CertificateNeedsRefreshCommand.self, CertificateListCommand.self, CertificateInspectCommand.self,
            Remove.self,
        ])

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove",
            abstract: "Remove a client identity and its key.",
            discussion: """
                Also removes its enrolment, so it is no longer refreshed. A key in a token stays in the token.

                EXAMPLES:
                  countersign certificate remove laptop
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption
        @Argument(help: ArgumentHelp("The identity's name.", valueName: "name"))
        var name: String

        func run() throws {
            let home = try homeOption.located()
            guard IdentityName.isGood(name) else { throw try IdentityName.unknown(name, home) }
            let removed = try VaultAccess(home: home, secrets: secrets.input).session()
                .perform(RemoveIdentity(name: name))
            guard removed.count > 0 else { throw try IdentityName.unknown(name, home) }
            Console.result("identity \"\(name)\" removed\n")
        }
    }
}
