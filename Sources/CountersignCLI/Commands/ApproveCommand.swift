// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignAnswering
import CountersignEvents
import CountersignHome

/// `countersign approve`.
struct ApproveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "approve",
        abstract: "Permit requests that wait for you at a site with approve=.",
        discussion: """
            Without a number, lists the questions of the running proxy: which program wants to send what, with which \
            credential. Requests of one program to one site share a question, and wait for at most 60 seconds.

            EXAMPLES:
              countersign approve
              countersign approve 3
              countersign approve 3 --for 15-minutes
              countersign approve 3 --deny
            """)

    enum Duration: String, CaseIterable, ExpressibleByArgument {
        case once
        case quarter = "15-minutes"
        case always
    }

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var output: JSONOption

    @Option(
        name: .customLong("for"),
        help: ArgumentHelp(
            "Permit it once, for this program for 15-minutes, or always: until the proxy ends or the list changes.",
            valueName: "time"))
    var duration = Duration.once

    @Flag(help: "Refuse the requests.")
    var deny = false

    @Argument(help: ArgumentHelp("The number of the question. (default: list them)", valueName: "number"))
    var number: UInt64?

    func validate() throws {
        guard number != nil || !deny && duration == .once else {
            throw ValidationError("--deny and --for need the number of a question: `countersign approve` lists them")
        }
        guard !deny || duration == .once else { throw ValidationError("--deny and --for exclude each other") }
    }

    func run() throws {
        let home = try homeOption.located()
        guard let number else { return try list(home) }
        let answer = deny ? ApprovalBoard.Answer.deny.rawValue : duration.rawValue
        _ = try ControlSocket.ask(.approve(id: number, answer: answer), of: home)
        Console.result(deny ? "refused\n" : "permitted: \(duration.rawValue)\n")
    }

    private func list(_ home: Home) throws {
        guard let questions = try ControlSocket.ask(.questions, of: home).questions else {
            throw CountersignError.unexpectedAnswer
        }
        if output.json { return try Console.result(json: questions) }
        guard !questions.isEmpty else { return Console.log("info", "nothing waits for you") }
        for question in questions {
            let requests = question.waiting == 1 ? "1 request waits" : "\(question.waiting) requests wait"
            Console.result(
                "\(question.id)  \(question.client): \(question.method) \(question.site) with "
                    + "\"\(question.credential)\", \(requests), \(question.secondsLeft) s left\n")
        }
    }
}
