// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc

/// Questions on the controlling terminal, whose wait for an answer ends with their task.
final class TerminalAnswers: Sendable {
    private let descriptor: Int32

    private static let lineBytes = 4096

    /// Nil if the process has no controlling terminal, or is in its background.
    init?() {
        descriptor = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        guard tcgetpgrp(descriptor) == getpgrp() else {
            close(descriptor)
            return nil
        }
    }

    deinit { close(descriptor) }

    func show(_ text: String) { Console.write(text, to: descriptor) }

    /// The next line; nil at the end of the input (Ctrl-D), or if the task is cancelled.
    func line(after prompt: String, echoes: Bool = true) async -> Secret? {
        var before = termios()
        let isHidden = !echoes && tcgetattr(descriptor, &before) == 0
        if isHidden {
            var hidden = before
            hidden.c_lflag &= ~tcflag_t(ECHO)
            // What was typed before the question is not its answer.
            tcsetattr(descriptor, TCSAFLUSH, &hidden)
        }
        defer {
            if isHidden {
                tcsetattr(descriptor, TCSAFLUSH, &before)
                show("\n")
            }
        }
        show(prompt)
        return await read()
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
                try? await Task.sleep(for: .milliseconds(50))
                continue
            }
            return Secret(bytes[..<count].prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") })
        }
        return nil
    }
}
