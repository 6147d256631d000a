// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc

/// What is done before any command.
enum Startup {
    /// What the system would not do to protect secrets in memory.
    private static let warnings = ProcessHardening.apply()

    /// Before any secret exists and any other thread runs. A reader that goes away is an error of the write, not a signal.
    static func prepare() {
        signal(SIGPIPE, SIG_IGN)
        _ = warnings
    }

    /// Tells of ``warnings``; a command does so before it opens the vault.
    static func reportHardening() {
        for warning in warnings { Console.warning(warning) }
    }
}
