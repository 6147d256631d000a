// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignAnswering
import CountersignEvents
import CountersignNotifications
import Glibc
import Synchronization

/// The questions of `serve` to the person, and the answers from the page, from `countersign approve` and from each
/// ``QuestionAsker``.
struct Approvals: Sendable {
    let board: ApprovalBoard
    private let events: EventBoard
    private let askers = Askers()

    private final class Askers: Sendable {
        private let askers = Mutex<[any QuestionAsker]>([])

        func add(_ asker: any QuestionAsker) { askers.withLock { $0.append(asker) } }

        var all: [any QuestionAsker] { askers.withLock { $0 } }
    }

    /// `log` gets a sentence about each new question that is not asked where the log is.
    init(_ events: EventBoard, log: @escaping @Sendable (String) -> Void) {
        self.events = events
        let askers = askers
        board = ApprovalBoard(
            now: {
                var time = timespec()
                clock_gettime(CLOCK_BOOTTIME, &time)
                return (Int64(time.tv_sec), Int64(Glibc.time(nil)))
            },
            asked: { question in
                events.tell(.question(QuestionEvent(question)))
                let askers = askers.all
                if !askers.contains(where: { $0.isInPlaceOfLog }) { log(Self.sentence(question)) }
                for asker in askers { asker.questionAsked() }
            },
            ended: { question, answer in
                events.tell(
                    .approval(
                        id: question.id, site: question.site, client: question.client,
                        answer: answer?.rawValue ?? "none"))
                for asker in askers.all { asker.questionEnded(question.id, answer: answer?.rawValue) }
            })
    }

    private static func sentence(_ question: ApprovalBoard.Question) -> String {
        "\(question.client) waits to send \(question.method) to \(question.site) with \"\(question.credential)\", as "
            + "question \(question.id): `countersign approve` lists and permits it"
    }

    /// From now on, `asker` asks, too.
    func add(_ asker: any QuestionAsker) { askers.add(asker) }

    /// For a ``QuestionAsker``.
    var desk: QuestionDesk {
        QuestionDesk(
            waiting: { [self] in waiting }, answer: { [self] id, answer in self.answer(id, answer.rawValue) })
    }

    /// Those that wait.
    var waiting: [QuestionEvent] { board.questions.map { QuestionEvent($0) } }

    /// Returns false if the question does not wait any more, or the answer is none.
    func answer(_ id: UInt64, _ word: String) -> Bool {
        ApprovalBoard.Answer(rawValue: word).flatMap { board.answer(id, $0) } != nil
    }
}

extension QuestionEvent {
    fileprivate init(_ question: ApprovalBoard.Question) {
        self.init(
            id: question.id, site: question.site, rule: question.rule, method: question.method,
            credential: question.credential, client: question.client, uid: question.uid, since: question.since,
            waiting: question.waiting,
            secondsLeft: question.secondsLeft)
    }
}
