// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCryptography
import CountersignHome
import Glibc

/// The controlling terminal, even if the standard streams are redirected.
struct Terminal: ~Copyable {
    private let descriptor: Int32

    /// Nil if the process has no controlling terminal.
    init?() {
        descriptor = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
    }

    deinit { close(descriptor) }

    private enum Key {
        static let interrupt: UInt8 = 0x03
        static let endOfText: UInt8 = 0x04
        static let backspace: UInt8 = 0x08
        static let lineFeed: UInt8 = 0x0A
        static let carriageReturn: UInt8 = 0x0D
        static let killLine: UInt8 = 0x15
        static let delete: UInt8 = 0x7F
    }

    /// Reads a line without echo. Control-C restores the terminal's settings and ends the process.
    func prompt(_ text: String) -> Secret {
        guard let line = prompt(text, isAbandoned: { false }) else { exit(128 + SIGINT) }
        return line
    }

    /// Reads a line without echo. Nil after Control-C, and if the question is abandoned meanwhile; the terminal's
    /// settings are restored first.
    func prompt(_ text: String, isAbandoned: () -> Bool) -> Secret? {
        var before = termios()
        let isSettable = tcgetattr(descriptor, &before) == 0
        if isSettable {
            // ISIG off: Control-C must not end the process before the settings are restored.
            var hidden = before
            hidden.c_lflag &= ~tcflag_t(ECHO | ICANON | ISIG)
            tcsetattr(descriptor, TCSAFLUSH, &hidden)
        }
        Console.write(text, to: descriptor)
        var typed: [UInt8] = []
        typed.reserveCapacity(4096)
        defer { typed.wipe() }
        let isInterrupted = readKeys(into: &typed, isAbandoned)
        if isSettable { tcsetattr(descriptor, TCSAFLUSH, &before) }
        Console.write("\n", to: descriptor)
        if isInterrupted {
            typed.wipe()
            return nil
        }
        return Secret(typed)
    }

    /// Asks for a yes or no; anything but `y` or `yes` is a no.
    func confirms(_ question: String) -> Bool { confirms(question, isAbandoned: { false }) ?? false }

    /// Asks for a yes or no. Nil if the question is abandoned before it is answered.
    func confirms(_ question: String, isAbandoned: () -> Bool) -> Bool? {
        Console.write("\(question) [y/N] ", to: descriptor)
        var answer: [UInt8] = []
        var byte: UInt8 = 0
        while answer.count < 64 {
            guard waits(isAbandoned) else {
                // Discards a partial answer, so that the next program that reads the terminal does not receive it.
                tcflush(descriptor, TCIFLUSH)
                Console.write("\n", to: descriptor)
                return nil
            }
            let count = read(descriptor, &byte, 1)
            if count < 0, errno == EINTR { continue }
            guard count == 1, byte != UInt8(ascii: "\n") else { break }
            answer.append(byte)
        }
        return ["y", "yes"].contains(String(decoding: answer, as: UTF8.self).lowercased())
    }

    /// Waits until there is something to read. False if the question is abandoned before.
    private func waits(_ isAbandoned: () -> Bool) -> Bool {
        while !isAbandoned() {
            var descriptors = [pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)]
            if poll(&descriptors, 1, 100) != 0 { return true }
        }
        return false
    }

    private func readKeys(into typed: inout [UInt8], _ isAbandoned: () -> Bool) -> Bool {
        var key: UInt8 = 0
        while true {
            guard waits(isAbandoned) else { return true }
            let count = read(descriptor, &key, 1)
            if count < 0, errno == EINTR { continue }
            guard count == 1 else { return false }
            switch key {
            case Key.interrupt: return true
            case Key.endOfText, Key.lineFeed, Key.carriageReturn: return false
            case Key.killLine: typed.removeAll(keepingCapacity: true)
            case Key.backspace, Key.delete:
                // Remove a whole UTF-8 scalar: its continuation bytes and its first byte.
                while let last = typed.popLast(), last & 0xC0 == 0x80 {}
            default:
                if typed.count < 4096 { typed.append(key) }
            }
        }
    }
}

/// A yes or no from the person at the terminal, or given in advance with `--yes`.
struct Confirmation {
    /// `--yes`.
    let isGiven: Bool

    static var hasTerminal: Bool { Terminal() != nil }

    /// Throws if an answer is needed and there is no terminal to read it from.
    func check() throws {
        guard isGiven || Self.hasTerminal else {
            throw CountersignError(
                .environment, "there is no terminal to ask for confirmation; nothing was written",
                hint: "pass --yes to continue without a prompt")
        }
    }

    /// Whether the answer is `y` or `yes`.
    func asks(_ question: String) throws -> Bool {
        if isGiven { return true }
        try check()
        return Terminal()?.confirms(question) ?? false
    }
}

extension [UInt8] {
    /// Overwrites a secret in place.
    mutating func wipe() {
        withUnsafeMutableBytes { buffer in
            guard let start = buffer.baseAddress else { return }
            explicit_bzero(start, buffer.count)
        }
    }
}
