// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCryptography
import Glibc

/// Where a command takes its secrets from: standard input, a line each, or a prompt on the terminal. Never an argument or a
/// variable.
struct SecretInput {
    /// `--password-stdin`.
    let isStandardInput: Bool

    /// The longest secret that is read, in bytes.
    private static let limitBytes = 16 << 10

    /// One secret. On a terminal it is not shown, and asked for again when `twice`.
    func read(_ what: String, twice: Bool = false) throws -> Secret {
        if isStandardInput {
            guard let secret = try Self.line() else {
                throw CountersignError(
                    .environment, "standard input has no line for \(what)", hint: "it is read a line for each secret")
            }
            return secret
        }
        guard let terminal = Terminal() else {
            throw CountersignError(
                .environment, "there is no terminal to ask for \(what)",
                hint: "give it on standard input with --password-stdin")
        }
        let secret = terminal.prompt("\(what.prefix(1).uppercased())\(what.dropFirst()): ")
        if twice, terminal.prompt("Again: ") != secret {
            throw CountersignError(.environment, "the two are not the same")
        }
        return secret
    }

    /// The next line of standard input without its end; nil when there is none. Reads not a byte more.
    private static func line() throws -> Secret? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(limitBytes + 1)
        defer { wipe(&bytes) }
        var byte: UInt8 = 0
        while true {
            let count = Glibc.read(STDIN_FILENO, &byte, 1)
            if count < 0, errno == EINTR { continue }
            if count <= 0 {
                if bytes.isEmpty { return nil }
                break
            }
            if byte == UInt8(ascii: "\n") { break }
            guard bytes.count < limitBytes else {
                throw CountersignError(.environment, "the line on standard input is longer than \(limitBytes) bytes")
            }
            bytes.append(byte)
        }
        if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        return Secret(bytes)
    }

    static func wipe(_ bytes: inout [UInt8]) {
        bytes.withUnsafeMutableBytes { room in
            guard let start = room.baseAddress else { return }
            explicit_bzero(start, room.count)
        }
    }
}
