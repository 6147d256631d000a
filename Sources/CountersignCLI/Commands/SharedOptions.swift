// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignCryptography
import CountersignHome
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

    /// The home of a command that only reads it. Throws `unknownName` if `--home` names one that does not exist,
    /// because it is probably mistyped.
    func located() throws -> Home {
        let home = try place()
        if try !home.exists(), self.home != nil { throw home.missing }
        return home
    }

    /// The home of a command that creates a missing one. Reports the creation if `--home` names the home.
    func locatedOrNew() throws -> Home {
        let home = try place()
        if try !home.exists(), self.home != nil {
            Console.log("info", "creating the home \(home.path)")
            try home.prepare()
        }
        return home
    }

    private func place() throws -> Home {
        let environment = ProcessInfo.processInfo.environment
        let place = try Home.locate(flag: home, environment: environment)
        let isAssumed = (try? Home.locate(flag: nil, environment: environment)) == place
        PrintedCommand.use(home: isAssumed ? nil : place.path)
        ParentOptions.useVariables(environment, place)
        return place
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

/// `--allow-local`, for commands that run a proxy.
struct LocalNamesOption: ParsableArguments {
    @Flag(
        help: """
            Let names of sites that are not listed lead to this machine or its link, such as 127.0.0.1 and \
            169.254.169.254. (default: only addresses, localhost and names in the hosts file may)
            """)
    var allowLocal = false
}

/// `--no-http2`, for commands that run a proxy.
struct HTTP2Option: ParsableArguments {
    @Flag(
        name: .customLong("no-http2"),
        help: """
            Speak only HTTP/1.1. (default: HTTP/2 with clients and sites that support it, except on sites with \
            http2=no)
            """)
    var isOff = false
}

/// `--spool`, for commands that run a proxy.
struct SpoolOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Keep up to this much of large uploads in encrypted files, in case the site challenges them; K, M or G. 0 "
                + "keeps none.",
            valueName: "size"))
    var spool = "256M"

    func validate() throws { _ = try bytes() }

    private func bytes() throws -> Int {
        guard let count = ByteCount(spool) else {
            throw ValidationError(
                "--spool \(spool.debugDescription) is not a size: write a whole number of bytes, or one with K, M or G")
        }
        return count.bytes
    }

    /// In bytes.
    var limitBytes: Int { (try? bytes()) ?? 0 }

    /// Puts the files into `$TMPDIR`, else into the home.
    func apply(to configuration: inout ProxyConfiguration, _ home: Home) {
        configuration.spoolLimitBytes = limitBytes
        let temporary = ProcessInfo.processInfo.environment["TMPDIR"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        configuration.spoolFolders = [temporary, home.path].compactMap(\.self)
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
