// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import FoundationEssentials

/// `--home`, an option of every command.
struct HomeOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The home folder. (default: $COUNTERSIGN_HOME, else ~/.config/countersign)",
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
            Read secrets from standard input, one per line: the vault's passphrase, if it has one, then the command's \
            own. (default: prompt on the terminal)
            """)
    var passwordStdin = false

    var input: SecretInput { SecretInput(isStandardInput: passwordStdin) }
}

/// `--json`.
struct JSONOption: ParsableArguments {
    @Flag(help: "Write JSON to standard output.")
    var json = false
}
