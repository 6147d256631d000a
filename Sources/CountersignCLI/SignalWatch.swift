// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc

/// The signals of a command that stays, fetched by a thread of its own.
enum SignalWatch {
    struct Arrival: Sendable {
        let number: Int32
        /// A process sent it; the terminal, which signals every process in its foreground by itself, did not.
        let isFromProcess: Bool
    }

    private static let numbers = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]

    private static var set: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for number in numbers { sigaddset(&set, number) }
        return set
    }

    /// Blocks them in the calling thread and those that it makes. Call it before there are any.
    static func block() {
        var set = set
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Every arrival from now on. To be called once.
    static func arrivals() -> AsyncStream<Arrival> {
        AsyncStream { continuation in
            DispatchQueue(label: "countersign.signals").async {
                var set = set
                while true {
                    var information = siginfo_t()
                    let number = sigwaitinfo(&set, &information)
                    guard number > 0 else { continue }
                    // SI_USER, SI_QUEUE and SI_TKILL are 0 and below; SI_KERNEL is above.
                    continuation.yield(Arrival(number: number, isFromProcess: information.si_code <= 0))
                }
            }
        }
    }
}
