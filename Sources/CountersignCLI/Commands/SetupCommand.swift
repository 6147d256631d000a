// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignClientSetup
import CountersignHome
import FoundationEssentials

/// `countersign setup`.
struct SetupCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "setup",
        abstract: "Ask three questions, and set up the proxy: company proxy, trust stores, start at login.",
        discussion: """
            Looks for a company proxy in px.ini, in cntlm.conf, in the desktop's settings and in the proxy variables, \
            for trust stores, and for systemd. Asks whether to use each, and runs the commands for it, which it \
            prints: `countersign migrate FILE`, `countersign ca install`, `countersign service install`. You can run them \
            yourself just as well.

            EXAMPLES:
              countersign setup
              countersign setup --dry-run
            """)

    @OptionGroup var homeOption: HomeOption

    @Flag(help: "Answer yes to all questions.")
    var yes = false

    @Flag(help: "Print the commands for the answer yes to all questions, and run none.")
    var dryRun = false

    func run() throws {
        let home = try dryRun ? homeOption.located() : homeOption.locatedOrNew()
        let survey = try SetupSurvey(home: home, environment: ProcessInfo.processInfo.environment)
        guard yes || dryRun || Confirmation.hasTerminal else {
            throw CountersignError(
                .environment, "there is no terminal to ask; nothing was done",
                hint: "pass --yes, or run these yourself:\n"
                    + SetupPlan(survey, asks: { _ in true }).steps.map { "  \($0.text)" }.joined(separator: "\n"))
        }
        let plan = SetupPlan(survey) { question in
            if yes || dryRun {
                Console.result("\(question) yes\n")
                return true
            }
            return Terminal()?.confirms(question) ?? false
        }
        for remark in plan.remarks { Console.result("\(remark)\n") }
        var hasFailed = false
        for step in plan.steps {
            Console.result("\n$ \(step.text)\n")
            guard !dryRun else { continue }
            let status = try ToolProcess.run(try step.words(home), sharesErrors: true).status
            guard status != 0 else { continue }
            hasFailed = true
            Console.warning("this step failed with status \(status)", hint: "repeat it: `\(step.text)`")
        }
        if plan.steps.isEmpty { Console.result("nothing to do\n") }
        if try home.sites().isReallyEmpty {
            Console.log("hint", "list the first site: `countersign sites add https://git.corp.example`")
        }
        if hasFailed { throw ExitCode.failure }
    }
}
