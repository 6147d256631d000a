// SPDX-License-Identifier: Apache-2.0

import Countersign
import Glibc

/// A yes or no of the person at the terminal, or given beforehand by `--yes`.
struct Confirmation {
    /// `--yes`.
    let isGiven: Bool

    private static let terminal = "/dev/tty"

    static var hasTerminal: Bool {
        let descriptor = open(terminal, O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        close(descriptor)
        return true
    }

    /// Throws where an answer will be wanted and nobody is there to give it.
    func check() throws {
        guard isGiven || Self.hasTerminal else {
            throw CountersignError(
                .environment, "there is no terminal to ask on, and nothing was written", hint: "--yes goes on unasked")
        }
    }

    /// Whether the answer is `y` or `yes`.
    func asks(_ question: String) throws -> Bool {
        if isGiven { return true }
        try check()
        let descriptor = open(Self.terminal, O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        Console.write("\(question) [y/N] ", to: descriptor)
        var answer: [UInt8] = []
        var byte: UInt8 = 0
        while answer.count < 64 {
            let count = read(descriptor, &byte, 1)
            if count < 0, errno == EINTR { continue }
            guard count == 1, byte != UInt8(ascii: "\n") else { break }
            answer.append(byte)
        }
        return ["y", "yes"].contains(String(decoding: answer, as: UTF8.self).lowercased())
    }
}
