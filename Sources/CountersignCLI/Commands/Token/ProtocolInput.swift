// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import Glibc

/// What a program writes to the standard input of a credential helper.
enum ProtocolInput {
    /// No such program writes more.
    private static let limitBytes = 64 << 10

    /// Everything up to the end of the input, or with `endsAtBlankLine` up to the first empty line. Throws for more
    /// than 64 KiB, and for text that is not UTF-8.
    static func read(endsAtBlankLine: Bool = false) throws -> String {
        var input: [UInt8] = []
        defer { input.wipe() }
        var buffer = [UInt8](repeating: 0, count: 4096)
        defer { buffer.wipe() }
        while true {
            let count = Glibc.read(STDIN_FILENO, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw CountersignError.system(errno, "cannot read standard input") }
            guard count > 0 else { break }
            input += buffer[..<count]
            guard input.count <= limitBytes else {
                throw CountersignError(.configuration, "standard input has more than \(limitBytes) bytes")
            }
            if endsAtBlankLine, input.ends(with: "\n\n".utf8) || input == [UInt8(ascii: "\n")] { break }
        }
        guard let text = String(validating: input, as: UTF8.self) else {
            throw CountersignError(.configuration, "standard input is not UTF-8")
        }
        return text
    }
}

extension [UInt8] {
    fileprivate func ends(with other: some BidirectionalCollection<UInt8>) -> Bool {
        reversed().starts(with: other.reversed())
    }
}
