// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing

@testable import CountersignAnswering

@Suite struct ApprovalBoardTests {
    /// A board with a clock of its own, and what it has reported.
    private final class Stage: Sendable {
        let time = Mutex<Int64>(1000)
        let log = Mutex<[String]>([])
        let outcomes = Mutex<[ApprovalBoard.Outcome]>([])

        func board() -> ApprovalBoard {
            ApprovalBoard(
                now: { [self] in
                    let now = time.withLock { $0 }
                    return (now, now)
                },
                asked: { [self] question in
                    log.withLock { $0.append("asked \(question.id)" + (question.waiting == 1 ? "" : " by nobody")) }
                },
                ended: { [self] question, answer in
                    log.withLock { $0.append("ended \(question.id) \(answer?.rawValue ?? "none")") }
                })
        }

        func ask(
            _ board: ApprovalBoard, site: String = "https://a.example:443", method: String = "POST",
            program: String? = "/usr/bin/git", uid: UInt32 = 7
        ) -> ApprovalBoard.Ticket? {
            let reply = board.ask(
                .init(
                    site: site, rule: "a.sites:1", method: method, program: program, otherwise: "process 1", uid: uid),
                credential: "work"
            ) { [self] outcome in outcomes.withLock { $0.append(outcome) } }
            guard case .waiting(let ticket) = reply else { return nil }
            return ticket
        }
    }

    @Test func requestsOfOneClientShareAQuestion() {
        let stage = Stage()
        let board = stage.board()
        for _ in 0..<3 { #expect(stage.ask(board) != nil) }
        #expect(stage.ask(board, program: "/usr/bin/curl") != nil)
        #expect(board.questions.map(\.waiting) == [3, 1])
        #expect(board.answer(1, .once)?.id == 1)
        #expect(stage.outcomes.withLock { $0 } == [.allowed, .allowed, .allowed])
        #expect(board.questions.map(\.client) == ["/usr/bin/curl"])
        #expect(board.answer(2, .deny) != nil)
        #expect(stage.outcomes.withLock { $0.last } == .denied)
        #expect(stage.log.withLock { $0 } == ["asked 1", "asked 2", "ended 1 once", "ended 2 deny"])
        #expect(stage.ask(board) != nil, "once is over")
    }

    @Test(arguments: [
        (ApprovalBoard.Answer.quarter, Int64(899), true), (.quarter, 900, false), (.always, 1_000_000, true),
        (.once, 0, false), (.deny, 0, false),
    ])
    func anAgreementHoldsForItsTime(answer: ApprovalBoard.Answer, seconds: Int64, isAllowed: Bool) {
        let stage = Stage()
        let board = stage.board()
        _ = stage.ask(board)
        _ = board.answer(1, answer)
        stage.time.withLock { $0 += seconds }
        #expect((stage.ask(board) == nil) == isAllowed)
        #expect(stage.ask(board, program: "/usr/bin/curl") != nil, "another program is asked about")
        #expect(stage.ask(board, site: "https://b.example:443") != nil, "and so is another site")
        #expect(stage.ask(board, method: "DELETE") != nil, "and another method")
        #expect(stage.ask(board, uid: 8) != nil, "and another user")
    }

    @Test func aChangeOfTheListEndsWhatWasAgreed() {
        let stage = Stage()
        let board = stage.board()
        _ = stage.ask(board)
        _ = board.answer(1, .always)
        board.forgetAll()
        #expect(stage.ask(board) != nil)
    }

    @Test func afterAnotherProcessHasTakenOverNobodyIsAsked() {
        let stage = Stage()
        let board = stage.board()
        _ = stage.ask(board, program: "/usr/bin/curl")
        _ = board.answer(1, .quarter)
        _ = stage.ask(board)
        board.handOver()
        #expect(stage.outcomes.withLock { $0 } == [.allowed, .replaced] && board.questions.isEmpty)
        #expect(stage.log.withLock { $0.last } == "ended 2 none")
        _ = stage.ask(board)
        #expect(stage.outcomes.withLock { $0.last } == .replaced && board.questions.isEmpty)
        #expect(stage.ask(board, program: "/usr/bin/curl") == nil, "what was agreed before still counts")
        #expect(stage.log.withLock { $0.count } == 4, "nothing more is asked")
    }

    @Test func anUnknownProgramIsPermittedOnce() {
        let stage = Stage()
        let board = stage.board()
        _ = stage.ask(board, program: nil)
        _ = board.answer(1, .always)
        #expect(stage.outcomes.withLock { $0 } == [.allowed])
        #expect(stage.ask(board, program: nil) != nil)
        board.forgetAll()
        #expect(stage.outcomes.withLock { $0 } == [.allowed, .changed] && board.questions.isEmpty)
    }

    @Test func aQuestionEndsAfterAMinute() {
        let stage = Stage()
        let board = stage.board()
        _ = stage.ask(board)
        stage.time.withLock { $0 += ApprovalBoard.limitSeconds - 1 }
        _ = stage.ask(board)
        #expect(board.questions.map(\.secondsLeft) == [1])
        board.secondPassed()
        #expect(stage.outcomes.withLock { $0 }.isEmpty)
        stage.time.withLock { $0 += 1 }
        board.secondPassed()
        #expect(stage.outcomes.withLock { $0 } == [.timedOut, .timedOut])
        #expect(board.questions.isEmpty && board.answer(1, .once) == nil)
        #expect(stage.log.withLock { $0 } == ["asked 1", "ended 1 none"])
    }

    @Test func aClientThatHasGoneWithdrawsItsQuestion() throws {
        let stage = Stage()
        let board = stage.board()
        let first = try #require(stage.ask(board))
        let second = try #require(stage.ask(board))
        board.withdraw(first)
        board.withdraw(first)
        #expect(board.questions.map(\.waiting) == [1])
        board.withdraw(second)
        #expect(board.questions.isEmpty && stage.outcomes.withLock { $0 }.isEmpty)
    }

    @Test func thereIsRoomFor64Questions() {
        let stage = Stage()
        let board = stage.board()
        for number in 0..<70 { _ = stage.ask(board, program: "/bin/\(number)") }
        #expect(board.questions.count == 64)
        #expect(stage.outcomes.withLock { $0 } == Array(repeating: .crowded, count: 6))
    }
}
