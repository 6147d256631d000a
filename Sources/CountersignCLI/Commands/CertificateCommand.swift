// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignVault

/// `countersign certificate`.
struct CertificateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "certificate",
        abstract: "Import, enrol, refresh, show or remove client certificates with their keys.",
        subcommands: [
            CertificateImportCommand.self, CertificateEnrollCommand.self, CertificateRefreshCommand.self,
            NeedsRefreshCommand.self, CertificateListCommand.self, CertificateInspectCommand.self, Remove.self,
        ])

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove",
            abstract: "Remove a client identity, its key included.",
            discussion: """
                With it goes how it was enrolled. A key in a token stays there.

                EXAMPLES:
                  countersign certificate remove laptop
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption
        @Argument(help: ArgumentHelp("The identity's name.", valueName: "name"))
        var name: String

        func run() throws {
            let home = try homeOption.located()
            guard IdentityName.isGood(name) else { throw try CertificateCommand.unknown(name, home) }
            let vault = try VaultDoor(home: home, secrets: secrets.input).openIfThere()
            let hadRecord = try vault?.update { $0.removeIdentity(named: name) } ?? false
            let hadChain = try home.identityChain(named: name).remove()
            guard hadRecord || hadChain else { throw try CertificateCommand.unknown(name, home) }
            Console.result("identity \"\(name)\" is removed\n")
        }
    }

    static func unknown(_ name: String, _ home: Home) throws -> CountersignError {
        CountersignError(
            .unknownName, "there is no identity \(name.debugDescription)",
            hint: KnownNames.hint(try home.identityNames(), enrolledBy: "certificate import"))
    }
}

extension VaultContents {
    /// Forgets an identity's key, or where it lies, and how the identity was enrolled; whether there was anything of it.
    mutating func removeIdentity(named name: String) -> Bool {
        let removed = [
            removeIdentityKey(named: name), removeTokenKey(named: name), removeEnrollment(named: name),
            removePendingEnrollment(named: name),
        ]
        return removed.contains(true)
    }
}
