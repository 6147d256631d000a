// SPDX-License-Identifier: Apache-2.0

import CountersignEvents
import Glibc
import Synchronization
import Testing

@testable import CountersignNotifications

@Suite struct TerminalAskerTests {
    /// A terminal, and the person at its other end.
    private final class Pair: Sendable {
        let person: Int32
        let terminal: Int32

        init() throws {
            person = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
            var (lock, number): (Int32, Int32) = (0, -1)
            // TIOCSPTLCK and TIOCGPTN.
            try #require(ioctl(person, 0x4004_5431, &lock) == 0 && ioctl(person, 0x8004_5430, &number) == 0)
            terminal = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC)
            try #require(terminal >= 0)
        }

        deinit {
            close(person)
            close(terminal)
        }

        func type(_ key: Character) {
            var byte = key.asciiValue ?? 0
            _ = write(person, &byte, 1)
        }

        var flags: tcflag_t {
            var settings = termios()
            tcgetattr(terminal, &settings)
            return settings.c_lflag
        }

        var readsKeys: Bool { flags & tcflag_t(ICANON | ECHO) == 0 }
    }

    private let pair: Pair
    private let desk = Desk()
    private let isForeground = Foreground()

    private final class Foreground: Sendable {
        let value = Atomic(true)
    }

    init() throws { pair = try Pair() }

    private func asker() throws -> TerminalAsker {
        let made = TerminalAsker(
            pair.terminal, desk: desk.desk,
            isForeground: { [isForeground] in isForeground.value.load(ordering: .relaxed) }, print: desk.report)
        let asker = try #require(made)
        desk.isAsked(by: asker)
        return asker
    }

    /// Presses a key until it is accepted: one that comes too early is not.
    private func press(_ key: Character, until condition: () -> Bool) async throws {
        try await waited {
            if !condition() { pair.type(key) }
            return condition()
        }
    }

    @Test func aKeyAnswersAndTheTerminalIsAsBefore() async throws {
        let before = pair.flags
        let asker = try asker()
        defer { asker.stop() }
        #expect(pair.flags == before, "nothing is asked")
        desk.ask([.made(1)])
        try await waited { pair.readsKeys }
        #expect(pair.flags & tcflag_t(ISIG) != 0, "Control-C ends the proxy")
        try await press("m") { !desk.answers.isEmpty }
        #expect(desk.answers == [.init(id: 1, answer: .quarter)])
        try await waited { desk.reports.last == "1: permitted for 15 minutes" }
        #expect(pair.flags == before)
    }

    @Test func aKeyBeforeTheQuestionDoesNotAnswer() async throws {
        let asker = try asker()
        pair.type("a")
        desk.ask([.made(1)])
        try await waited { pair.readsKeys }
        asker.stop()
        #expect(desk.answers.isEmpty && !pair.readsKeys)
    }

    @Test func anAnswerElsewhereEndsTheQuestion() async throws {
        let asker = try asker()
        defer { asker.stop() }
        desk.ask([.made(1), .made(2)])
        try await waited { pair.readsKeys }
        desk.end(1, "deny")
        try await waited { desk.reports.contains("1: refused elsewhere") }
        try await press("d") { !desk.answers.isEmpty }
        #expect(desk.answers == [.init(id: 2, answer: .deny)])
    }

    @Test func inTheBackgroundNothingIsReadOrChanged() async throws {
        isForeground.value.store(false, ordering: .relaxed)
        let before = pair.flags
        let asker = try asker()
        defer { asker.stop() }
        desk.ask([.made(1)])
        pair.type("a")
        desk.end(1, nil)
        isForeground.value.store(true, ordering: .relaxed)
        desk.ask([.made(2)])
        try await waited { pair.readsKeys }
        #expect(desk.reports.first?.hasPrefix("2: ") == true)
        asker.stop()
        #expect(desk.answers.isEmpty && pair.flags == before)
    }

    @Test func theLogHasNoQuestionThatIsAskedBesideIt() throws {
        let asker = try asker()
        defer { asker.stop() }
        #expect(asker.isInPlaceOfLog)
        isForeground.value.store(false, ordering: .relaxed)
        #expect(!asker.isInPlaceOfLog)
    }

    @Test func whatHasEndedWithTheProxyIsSaid() async throws {
        let asker = try asker()
        desk.ask([.made(1)])
        try await waited { pair.readsKeys }
        desk.end(1, nil)
        asker.stop()
        #expect(desk.reports.last?.hasPrefix("1: not answered: ") == true, "\(desk.reports)")
        #expect(!pair.readsKeys)
    }

    @Test func theEndOfTheProxyRestoresTheTerminal() async throws {
        let before = pair.flags
        let asker = try asker()
        desk.ask([.made(1)])
        try await waited { pair.readsKeys }
        asker.stop()
        #expect(pair.flags == before)
    }
}
