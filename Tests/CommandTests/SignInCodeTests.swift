// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// The QR code of a sign-in on another device.
@Suite(.waiting) struct SignInCodeTests {
    /// Runs a sign-in with a code on a terminal, and returns the terminal's lines.
    private func lines(
        _ bench: SignInSandbox, _ variables: [String: String] = ["TERM": "xterm", "LANG": "C.UTF-8"],
        columns: UInt16 = 80
    ) throws -> [String] {
        let terminal = try PseudoTerminal(
            [try Sandbox.executable, "enroll", bench.file("profile.json"), "--user-agent", "device", "--yes"],
            environment: try bench.sandbox.environment(adding: variables), columns: columns)
        try terminal.waits(for: "signed in as")
        #expect(terminal.waitForExit() == 0, "\(terminal.screen)")
        return terminal.screen.split(whereSeparator: \.isNewline).map(String.init)
    }

    private static let start = "\u{1B}[30;107m"
    private static let end = "\u{1B}[0m"

    /// Without an address that contains the code, the person types it.
    @Test(
        arguments: [
            ([:], "/enter?user_code=WDJB-MJHT"), (["no_code_url": true], "/enter"),
        ] as [([String: Bool], String)])
    func aReaderDecodesTheCodeOnTheTerminal(control: [String: Bool], path: String) throws {
        let bench = try SignInSandbox(control)
        let code = try lines(bench).filter { $0.hasPrefix(Self.start) && $0.hasSuffix(Self.end) }
            .map { Array($0.dropFirst(Self.start.count).dropLast(Self.end.count)) }
        let width = try #require(code.first?.count)
        // Eight pixels for a module, in a grey map (PGM).
        var pixels: [UInt8] = []
        for line in code {
            for isTop in [true, false] {
                let row = line.flatMap { block -> [UInt8] in
                    let isDark = block == "█" || block == (isTop ? "▀" : "▄")
                    return [UInt8](repeating: isDark ? 0 : 255, count: 8)
                }
                for _ in 0..<8 { pixels += row }
            }
        }
        let picture = bench.file("code.pgm")
        let head = "P5\n\(width * 8) \(code.count * 16)\n255\n"
        try Data(Array(head.utf8) + pixels).write(to: URL(fileURLWithPath: picture))
        let read = try Command.run(Tool.path("zbarimg"), ["--quiet", "--raw", picture], in: bench.sandbox.folder)
        #expect(read.output == "\(bench.provider.issuer)\(path)\n", "\(read.said)")
    }

    @Test func thereIsNoCodeOnATerminalThatCannotShowIt() throws {
        for (variables, columns) in [
            (["TERM": "xterm", "LANG": "C"], 80), (["TERM": "dumb", "LANG": "C.UTF-8"], 80),
            (["TERM": "xterm", "LANG": "C.UTF-8"], 30),
            (["TERM": "xterm", "LANG": "C.UTF-8", "LC_ALL": "POSIX"], 80),
        ] as [([String: String], UInt16)] {
            let lines = try lines(SignInSandbox(), variables, columns: columns)
            #expect(!lines.contains { $0.contains(Self.start) }, "\(lines)")
        }
    }
}
