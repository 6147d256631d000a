// SPDX-License-Identifier: Apache-2.0

import Glibc
import WebViewProtocol

/// Writes events, one per line.
struct EventWriter {
    private let file: Int32

    init(file: Int32) {
        self.file = file
    }

    /// Reserves standard output for events: output of a library there goes to standard error.
    static func takingStandardOutput() throws(StartFailure) -> EventWriter {
        let copy = fcntl(1, F_DUPFD_CLOEXEC, 3)
        guard copy >= 0, dup2(2, 1) == 1 else {
            throw StartFailure(
                code: .protocolError, sentence: "standard output or standard error is closed",
                remedy: "start it with pipes for standard input, output and error")
        }
        return EventWriter(file: copy)
    }

    /// Waits while the pipe is full. Returns false when the reader has gone.
    @discardableResult
    func write(_ event: Event) -> Bool {
        guard let line = try? event.line else { return false }
        var rest = (line + [UInt8(ascii: "\n")])[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            if count < 0 && errno != EINTR { return false }
            rest = rest.dropFirst(max(0, count))
        }
        return true
    }
}
