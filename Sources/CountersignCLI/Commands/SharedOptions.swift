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

/// `--allow-user`, for commands that run a proxy.
struct AllowedUserOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Also serve processes of this user, by name or number; may be repeated. They use your credentials.",
            valueName: "user"))
    var allowUser: [String] = []

    func validate() throws { _ = try numbers() }

    /// The users' numbers.
    func numbers() throws -> Set<UInt32> {
        Set(
            try allowUser.map { name in
                guard let number = SystemUsers.number(of: name) ?? UInt32(name) else {
                    throw ValidationError("--allow-user \(name.debugDescription): there is no such user")
                }
                return number
            })
    }
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
