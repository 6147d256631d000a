// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc

/// The lines that a person types or pastes into the terminal.
final class TerminalLines: Sendable {
    private let descriptor: Int32

    /// The longest line, in bytes. The terminal itself may cut at 4,095.
    private static let limitBytes = 16 << 10

    /// Nil if the process has no controlling terminal, or is in its background.
    init?() {
        descriptor = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        guard tcgetpgrp(descriptor) == getpgrp() else {
            close(descriptor)
            return nil
        }
    }

    deinit { close(descriptor) }

    /// The next line that is not empty; nil at the end of the input, or when the task is cancelled.
    func next() async -> String? {
        var bytes: [UInt8] = []
        while !Task.isCancelled {
            var chunk = [UInt8](repeating: 0, count: 4096)
            let count = read(descriptor, &chunk, chunk.count)
            if count == 0 { return nil }
            guard count > 0 else {
                guard errno == EAGAIN || errno == EINTR else { return nil }
                try? await Task.sleep(for: .milliseconds(100))
                continue
            }
            // The terminal returns a line at a time.
            bytes += chunk[..<count]
            guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")), bytes.count <= Self.limitBytes else {
                if bytes.count > Self.limitBytes { bytes = [] }
                continue
            }
            let line = String(decoding: bytes[..<end], as: UTF8.self).trimming(" \t\r")
            bytes = []
            if !line.isEmpty { return line }
        }
        return nil
    }
}
