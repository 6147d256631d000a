// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignProxy
import FoundationEssentials
import Logging

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

/// `--access-log` and `--access-log-required`, for commands that run a proxy.
struct AccessLogOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("Append one JSON object per request to this file; - is standard output.", valueName: "file"))
    var accessLog: String?

    @Flag(
        help: """
            Answer requests with status 503 while the access log cannot be written. (default: forward them, and log \
            how many are missing)
            """)
    var accessLogRequired = false

    func validate() throws {
        guard accessLog != nil || !accessLogRequired else {
            throw ValidationError("--access-log-required requires --access-log")
        }
    }

    /// The log, whose failures are reported to `logger`.
    func open(_ logger: Logger) throws -> AccessLog? {
        try accessLog.map { path throws in
            try AccessLog(path: path, isRequired: accessLogRequired) { logger.warning("\($0)") }
        }
    }
}
