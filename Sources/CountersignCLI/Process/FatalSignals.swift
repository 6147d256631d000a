// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The signals with which the system ends a program at a fault of its own.
///
/// If `SWIFT_BACKTRACE` enables it, the Swift runtime handles them: it stops every thread and starts a program that
/// prints the threads' call stacks, with memory. Meanwhile, a server would keep its port, ignore SIGTERM, and not be
/// restarted, and the output would contain secrets.
enum FatalSignals {
    static let all = [SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS]

    /// Leaves the signals to the Swift runtime, for debugging.
    static let variable = "COUNTERSIGN_BACKTRACE"

    /// Gives the signals back to the system, which ends the process at once.
    static func restore() {
        if let value = getenv(variable), ["1", "yes", "true"].contains(String(cString: value).lowercased()) { return }
        for number in all where hasHandler(number) { signal(number, SIG_DFL) }
    }

    /// Not if the signal is ignored, as SIGQUIT is in a shell's background jobs.
    private static func hasHandler(_ number: Int32) -> Bool {
        var present = sigaction()
        guard sigaction(number, nil, &present) == 0 else { return false }
        let ignored = 1
        return unsafeBitCast(present.__sigaction_handler.sa_handler, to: Int.self) > ignored
    }
}
