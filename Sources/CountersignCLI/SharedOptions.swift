// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import FoundationEssentials

/// `--home`, which every command takes.
struct HomeOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The home: AllowedSites, Certs and the vault. Else $COUNTERSIGN_HOME, else ~/.config/countersign.",
            valueName: "dir"))
    var home: String?

    func located() throws -> Home {
        try Home.locate(flag: home, environment: ProcessInfo.processInfo.environment)
    }
}

/// `--password-stdin`, for commands that need a secret.
struct SecretOption: ParsableArguments {
    @Flag(
        help: """
            Read secrets from standard input, a line each: the vault's passphrase if it has one, then what the command asks \
            for. Without it, a prompt on the terminal.
            """)
    var passwordStdin = false

    var input: SecretInput { SecretInput(isStandardInput: passwordStdin) }
}

/// `--json`.
struct JSONOption: ParsableArguments {
    @Flag(help: "Write JSON.")
    var json = false
}
