// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// A server that faults ends at once, even if the Swift runtime is set to print a backtrace.
@Suite(.waiting) struct FatalSignalTests {
    private static let signals = [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS]
    private static let backtracer = ["SWIFT_BACKTRACE": "enable=yes"]

    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox() }

    @Test(arguments: signals, [[:], backtracer])
    func aFaultEndsTheServerAndFreesItsPort(_ signal: Int32, environment: [String: String]) throws {
        let server = try sandbox.serve(environment: environment)
        let address = try server.line(after: "countersign: listening on ")
        let said = server.errorOutput
        server.send(signal)
        #expect(server.waitForExit() == 128 + signal)
        #expect(server.errorOutput == said)
        // Another server listens there, and the control socket of the first one is not in its way.
        let next = try ChildProcess(
            try Sandbox.executable, ["serve", "--listen", address], environment: try sandbox.environment(),
            folder: sandbox.folder.path, capture: sandbox.folder.file("next"))
        #expect(try next.line(after: "countersign: listening on ") == address)
    }

    /// The signals that the process handles, as the kernel says.
    private func handled(by process: ChildProcess) throws -> [Int32] {
        let line = try #require(
            TextFile.lines("/proc/\(process.pid)/status").first { $0.hasPrefix("SigCgt:") })
        let digits = line.dropFirst("SigCgt:".count).trimmingCharacters(in: .whitespaces)
        let mask = try #require(UInt64(digits, radix: 16))
        return Self.signals.filter { mask & (1 << (UInt64($0) - 1)) != 0 }
    }

    @Test func onlyAPersonWhoAsksForItKeepsTheBacktracer() throws {
        #expect(try handled(by: sandbox.serve(environment: Self.backtracer)) == [])
        let kept = Self.backtracer.merging(["COUNTERSIGN_BACKTRACE": "1"]) { $1 }
        #expect(try handled(by: sandbox.serve("--home", "kept", environment: kept)).contains(SIGILL))
        let refused = Self.backtracer.merging(["COUNTERSIGN_BACKTRACE": "no"]) { $1 }
        #expect(try handled(by: sandbox.serve("--home", "refused", environment: refused)) == [])
    }

    @Test func everyCommandGivesTheSignalsBack() throws {
        // The shell sends the signal to the command itself, while that waits for its child.
        let result = try sandbox.sh(
            "SWIFT_BACKTRACE=enable=yes countersign exec -- sh -c 'kill -ILL $PPID; sleep 60'", seconds: 60)
        #expect(result.status == 128 + SIGILL)
        #expect(!result.said.contains("Thread "), "\(result.said)")
    }

    @Test func theServiceManagerStartsItAgain() {
        let lines = TextFile.lines("\(Tool.repository)/Scripts/countersign.service")
        // systemd.service(5): with this setting, the end by a signal other than SIGHUP, SIGINT, SIGTERM and SIGPIPE.
        #expect(lines.contains("Restart=on-failure"))
    }
}
