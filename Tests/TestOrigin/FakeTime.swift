// SPDX-License-Identifier: Apache-2.0

import Foundation

/// What makes a program live in another time, by libfaketime.
///
/// Not by the `faketime` command, which ends with 1 where a file in /dev/shm has its process number. The library leaves such a file
/// behind unless the program that is started with it waits for the one that is meant, as `setsid --fork --wait` does: and a Swift
/// program that is started with it directly has no arguments, as the library moves the environment, by which Swift finds them.
package enum FakeTime {
    /// The environment of a program whose clock is `days` ahead.
    package static func environment(days: Int) throws -> [String: String] {
        try environment(["FAKETIME": "+\(days)d"])
    }

    /// The environment of a program that asks a file, such as `+3d`, each time that it asks for the time.
    package static func environment(readFrom file: String) throws -> [String: String] {
        try environment(["FAKETIME_TIMESTAMP_FILE": file, "FAKETIME_NO_CACHE": "1"])
    }

    /// What is waited for takes no longer.
    private static func environment(_ time: [String: String]) throws -> [String: String] {
        let folders = ["x86_64-linux-gnu", "aarch64-linux-gnu"].map { "/usr/lib/\($0)/faketime/libfaketimeMT.so.1" }
        guard let library = folders.first(where: { access($0, R_OK) == 0 }) else {
            throw HarnessError("libfaketime is not installed: run Scripts/test, which installs what these tests need")
        }
        return time.merging(["LD_PRELOAD": library, "DONT_FAKE_MONOTONIC": "1"]) { own, _ in own }
    }
}
