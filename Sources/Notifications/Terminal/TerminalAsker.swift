// SPDX-License-Identifier: Apache-2.0

import CountersignEvents
import Dispatch
import Glibc

/// Asks on the terminal in which the proxy runs, while it is in the foreground there.
package final class TerminalAsker: QuestionAsker {
    private let inbox: QuestionInbox
    private let end = DispatchSemaphore(value: 0)
    private let isForeground: @Sendable () -> Bool

    /// `input` is a terminal. `print` writes a line for the person. Nil if the process has no descriptors left.
    package convenience init?(_ input: Int32, desk: QuestionDesk, print: @escaping @Sendable (String) -> Void) {
        self.init(input, desk: desk, isForeground: { tcgetpgrp(input) == getpgrp() }, print: print)
    }

    init?(
        _ input: Int32, desk: QuestionDesk, isForeground: @escaping @Sendable () -> Bool,
        print: @escaping @Sendable (String) -> Void
    ) {
        guard let inbox = QuestionInbox() else { return nil }
        self.inbox = inbox
        self.isForeground = isForeground
        DispatchQueue(label: "countersign.terminal").async { [end] in
            TerminalThread(input, desk, inbox, isForeground: isForeground, print: print).run()
            end.signal()
        }
    }

    /// In the background, nothing is asked. A question that waits while another is shown is asked after it.
    package var isInPlaceOfLog: Bool { isForeground() }

    package func questionAsked() { inbox.bell.ring() }

    package func questionEnded(_ id: UInt64, answer: String?) { inbox.tell(.init(id: id, answer: answer)) }

    package func stop() {
        inbox.stop()
        _ = end.wait(timeout: .now() + 1)
    }
}

/// The thread's variables.
private final class TerminalThread {
    private let input: Int32
    private let desk: QuestionDesk
    private let inbox: QuestionInbox
    private let isForeground: () -> Bool
    private let print: (String) -> Void
    private var dialogue = TerminalDialogue()
    private var mode: KeyMode
    /// The terminal is closed.
    private var hasEnded = false

    init(
        _ input: Int32, _ desk: QuestionDesk, _ inbox: QuestionInbox, isForeground: @escaping () -> Bool,
        print: @escaping (String) -> Void
    ) {
        self.input = input
        self.desk = desk
        self.inbox = inbox
        self.isForeground = isForeground
        self.print = print
        mode = KeyMode(input)
    }

    private static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    func run() {
        // A read in the background then fails instead of stopping the process.
        var stops = sigset_t()
        var before = sigset_t()
        sigemptyset(&stops)
        sigaddset(&stops, SIGTTIN)
        sigaddset(&stops, SIGTTOU)
        pthread_sigmask(SIG_BLOCK, &stops, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        while !inbox.isStopped, !hasEnded {
            takeEndings()
            let questions = desk.waiting()
            perform(dialogue.questionsRead(questions, isForeground: isForeground(), at: Self.now))
            // The shell reports no change of the foreground.
            let events = inbox.bell.wait(mode.isOn ? input : -1, milliseconds: dialogue.isBusy ? 1000 : -1)
            if events != 0 { readKey() }
        }
        // A question may end because the proxy does.
        takeEndings()
        mode.leave(isOurs: isForeground())
    }

    private func takeEndings() {
        for ending in inbox.takeEndings() { perform(dialogue.questionEnded(ending.id, answer: ending.answer)) }
    }

    private func readKey() {
        guard isForeground() else { return }
        var key: UInt8 = 0
        let count = read(input, &key, 1)
        if count == 1 { return perform(dialogue.keyPressed(key, at: Self.now)) }
        // EIO in the background, too: the foreground may have changed since.
        hasEnded = count == 0 || (errno != EINTR && errno != EAGAIN && isForeground())
    }

    private func perform(_ actions: [TerminalDialogue.Action]) {
        for action in actions {
            switch action {
            case .print(let line): print(line)
            case .readKeys: mode.enter()
            case .stopReading: mode.leave(isOurs: isForeground())
            case .answer(let id, let answer):
                perform(dialogue.answerGiven(id, answer, counted: desk.answer(id, answer)))
            case .suspend: kill(0, SIGTSTP)
            }
        }
    }
}
