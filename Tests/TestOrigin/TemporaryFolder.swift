// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A new folder that goes away with the value, or with the test run.
package final class TemporaryFolder: Sendable {
    package let path: String

    package init(_ name: String = "test") throws {
        let base = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
        var template = Array("\(base)/countersign-\(name)-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw HarnessError("cannot make a folder in \"\(base)\": \(String(cString: strerror(errno)))")
        }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        Reaper.shared.owns(folder: path)
        chmod(path, 0o755)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    package func file(_ name: String) -> String { "\(path)/\(name)" }

    /// Writes a file, its folders included, and returns its path.
    @discardableResult
    package func write(_ name: String, _ text: String) throws -> String {
        try write(name, Array(text.utf8))
    }

    @discardableResult
    package func write(_ name: String, _ bytes: [UInt8]) throws -> String {
        let place = file(name)
        try FileManager.default.createDirectory(
            atPath: (place as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        try Data(bytes).write(to: URL(fileURLWithPath: place), options: .atomic)
        return place
    }

    package func text(_ name: String) -> String { TextFile.text(file(name)) }
}

/// Reads of whole files; a missing one is empty.
package enum TextFile {
    package static func text(_ path: String) -> String { String(decoding: bytes(path), as: UTF8.self) }

    package static func bytes(_ path: String) -> [UInt8] {
        FileManager.default.contents(atPath: path).map(Array.init) ?? []
    }

    package static func lines(_ path: String) -> [String] {
        text(path).split(whereSeparator: \.isNewline).map(String.init)
    }
}

/// What went wrong in the harness itself, in one sentence.
package struct HarnessError: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
