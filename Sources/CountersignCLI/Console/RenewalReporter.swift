// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCertificates
import CountersignCryptography
import CountersignHome
import Glibc
import Synchronization

/// Reports the progress and the result of an enrolment or refresh. On a terminal, a line counts down the time to the
/// next poll of a server that has deferred its decision.
final class RenewalReporter: Sendable {
    private let name: String
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private let countdown = Mutex<Task<Void, Never>?>(nil)
    /// The warnings written so far.
    private let warnings = Mutex<Set<String>>([])

    init(name: String) { self.name = name }

    var report: @Sendable (IdentityRenewal.Progress) -> Void {
        { [self] progress in show(progress) }
    }

    private func show(_ progress: IdentityRenewal.Progress) {
        end()
        switch progress {
        case .asking(let server):
            if isTerminal { line("contacting \(server)") }
        case .waitingForOtherProcess:
            Console.log("info", "another process is renewing identity \"\(name)\": waiting for its result")
        case .waiting(let server, let until):
            Console.log("info", "\(server) has deferred its decision; next poll at \(WallClock.rfc3339(until))")
            if isTerminal { count(down: until, server) }
        case .pageToOpen(let url): Console.log("info", "open this page: \(url)")
        case .attributesNotRead, .attributesNotSupplied, .notVerified, .fileNotWritten:
            // Each poll of a server that defers its decision requests its attributes again.
            let isNew = warnings.withLock { warnings in progress.warning.map { warnings.insert($0).inserted } ?? false }
            if isNew, let warning = progress.warning { Console.warning(warning) }
        }
    }

    /// Stops the countdown and clears its line.
    func end() {
        countdown.withLock { task in
            task?.cancel()
            task = nil
            if isTerminal { Console.write(Array("\r\u{1B}[K".utf8), to: STDERR_FILENO) }
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
        Console.write(Array("\r\u{1B}[Kcountersign: \(Console.printable(text))".utf8), to: STDERR_FILENO)
    }

    /// `1 h 2 m`, `2 m 3 s` or `3 s`.
    private static func text(_ seconds: Int64) -> String {
        let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60)
        if hours > 0 { return "\(hours) h \(minutes) m" }
        return minutes > 0 ? "\(minutes) m \(rest) s" : "\(rest) s"
    }

    /// The exit status while a server has not yet decided.
    static let pending = ExitCode(3)

    /// Writes the outcome. Throws ``pending`` if the server has not yet decided.
    func result(_ outcome: IdentityRenewal.Outcome, verb: String) throws {
        switch outcome {
        case .renewed(let leaf):
            Console.result(
                "identity \"\(name)\" \(verb): \(Console.printable(leaf.subject)), "
                    + "\(Day.validity(until: leaf.notAfter, now: Int64(time(nil))))\n"
            )
        case .pending(let until):
            Console.error(
                Diagnostic(
                    "the server has not yet decided about identity \"\(name)\"",
                    hint: "run `countersign certificate refresh \(name)` after \(WallClock.rfc3339(until)), "
                        + "or leave it to `countersign serve`"))
            throw Self.pending
        }
    }
}
