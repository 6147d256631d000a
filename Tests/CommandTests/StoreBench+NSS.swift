// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation

extension StoreBench {
    /// Creates an empty database in a folder of the user.
    func makeDatabase(_ path: String, method: String = "sql") throws {
        let place = folder.file("user/\(path)")
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        let made = try tool("certutil", "-N", "--empty-password", "-d", "\(method):\(place)")
        guard made.status == 0 else { throw HarnessError(made.said) }
    }

    /// The database's entries, as certutil prints them.
    func certutilLists(_ path: String, method: String = "sql") throws -> String {
        try tool("certutil", "-L", "-d", "\(method):\(folder.file("user/\(path)"))").output
    }

    /// Adds a fixture as a root of the user's own, with its file's name as the nickname.
    func addRoot(of fixture: String, to path: String, method: String = "sql") throws {
        let added = try tool(
            "certutil", "-A", "-n", fixture, "-t", "C,,", "-a", "-i", Tool.fixture(fixture), "-d",
            "\(method):\(folder.file("user/\(path)"))")
        guard added.status == 0 else { throw HarnessError(added.said) }
    }
}
