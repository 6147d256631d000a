// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc

/// Questions on the controlling terminal, whose wait for an answer ends with their task.
final class TerminalAnswers: Sendable {
    private let descriptor: Int32

    private static let lineBytes = 4096
    /// The pause between polls of a terminal that has no input, or no room for output.
    private static let pause = Duration.milliseconds(50)

    /// Nil if the process has no controlling terminal, or is in its background.
    convenience init?() {
        let descriptor = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        guard tcgetpgrp(descriptor) == getpgrp() else {
            close(descriptor)
            return nil
        }
        self.init(owning: descriptor)
    }

    /// A terminal whose reads and writes do not block.
    init(owning descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Waits while the terminal accepts no output, as after Ctrl-S, until the task is cancelled.
    func show(_ text: String) async {
        var rest = Array(PrintableText.escaped(text, keepsLines: true).utf8)[...]
        while !rest.isEmpty, !Task.isCancelled {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if count < 0, errno == EAGAIN || errno == EINTR {
                try? await Task.sleep(for: Self.pause)
            } else {
                return
            }
        }
    }

    /// The next line; nil at the end of the input (Ctrl-D), or if the task is cancelled.
    func line(after prompt: String, echoes: Bool = true) async -> Secret? {
        var before = termios()
        let isHidden = !echoes && tcgetattr(descriptor, &before) == 0
        if isHidden {
            var hidden = before
            hidden.c_lflag &= ~tcflag_t(ECHO)
            // Input from before the question is not its answer.
            tcsetattr(descriptor, TCSAFLUSH, &hidden)
        }
        await show(prompt)
        let line = await read()
        if isHidden {
            tcsetattr(descriptor, TCSAFLUSH, &before)
            Console.write("\n", to: descriptor)
        }
        return line
    }

    private func read() async -> Secret? {
        var bytes = [UInt8](repeating: 0, count: Self.lineBytes)
        defer { bytes.wipe() }
        while !Task.isCancelled {
            // The terminal returns a line at a time.
            let count = Glibc.read(descriptor, &bytes, bytes.count)
            if count == 0 { return nil }
            guard count > 0 else {
                guard errno == EAGAIN || errno == EINTR else { return nil }
                try? await Task.sleep(for: Self.pause)
                continue
            }
            return Secret(bytes[..<count].prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") })
        }
        return nil
    }
}
