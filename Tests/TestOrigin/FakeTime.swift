// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Runs a program at another time, with libfaketime.
///
/// The `faketime` command is not used: it exits with 1 if a file in /dev/shm is named after its process ID. The library
/// leaves such a file behind, unless the preloaded program waits for the actual one, as `setsid --fork --wait` does.
/// That is needed anyway: a preloaded Swift program gets no arguments, because Swift finds them relative to the
/// environment, which the library moves.
package enum FakeTime {
    /// The environment for a program whose clock is `days` ahead.
    package static func environment(days: Int) throws -> [String: String] {
        try environment(["FAKETIME": "+\(days)d"])
    }

    /// The environment for a program whose clock is `minutes` ahead, or behind if negative.
    package static func environment(minutes: Int) throws -> [String: String] {
        try environment(["FAKETIME": minutes < 0 ? "\(minutes)m" : "+\(minutes)m"])
    }

    /// The environment for a program whose clock is `seconds` ahead.
    package static func environment(seconds: Int) throws -> [String: String] {
        try environment(["FAKETIME": "+\(seconds)s"])
    }

    /// The environment for a program that reads its offset, such as `+3d`, from a file whenever it reads the clock.
    package static func environment(readFrom file: String) throws -> [String: String] {
        try environment(["FAKETIME_TIMESTAMP_FILE": file, "FAKETIME_NO_CACHE": "1"])
    }

    /// The monotonic clock stays real, so that timeouts keep their length.
    private static func environment(_ time: [String: String]) throws -> [String: String] {
        let folders = ["x86_64-linux-gnu", "aarch64-linux-gnu"].map { "/usr/lib/\($0)/faketime/libfaketimeMT.so.1" }
        guard let library = folders.first(where: { access($0, R_OK) == 0 }) else {
            throw HarnessError("libfaketime is not installed; run Scripts/test, which installs it")
        }
        return time.merging(["LD_PRELOAD": library, "DONT_FAKE_MONOTONIC": "1"]) { own, _ in own }
    }
}
