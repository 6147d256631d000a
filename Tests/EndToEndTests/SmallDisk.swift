// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation

/// A file system of a given size, in the mount namespace of a process. Needs no privileges.
final class SmallDisk: Sendable {
    let path: String
    private let keeper: ChildProcess

    init(_ folder: TemporaryFolder, size: String = "64k") throws {
        let script = "mount -t tmpfs -o size=\(size) small /mnt && echo ready && exec sleep 600"
        keeper = try ChildProcess(
            Tool.path("unshare"), ["--map-root-user", "--mount", "sh", "-c", script],
            capture: folder.file("disk"))
        _ = try keeper.line(after: "ready")
        path = "/proc/\(keeper.pid)/root/mnt"
    }
}
