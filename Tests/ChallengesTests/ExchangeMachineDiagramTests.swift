// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import CountersignChallenges

/// `Documentation/ExchangeMachine.md` is generated from the machine. `COUNTERSIGN_REGENERATE=1` overwrites it.
@Suite struct ExchangeMachineDiagramTests {
    private struct Transition: Hashable {
        let from: String
        let to: String
    }

    @Test func theDocumentationShowsTheMachineAsItIs() throws {
        let path = "\(#filePath)".replacingSuffix(
            "Tests/ChallengesTests/ExchangeMachineDiagramTests.swift", by: "Documentation/ExchangeMachine.md")
        let text = Self.document()
        if getenv("COUNTERSIGN_REGENERATE") != nil { try Self.write(text, to: path) }
        let hint: Comment = "run the test with COUNTERSIGN_REGENERATE=1 after a change of the machine"
        #expect(Self.read(path) == text, hint)
    }

    private static func document() -> String {
        var labels: [Transition: [String]] = [:]
        var order: [Transition] = []
        var rows: [String] = []
        for (state, difference, context, row) in allRows {
            var cells = [label(of: state) + (difference.map { " (\($0))" } ?? "")]
            for ((name, event), cell) in zip(ExchangeMachineTableTests.events, row.split(separator: " ")) {
                var machine = ExchangeMachineTableTests.machine(in: state, context)
                guard let action = machine.decide(event), cell != "." else {
                    cells.append("")
                    continue
                }
                let next = machine.state.name == state.name ? "" : " → \(machine.state.name)"
                cells.append(self.name(of: action) + next)
                let transition = Transition(from: state.name, to: machine.state.name)
                if labels[transition] == nil { order.append(transition) }
                if labels[transition]?.contains(name) != true { labels[transition, default: []].append(name) }
            }
            rows.append("| " + cells.joined(separator: " | ") + " |")
        }
        let arrows = order.filter { $0.from != $0.to }.map { transition in
            "    \(transition.from) --> \(transition.to): \(labels[transition]?.joined(separator: ", ") ?? "")"
        }
        let names = ExchangeMachineTableTests.events.map(\.name)
        let header = ["state"] + names
        return """
            # The exchange machine

            One request's exchange with a server that may challenge it, as `Sources/Challenges/ExchangeMachine+Table.swift`
            decides it for an origin's 401. A test renders this page from the code; run
            `COUNTERSIGN_REGENERATE=1 swift test --filter ExchangeMachineDiagramTests` after a change.

            The proxy does not use the machine directly: an `AnswerDialogue` (`Sources/Answering/Dialogue`) owns it, decides
            about the credential that it asks for, and takes the steps of its tokens.

            ```mermaid
            stateDiagram-v2
                [*] --> ready
            \(arrows.joined(separator: "\n"))
                finished --> [*]
            ```

            Each cell has the action and, if the state changes, the next state. An empty cell is a pair that only a faulty
            driver can cause. States in which schemes differ appear once per scheme, and states that decide differently in
            another context once per context.

            | \(header.joined(separator: " | ")) |
            |\(header.map { _ in "---" }.joined(separator: "|"))|
            \(rows.joined(separator: "\n"))

            """
    }

    /// The rows of the table, each followed by its state's variants.
    private static var allRows: [(ExchangeMachine.State, difference: String?, RequestContext, row: String)] {
        var rows: [(ExchangeMachine.State, difference: String?, RequestContext, row: String)] = []
        var variants = ExchangeMachineTableTests.variants
        for (state, row) in ExchangeMachineTableTests.table {
            rows.append((state, nil, .site(hasBody: true), row))
            for variant in variants where label(of: variant.state) == label(of: state) {
                rows.append((variant.state, variant.difference, variant.context, variant.row))
            }
            variants.removeAll { label(of: $0.state) == label(of: state) }
        }
        return rows
    }

    private static func label(of state: ExchangeMachine.State) -> String {
        switch state {
        case .asked(let pending): "\(state.name) (\(pending.offer.authenticator.name))"
        case .awaitingVerdict(let pending, _): "\(state.name) (\(pending.offer.authenticator.name))"
        default: state.name
        }
    }

    private static func name(of action: ExchangeMachine.Action) -> String {
        switch action {
        case .send(nil): "send unanswered"
        case .send: "send answer"
        case .sendOpening: "send opening"
        case .ask: "ask"
        case .computeToken: "compute token"
        case .deliver(.notChallenged): "deliver: not challenged"
        case .deliver(.accepted): "deliver: accepted"
        case .deliver(.handedBack): "deliver: handed back"
        case .deliver(.rejected): "deliver: rejected"
        case .fail: "fail"
        case .wait: "wait"
        }
    }

    private static func read(_ path: String) -> String? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        while case let byte = getc(file), byte != EOF { bytes.append(UInt8(truncatingIfNeeded: byte)) }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func write(_ text: String, to path: String) throws {
        let file = try #require(fopen(path, "w"))
        defer { fclose(file) }
        #expect(fputs(text, file) >= 0)
    }
}

extension String {
    fileprivate func replacingSuffix(_ suffix: String, by other: String) -> String {
        hasSuffix(suffix) ? dropLast(suffix.count) + other : self
    }
}
