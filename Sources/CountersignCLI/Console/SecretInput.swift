// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCryptography
import CountersignHome
import Glibc
import Synchronization

/// Reads secrets from standard input, one per line, or from a prompt on the terminal; never from an argument or an
/// environment variable.
struct SecretInput {
    /// `--password-stdin`, or another flag that implies it.
    let isStandardInput: Bool
    /// The flag with which the command's secret is passed on standard input.
    var flag = "--password-stdin"

    /// The longest accepted secret, in bytes.
    private static let limitBytes = 16 << 10

    /// Reads one secret. On a terminal, input is not echoed, and is requested twice if `twice` is set.
    func read(_ what: String, twice: Bool = false) throws -> Secret {
        if isStandardInput {
            guard let secret = try Self.line() else {
                throw CountersignError(
                    .environment, "standard input has no line for \(what)",
                    hint: "one secret per line: pass show work | countersign … \(flag)")
            }
            return secret
        }
        guard let terminal = Terminal() else {
            throw CountersignError(
                .environment, "there is no terminal to ask for \(what)",
                hint: "pass it on standard input with \(flag)")
        }
        let secret = terminal.prompt("\(what.prefix(1).uppercased())\(what.dropFirst()): ")
        if twice, terminal.prompt("Again: ") != secret {
            throw CountersignError(
                .environment, "the two entries do not match", hint: "run the command again, and type the same twice")
        }
        return secret
    }

    /// Whether a person can try again after a wrong entry.
    var canAskAgain: Bool { !isStandardInput && Confirmation.hasTerminal }

    /// Says that the entry was wrong, and reads another.
    func readAgain(_ what: String) -> Secret? {
        Terminal()?.prompt("That is not \(what). Try again: ")
    }

    /// The lines that were read ahead.
    private static let ahead = Mutex<[Secret]>([])

    /// Whether standard input has two or more unused lines. Reads the first two; waits for the second one or the end of
    /// the input.
    static func hasSecondLine() throws -> Bool {
        var lines: [Secret] = []
        while lines.count < 2, let line = try line() { lines.append(line) }
        ahead.withLock { $0 = lines }
        return lines.count == 2
    }

    /// Reads the rest of standard input, and makes one secret of a JSON object that has several lines: the next one, or
    /// the second after the vault's passphrase.
    static func joinDocument() throws {
        var lines: [Secret] = []
        while let line = try line() { lines.append(line) }
        let start = lines.firstIndex { $0.withBytes { $0.first { !" \t".utf8.contains($0) } == UInt8(ascii: "{") } }
        guard let start else { return ahead.withLock { $0 = lines } }
        let count = lines[start...].reduce(0) { $0 + $1.count + 1 }
        guard count <= limitBytes else {
            throw CountersignError(.environment, "standard input has more than \(limitBytes) bytes")
        }
        let document = Secret(count: count) { output in
            var end = 0
            for line in lines[start...] {
                line.withBytes { UnsafeMutableRawBufferPointer(rebasing: output[end...]).copyMemory(from: $0) }
                end += line.count
                output[end] = UInt8(ascii: "\n")
                end += 1
            }
        }
        ahead.withLock { $0 = lines[..<start] + [document] }
    }

    private static func takeAhead() -> Secret? {
        ahead.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    }

    /// The next line of standard input without its line ending, or nil at the end of the input. Reads byte by byte, so
    /// that the rest stays for the next secret or for a child process.
    private static func line() throws -> Secret? {
        if let line = takeAhead() { return line }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(limitBytes + 1)
        defer { bytes.wipe() }
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
                throw CountersignError(
                    .environment, "the line on standard input is longer than \(limitBytes) bytes",
                    hint: "pass the secret alone, on one line")
            }
            bytes.append(byte)
        }
        if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        return Secret(bytes)
    }
}
