// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The signals with which the system ends a program at a fault of its own.
///
/// If `SWIFT_BACKTRACE` enables it, the Swift runtime handles them: it stops every thread and starts a program that
/// prints what the threads do, with memory. A server would keep its port meanwhile, ignore SIGTERM, and not be started
/// again, and its output would contain secrets.
enum FatalSignals {
    static let all = [SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS]

    /// Leaves the signals to the Swift runtime, for whoever looks for a fault.
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
