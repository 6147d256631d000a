// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign

/// `countersign pause`.
struct PauseCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause",
        abstract: "Stop answering challenges in this home, until `countersign resume`.",
        discussion: """
            While a home is paused, no site counts as listed: every challenge goes back to the client, and nothing is \
            intercepted. Running servers and programs that use the home take notice at once, and those that start later \
            do so, too.

            EXAMPLES:
              countersign pause
            """)

    @OptionGroup var homeOption: HomeOption

    func run() throws {
        let isNew = try homeOption.located().setPaused(true)
        Console.result(isNew ? "paused: no challenge is answered\n" : "already paused\n")
    }
}

/// `countersign resume`.
struct ResumeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Answer challenges again after `countersign pause`.",
        discussion: """
            EXAMPLES:
              countersign resume
            """)

    @OptionGroup var homeOption: HomeOption

    func run() throws {
        let isNew = try homeOption.located().setPaused(false)
        Console.result(isNew ? "resumed: challenges of listed sites are answered\n" : "not paused\n")
    }
}
