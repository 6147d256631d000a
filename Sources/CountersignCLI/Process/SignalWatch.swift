// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc

/// The signals of a long-running command, received by a dedicated thread.
enum SignalWatch {
    struct Arrival: Sendable {
        let number: Int32
        /// Whether a process sent it. The terminal signals its whole foreground process group itself.
        let isFromProcess: Bool
    }

    private static let numbers = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR2]

    /// All of them.
    static var set: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for number in numbers { sigaddset(&set, number) }
        return set
    }

    /// Blocks the signals in the calling thread and in the threads that it starts. Call it before starting any.
    static func block() {
        var set = set
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// All signals from now on. Call it once.
    static func arrivals() -> AsyncStream<Arrival> {
        AsyncStream { continuation in
            DispatchQueue(label: "countersign.signals").async {
                var set = set
                while true {
                    var information = siginfo_t()
                    let number = sigwaitinfo(&set, &information)
                    guard number > 0 else { continue }
                    // SI_USER, SI_QUEUE and SI_TKILL are 0 or negative; SI_KERNEL is positive.
                    continuation.yield(Arrival(number: number, isFromProcess: information.si_code <= 0))
                }
            }
        }
    }
}
