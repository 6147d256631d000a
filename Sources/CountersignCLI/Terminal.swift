// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc

/// The terminal of this process, whatever its standard streams are.
struct Terminal: ~Copyable {
    private let descriptor: Int32

    /// Nil where there is none.
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

    /// Asks for a line that is not shown. Control-C ends the process, with the terminal as it was before.
    func prompt(_ text: String) -> Secret {
        var before = termios()
        let isSettable = tcgetattr(descriptor, &before) == 0
        if isSettable {
            // Without signals: the terminal has to be set back before the process may end.
            var hidden = before
            hidden.c_lflag &= ~tcflag_t(ECHO | ICANON | ISIG)
            tcsetattr(descriptor, TCSAFLUSH, &hidden)
        }
        Console.write(text, to: descriptor)
        var typed: [UInt8] = []
        typed.reserveCapacity(4096)
        defer { SecretInput.wipe(&typed) }
        let isInterrupted = readKeys(into: &typed)
        if isSettable { tcsetattr(descriptor, TCSAFLUSH, &before) }
        Console.write("\n", to: descriptor)
        if isInterrupted {
            SecretInput.wipe(&typed)
            exit(128 + SIGINT)
        }
        return Secret(typed)
    }

    private func readKeys(into typed: inout [UInt8]) -> Bool {
        var key: UInt8 = 0
        while true {
            let count = read(descriptor, &key, 1)
            if count < 0, errno == EINTR { continue }
            guard count == 1 else { return false }
            switch key {
            case Key.interrupt: return true
            case Key.endOfText, Key.lineFeed, Key.carriageReturn: return false
            case Key.killLine: typed.removeAll(keepingCapacity: true)
            case Key.backspace, Key.delete:
                // A whole UTF-8 scalar: its continuation bytes and its first.
                while let last = typed.popLast(), last & 0xC0 == 0x80 {}
            default:
                if typed.count < 4096 { typed.append(key) }
            }
        }
    }
}
