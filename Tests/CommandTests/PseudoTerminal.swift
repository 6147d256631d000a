// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation

/// A program on a pseudoterminal that the test controls.
final class PseudoTerminal {
    private let person: Int32
    private let pid: pid_t
    private var output: [UInt8] = []
    /// The terminal's output so far.
    var screen: String { String(decoding: output, as: UTF8.self) }

    // TIOCSPTLCK and TIOCGPTN from <asm/ioctls.h>, in place of unlockpt(3) and ptsname(3).
    private static let setLock: UInt = 0x4004_5431
    private static let getNumber: UInt = 0x8004_5430

    /// The program leads a session whose controlling terminal is this one, which is also its three standard streams.
    init(_ command: [String], environment: [String: String], columns: UInt16 = 80) throws {
        person = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var unlocked: Int32 = 0
        var number: UInt32 = 0
        guard person >= 0, ioctl(person, Self.setLock, &unlocked) == 0, ioctl(person, Self.getNumber, &number) == 0
        else {
            throw HarnessError("cannot open a pseudoterminal")
        }
        var size = winsize(ws_row: 60, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        guard ioctl(person, UInt(TIOCSWINSZ), &size) == 0 else { throw HarnessError("cannot set the terminal's size") }
        let name = "/dev/pts/\(number)"
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, name, O_RDWR, 0)
        posix_spawn_file_actions_adddup2(&actions, 0, 1)
        posix_spawn_file_actions_adddup2(&actions, 0, 2)
        actions.closeAllButTheFirstThree()
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // POSIX_SPAWN_SETSID, which <spawn.h> declares for GNU sources only. The first terminal that the program opens
        // becomes its controlling terminal.
        posix_spawnattr_setflags(&attributes, 0x80)
        var arguments = command.map { strdup($0) } + [nil]
        var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { (arguments + variables).forEach { free($0) } }
        var child: pid_t = 0
        guard posix_spawn(&child, command[0], &actions, &attributes, &arguments, &variables) == 0 else {
            throw HarnessError("cannot start \(command[0])")
        }
        pid = child
    }

    deinit {
        kill(pid, SIGKILL)
        waitpid(pid, nil, 0)
        close(person)
    }

    /// Waits until the screen contains the text, then types.
    func when(_ text: String, type keys: String, seconds: Double = patience) throws {
        try when(text, type: Array(keys.utf8), seconds: seconds)
    }

    func when(_ text: String, type keys: [UInt8], seconds: Double = patience) throws {
        try waits(for: text, seconds: seconds)
        _ = keys.withUnsafeBytes { write(person, $0.baseAddress, $0.count) }
    }

    /// Waits until the screen contains the text.
    func waits(for text: String, seconds: Double = patience) throws {
        guard
            poll(
                seconds: seconds,
                {
                    self.look(); return self.screen.contains(text) ? true : nil
                }) == true
        else {
            throw HarnessError("the terminal does not show \(text.debugDescription): \(screen)")
        }
    }

    /// Types a key every tenth of a second until the screen contains the text: a key that comes too early may not
    /// count.
    func press(_ key: Character, until text: String, seconds: Double = patience) throws {
        var next = ContinuousClock.now
        let isShown: Bool? = poll(seconds: seconds) {
            self.look()
            if self.screen.contains(text) { return true }
            guard ContinuousClock.now >= next else { return nil }
            next = .now + .milliseconds(100)
            var byte = key.asciiValue ?? 0
            _ = write(self.person, &byte, 1)
            return nil
        }
        guard isShown == true else {
            throw HarnessError("the terminal does not show \(text.debugDescription): \(screen)")
        }
    }

    /// The terminal's settings.
    var echoes: Bool {
        var settings = termios()
        return tcgetattr(person, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
    }

    /// The exit status, or 128 + n after signal n; nil if it does not end.
    func waitForExit() -> Int32? {
        var status: Int32 = 0
        let ended: Bool? = poll {
            self.look()
            return waitpid(self.pid, &status, WNOHANG) == self.pid ? true : nil
        }
        guard ended == true else { return nil }
        look()
        return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
    }

    private func look() {
        var ready = pollfd(fd: person, events: Int16(POLLIN), revents: 0)
        var buffer = [UInt8](repeating: 0, count: 4096)
        while Foundation.poll(&ready, 1, 0) == 1, ready.revents & Int16(POLLIN) != 0 {
            let count = read(person, &buffer, buffer.count)
            guard count > 0 else { return }
            output += buffer.prefix(count)
        }
    }
}
