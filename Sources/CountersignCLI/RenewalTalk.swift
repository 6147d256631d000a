// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignCertificates
import Countersign
import CountersignCryptography
import Glibc
import CountersignProxy
import Synchronization

/// What a person is told of an enrolment or refresh while it goes on, and of what it came to. A terminal has a line that counts the
/// time down while the server decides.
final class RenewalTalk: Sendable {
    private let name: String
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private let countdown = Mutex<Task<Void, Never>?>(nil)

    init(name: String) { self.name = name }

    var report: @Sendable (IdentityRenewal.Progress) -> Void {
        { [self] progress in show(progress) }
    }

    private func show(_ progress: IdentityRenewal.Progress) {
        end()
        switch progress {
        case .asking(let server):
            if isTerminal { line("asking \(server)") }
        case .waitingForOtherProcess:
            Console.talk("info", "another process refreshes identity \"\(name)\": its result is waited for")
        case .waiting(let server, let until):
            Console.talk("info", "\(server) decides later: asked again \(WallClock.rfc3339(until))")
            if isTerminal { count(down: until, server) }
        case .notVerified(let server):
            Console.warning("the new certificate is in use without a trial: \(server) did not take part in one")
        case .fileNotWritten(let reason):
            Console.warning("the new certificate is in use, and the file of its chain is not written: \(reason)")
        }
    }

    /// Leaves the terminal with a clear line.
    func end() {
        countdown.withLock { task in
            task?.cancel()
            task = nil
            if isTerminal { Console.write("\r\u{1B}[K", to: STDERR_FILENO) }
        }
    }

    private func count(down until: Int64, _ server: String) {
        let task = Task.detached { [self] in
            while !Task.isCancelled {
                let left = max(0, until - Int64(time(nil)))
                countdown.withLock { task in
                    if task?.isCancelled == false { line("waiting for \(server): \(Self.text(left))") }
                }
                try? await Task.sleep(for: .seconds(1))
            }
        }
        countdown.withLock { $0 = task }
    }

    private func line(_ text: String) {
        Console.write("\r\u{1B}[Kcountersign: \(Console.printable(text))", to: STDERR_FILENO)
    }

    /// `1 h 02 m 03 s`.
    private static func text(_ seconds: Int64) -> String {
        let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60)
        if hours > 0 { return "\(hours) h \(minutes) m" }
        return minutes > 0 ? "\(minutes) m \(rest) s" : "\(rest) s"
    }

    // MARK: The end

    func result(_ outcome: IdentityRenewal.Outcome, verb: String) throws {
        switch outcome {
        case .renewed(let leaf):
            Console.result(
                "identity \"\(name)\" is \(verb): \(Console.printable(leaf.subject)), valid until \(Day.text(leaf.notAfter))\n"
            )
        case .pending(let until):
            Console.error(
                Diagnostic(
                    "the server has not decided about identity \"\(name)\" yet",
                    hint: "`countersign certificate refresh \(name)` asks again, from \(WallClock.rfc3339(until)) on; "
                        + "`serve` does so by itself"))
            throw ExitCode.failure
        }
    }
}
