// SPDX-License-Identifier: Apache-2.0

import CountersignEvents
import Synchronization

@testable import CountersignNotifications

extension QuestionEvent {
    static func made(
        _ id: UInt64, method: String = "POST", credential: String = "work", client: String = "/usr/bin/git",
        waiting: Int = 1, secondsLeft: Int64 = 41
    ) -> QuestionEvent {
        QuestionEvent(
            id: id, site: "https://git.corp.example:443", rule: "/secret/place.sites:1", method: method,
            credential: credential, client: client, uid: 7, since: 0, waiting: waiting, secondsLeft: secondsLeft)
    }
}

/// The questions of a proxy, and the answers that it gets.
final class Desk: Sendable {
    struct Answer: Equatable {
        let id: UInt64
        let answer: QuestionAnswer
    }

    private let state = Mutex((questions: [QuestionEvent](), answers: [Answer](), reports: [String]()))
    private let asker = Mutex<(any QuestionAsker)?>(nil)

    var desk: QuestionDesk {
        QuestionDesk(
            waiting: { [self] in state.withLock { $0.questions } },
            answer: { [self] id, answer in
                let isThere = state.withLock { state in
                    guard state.questions.contains(where: { $0.id == id }) else { return false }
                    state.answers.append(Answer(id: id, answer: answer))
                    state.questions.removeAll { $0.id == id }
                    return true
                }
                if isThere { asker.withLock { $0 }?.questionEnded(id, answer: answer.rawValue) }
                return isThere
            })
    }

    var report: @Sendable (String) -> Void {
        { [self] text in state.withLock { $0.reports.append(text) } }
    }

    func isAsked(by asker: any QuestionAsker) { self.asker.withLock { $0 = asker } }

    func ask(_ questions: [QuestionEvent]) {
        state.withLock { $0.questions = questions }
        asker.withLock { $0 }?.questionAsked()
    }

    /// Answered in another way.
    func end(_ id: UInt64, _ answer: String?) {
        state.withLock { $0.questions.removeAll { $0.id == id } }
        asker.withLock { $0 }?.questionEnded(id, answer: answer)
    }

    var answers: [Answer] { state.withLock { $0.answers } }

    var reports: [String] { state.withLock { $0.reports } }
}

struct WaitedTooLong: Error {}

/// Waits without occupying a thread.
func waited(until condition: () -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(60)
    while !condition() {
        guard ContinuousClock.now < end else { throw WaitedTooLong() }
        try await Task.sleep(for: .milliseconds(5))
    }
}
