// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import Glibc

/// `countersign status`.
struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show what runs, what needs you, and who is signed in.",
        discussion: """
            Shows the running proxy, the vault, the sites, credentials and client identities of the home, and your \
            Kerberos ticket. Then what needs you, with the commands that help: a vault that is locked, faults in the \
            list, credentials that a site has rejected, sign-ins that have ended, identities that have expired, a \
            device that does not comply. Then what ends within 30 days, if nothing renews it.

            In the tables about sign-ins, STATE is `valid until` the time at which the access token expires; it is \
            renewed before that if the provider permits it. `at risk` says that another process has new tokens and \
            cannot store them; if it ends before it can, the sign-in is lost. The other tables show the granted \
            scopes, the sites that a sign-in has added to the list, with all of them in --json, its client \
            certificate and its configuration profiles.

            Sends no request, and asks for no passphrase: without it, the contents of the vault are left out, unless \
            the running `countersign serve` has the vault open. Exit status 1 if anything needs you.

            EXAMPLES:
              countersign status
              countersign status --json | jq -r '.signIns[].account'
              countersign status --json | jq -r '.problems[].advice[]'
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var secrets: SecretOption
    @OptionGroup var output: JSONOption

    func run() throws {
        let home = try homeOption.located()
        let status = try StatusReader(home: home, secrets: secrets.input, now: Int64(time(nil))).read()
        if output.json {
            try Console.result(json: StatusReport(status))
        } else {
            Console.result(StatusText(status).text)
        }
        if !status.problems.isEmpty { throw ExitCode.failure }
    }
}
