// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCryptography
import CountersignHome
import Glibc

/// `countersign status`.
struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show what runs, what needs your attention, and who is signed in.",
        discussion: """
            Shows the running proxy, the vault, the sites, credentials and client identities of the home, and your \
            Kerberos ticket. Then what needs your attention, with the commands that help: a vault that is locked, \
            faults in the list, credentials that a site has rejected, sign-ins that have ended, identities that have \
            expired, a device that does not comply. Then what ends within 30 days, if nothing renews it.

            In the tables about sign-ins, STATE is `valid until` the time at which the access token expires; it is \
            renewed before that if the provider permits it. `at risk` says that another process has new tokens and \
            cannot store them; if it ends before it can, the sign-in is lost. The other tables show the granted \
            scopes, the sites that a sign-in has added to the list, with all of them in --json, its client \
            certificate and its configuration profiles.

            Sends no request, and asks for no passphrase: without it, the contents of the vault are left out, unless \
            the running `countersign serve` has the vault open. Exit status 1 if anything needs your attention.

            EXAMPLES:
              countersign status
              countersign status --watch
              countersign status --json | jq -r '.signIns[].account'
              countersign status --json | jq -r '.problems[].advice[]'
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var secrets: SecretOption
    @OptionGroup var output: JSONOption

    @Flag(help: "Show the tables about sign-ins alone, without header rows, for scripts.")
    var noHeader = false

    @Flag(help: "Show it again each second, until Control-C. Needs a terminal.")
    var watch = false

    func validate() throws {
        guard !watch || !output.json && !noHeader && !secrets.passwordStdin else {
            throw ValidationError("--watch excludes --json, --no-header and --password-stdin")
        }
    }

    func run() throws {
        let home = try homeOption.located()
        if watch { try show(home) }
        let status = try read(home)
        if output.json {
            try Console.result(json: StatusReport(status))
        } else if noHeader {
            let tables = status.contents.map {
                SignInTables(
                    signIns: $0.signIns, profiles: $0.profiles, now: status.now, columns: .max, hasHeader: false)
            }
            Console.result((tables?.texts ?? []).joined(separator: "\n"))
        } else {
            Console.result(StatusText(status).text)
        }
        if !status.problems.isEmpty { throw ExitCode.failure }
    }

    private func read(_ home: Home) throws -> HomeStatus {
        try StatusReader(home: home, secrets: secrets.input, now: Int64(time(nil))).read()
    }

    /// Draws the screen each second, over the previous one. Ends with the process.
    private func show(_ home: Home) throws -> Never {
        guard isatty(STDOUT_FILENO) == 1 else {
            throw CountersignError(
                .environment, "--watch needs a terminal, and standard output is not one",
                hint: "`countersign status --json` is for programs")
        }
        while true {
            var size = winsize()
            let isKnown = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_row > 1 && size.ws_col > 0
            let lines = Self.lines(
                of: StatusText(try read(home)).text, rows: isKnown ? Int(size.ws_row) : 24,
                columns: isKnown ? Int(size.ws_col) : 80)
            // Home, then each line with the rest of its row erased, then the rest of the screen.
            let screen = lines.map { "\(PrintableText.escaped($0))\u{1B}[K\n" }.joined()
            Console.result(unchanged: "\u{1B}[H\(screen)\u{1B}[J")
            sleep(1)
        }
    }

    /// The first lines of the text, as many as a terminal of this size shows above its last row.
    static func lines(of text: String, rows: Int, columns: Int) -> [String] {
        var rest = rows - 1
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
        let shown = lines.prefix { line in
            rest -= max(1, (line.count + columns - 1) / columns)
            return rest >= 0
        }
        return Array(shown)
    }
}
