// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignHome
import Glibc

/// `countersign ca`.
struct CACommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ca",
        abstract: "Manage the local CA that issues certificates for listed sites to your own programs.",
        subcommands: [
            Export.self, CAInstallCommand.self, CAUninstallCommand.self, CARotateCommand.self,
        ])

    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "export",
            abstract: "Write the CA's root certificate, for programs to trust.",
            discussion: """
                Creates the CA if the home has none. The CA's key stays in the vault. `countersign exec` and \
                `countersign env` do not need an exported certificate.

                EXAMPLES:
                  countersign ca export --out countersign.pem
                  countersign ca export | openssl x509 -noout -text
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption

        @Option(help: ArgumentHelp("Write to this file. (default: standard output)", valueName: "file"))
        var out: String?

        @Flag(help: "Write DER instead of PEM.")
        var der = false

        func run() throws {
            if let out { try HomeFile(path: out).requireFolder() }
            let home = try homeOption.locatedOrNew()
            let root = try ClientTrust(home: home, access: VaultAccess(home: home, secrets: secrets.input)).root()
            let bytes = der ? root.der : Array(root.pem.utf8)
            if let out {
                try HomeFile(path: out).replace(with: bytes)
                Console.result("\(out): \(root.subject), valid until \(Day.text(root.notAfter))\n")
            } else {
                Console.write(bytes, to: STDOUT_FILENO)
            }
        }
    }
}
