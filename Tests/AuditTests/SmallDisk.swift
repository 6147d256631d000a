// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// A file system in memory of a given size, which another process has mounted for itself, until `deinit`.
final class SmallDisk {
    let path: String
    private let process = Process()
    private let input = Pipe()

    /// Whether this machine lets a user mount one.
    static let isPossible = (try? SmallDisk(size: "64k")) != nil

    init(size: String) throws {
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
        // Ends with its input.
        process.arguments = [
            "--map-root-user", "--mount", "sh", "-c",
            "mount -t tmpfs -o size=\(size) small /mnt && echo ready && exec cat",
        ]
        process.standardInput = input
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        path = "/proc/\(process.processIdentifier)/root/mnt"
        let ready = output.fileHandleForReading.readData(ofLength: 6)
        try #require(ready == Data("ready\n".utf8))
    }

    deinit {
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
    }

    /// Uses all of the space but `bytes`, rounded down to pages.
    func fill(leaving bytes: Int) throws {
        let attributes = try FileManager.default.attributesOfFileSystem(forPath: path)
        let free = try #require(attributes[.systemFreeSize] as? Int)
        try Data(count: free - bytes).write(to: URL(fileURLWithPath: "\(path)/filling"))
    }

    func empty() throws { try FileManager.default.removeItem(atPath: "\(path)/filling") }
}
