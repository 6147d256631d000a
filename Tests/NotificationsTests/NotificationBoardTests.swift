// SPDX-License-Identifier: Apache-2.0

import CountersignEvents
import Testing

@testable import CountersignNotifications

@Suite struct NotificationBoardTests {
    private typealias Action = NotificationBoard.Action
    private static let abilities = ServerAbilities(hasActions: true, readsMarkup: false)

    private static func notify(_ question: QuestionEvent, replacing number: UInt32 = 0) -> Action {
        .notify(question.id, DesktopNotification(question, replacing: number, for: abilities))
    }

    /// With question 1 as notification 11 of the server `:1.5`.
    private static func showing() -> NotificationBoard {
        var board = NotificationBoard()
        _ = board.questionsRead([.made(1)])
        _ = board.abilitiesReceived(abilities, from: ":1.5")
        _ = board.notificationShown(11, for: 1)
        return board
    }

    @Test func theServerIsAskedOnlyWhenThereIsAQuestion() {
        var board = NotificationBoard()
        #expect(board.questionsRead([]) == [])
        #expect(board.questionsRead([.made(1)]) == [.askAbilities])
        #expect(board.questionsRead([.made(1)]) == [])
        #expect(board.abilitiesReceived(Self.abilities, from: ":1.5") == [Self.notify(.made(1))])
        #expect(board.questionsRead([.made(1), .made(2)]) == [Self.notify(.made(2))])
    }

    @Test(arguments: [("allow-once", QuestionAnswer.once), ("allow-client", .quarter), ("deny", .deny)])
    func aButtonAnswersItsQuestion(key: String, answer: QuestionAnswer) {
        var board = Self.showing()
        #expect(board.actionInvoked(11, key: key, by: ":1.5") == [.answer(1, answer), .close(11)])
        #expect(board.actionInvoked(11, key: key, by: ":1.5") == [], "a second press")
        #expect(board.questionsRead([]) == [])
        #expect(!board.isBusy)
    }

    @Test(arguments: [(11, "default", ":1.5"), (12, "deny", ":1.5"), (11, "allow-once", ":1.6"), (11, "deny", nil)])
    func nothingElseAnswers(number: UInt32, key: String, sender: String?) {
        var board = Self.showing()
        #expect(board.actionInvoked(number, key: key, by: sender) == [])
        #expect(board.actionInvoked(11, key: "deny", by: ":1.5") == [.answer(1, .deny), .close(11)])
    }

    @Test func aChangedQuestionReplacesItsNotification() {
        var board = Self.showing()
        let changed = QuestionEvent.made(1, waiting: 2, secondsLeft: 30)
        #expect(board.questionsRead([.made(1, secondsLeft: 35)]) == [], "only time has passed")
        #expect(board.questionsRead([changed]) == [Self.notify(changed, replacing: 11)])
        #expect(board.questionsRead([.made(1, waiting: 3)]) == [], "one call at a time")
        #expect(board.notificationShown(11, for: 1) == [Self.notify(.made(1, waiting: 3), replacing: 11)])
    }

    @Test func aQuestionThatEndsIsClosed() {
        var board = Self.showing()
        #expect(board.questionsRead([]) == [.close(11)])
        #expect(board.actionInvoked(11, key: "deny", by: ":1.5") == [])
    }

    @Test func aQuestionThatEndsBeforeItsNumberIsKnownIsClosedThen() {
        var board = NotificationBoard()
        _ = board.questionsRead([.made(1)])
        _ = board.abilitiesReceived(Self.abilities, from: ":1.5")
        #expect(board.questionsRead([]) == [])
        #expect(board.isBusy)
        #expect(board.notificationShown(11, for: 1) == [.close(11)])
        #expect(!board.isBusy)
    }

    @Test func whatThePersonHasClosedStaysClosed() {
        var board = Self.showing()
        #expect(board.notificationClosed(11, by: ":1.6") == [])
        #expect(board.questionsRead([.made(1, waiting: 2)]).count == 1, "another program cannot close it")
        _ = board.notificationShown(11, for: 1)
        #expect(board.notificationClosed(11, by: ":1.5") == [])
        #expect(board.questionsRead([.made(1, waiting: 3)]) == [])
        #expect(board.ownerChanged(":1.9") == [.askAbilities])
        #expect(board.abilitiesReceived(Self.abilities, from: ":1.9") == [])
        #expect(board.questionsRead([]) == [])
    }

    @Test func anotherServerShowsTheQuestionsAgain() {
        var board = Self.showing()
        #expect(board.ownerChanged(":1.5") == [])
        #expect(board.ownerChanged(nil) == [])
        #expect(board.actionInvoked(11, key: "deny", by: ":1.5") == [], "the former one")
        #expect(board.questionsRead([.made(1)]) == [.askAbilities], "the bus may start one")
        #expect(board.abilitiesReceived(ServerAbilities(), from: ":1.8").count == 1)
    }

    @Test func aServerThatIsMissingIsReportedOnceAndTriedForTheNextQuestion() {
        var board = NotificationBoard()
        _ = board.questionsRead([.made(1)])
        #expect(board.serverMissed() == [.report("no program shows notifications on the session bus")])
        #expect(board.questionsRead([.made(1)]) == [])
        #expect(board.questionsRead([.made(1), .made(2)]) == [.askAbilities])
        #expect(board.serverMissed() == [])
        #expect(board.ownerChanged(":1.5") == [.askAbilities])
    }

    @Test func aLostBusStartsOver() {
        var board = Self.showing()
        #expect(board.busLost("x") == [.report("there is no session bus for notifications: x")])
        #expect(board.busLost("x") == [])
        #expect(board.questionsRead([.made(1)]) == [.askAbilities])
        var idle = NotificationBoard()
        #expect(idle.busLost("x") == [], "nothing waits")
    }

    @Test func aRefusedNotificationIsNotRepeated() {
        var board = NotificationBoard()
        _ = board.questionsRead([.made(1)])
        _ = board.abilitiesReceived(Self.abilities, from: ":1.5")
        #expect(board.notificationRefused(for: 1).count == 1)
        #expect(board.questionsRead([.made(1, waiting: 5)]) == [])
    }
}
