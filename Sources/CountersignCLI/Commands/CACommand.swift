// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import Glibc

/// `countersign ca`.
struct CACommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ca",
        abstract: "The interception CA, which vouches for listed sites towards your own programs.",
        subcommands: [Export.self, Install.self, Uninstall.self, Rotate.self])

    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "export",
            abstract: "Write the CA's root certificate, for programs to trust. Its key is never written.",
            discussion: """
                The CA is made where there is none yet. `countersign exec` and `countersign env` need no export.

                EXAMPLES:
                  countersign ca export --out countersign.pem
                  countersign ca export | openssl x509 -noout -text
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption

        @Option(help: ArgumentHelp("The file to write. Default: standard output.", valueName: "file"))
        var out: String?

        @Flag(help: "DER instead of PEM.")
        var der = false

        func run() throws {
            let home = try homeOption.located()
            let root = try ClientTrust(home: home, door: VaultDoor(home: home, secrets: secrets.input)).root()
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
