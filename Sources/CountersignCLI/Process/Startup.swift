// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc

/// Process set-up before the command runs.
enum Startup {
    /// The protections of secrets in memory that the system refused.
    private static let warnings = ProcessHardening.apply()

    /// Call it before any secret exists and before any other thread runs. Writing to a closed pipe, or beyond the limit
    /// of a file's size, is an error, not a signal.
    static func prepare() {
        FatalSignals.restore()
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        _ = InheritedDescriptors.atStart
        _ = warnings
    }

    /// Reports ``warnings``. A command calls this before it opens the vault.
    static func reportHardening() {
        for warning in warnings { Console.warning(warning) }
    }
}
