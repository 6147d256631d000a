// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignHome
import CountersignSignIn
import FoundationEssentials

/// `countersign ui`.
struct UICommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ui",
        abstract: "Open the page of the running proxy in your browser.",
        discussion: """
            The page shows what the proxy does: requests as they end, with the check that failed, what sites offer \
            and what was answered, credentials and certificates with their ends, and servers that cannot be verified. \
            It shows no path, no field's value and no secret.

            The link counts once, for two minutes. Only processes of your own user get the page.

            EXAMPLES:
              countersign ui
              countersign ui --print
            """)

    @OptionGroup var homeOption: HomeOption

    @Flag(help: "Print the link in place of opening it.")
    var print = false

    func run() throws {
        let home = try homeOption.located()
        guard let page = try ControlSocket.ask(.page, of: home).page else { throw CountersignError.unexpectedAnswer }
        if print { return Console.result("\(page)\n") }
        do throws(SignInError) {
            try SystemBrowser(environment: ProcessInfo.processInfo.environment).open(page)
            Console.log("info", "asked the browser to open the page; `countersign ui --print` prints a link")
        } catch {
            throw CountersignError(
                .environment, error.detail, hint: "`countersign ui --print` prints the link for another browser")
        }
    }
}
