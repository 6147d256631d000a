// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A new folder, deleted in `deinit` or at the end of the test run.
package final class TemporaryFolder: Sendable {
    package let path: String

    package init(_ name: String = "test") throws {
        let base = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
        var template = Array("\(base)/countersign-\(name)-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw HarnessError("cannot create a folder in \"\(base)\": \(String(cString: strerror(errno)))")
        }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        Reaper.shared.owns(folder: path)
        chmod(path, 0o755)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    package func file(_ name: String) -> String { "\(path)/\(name)" }

    /// Writes a file, creates its folders if necessary, and returns its path.
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

    /// Writes a script, and returns its path. Another process makes it executable: a process that another test starts
    /// at the same time could inherit a file that this one writes, which then could not be run (`ETXTBSY`).
    package func write(program name: String, _ text: String) throws -> String {
        let done = try Command.run(
            "/usr/bin/install", ["-m", "755", try write("\(name).text", text), file(name)], in: self)
        guard done.status == 0 else { throw HarnessError("cannot write \(name): \(done.said)") }
        return file(name)
    }

    package func text(_ name: String) -> String { TextFile.text(file(name)) }
}

/// Reads whole files. A missing file is empty.
package enum TextFile {
    package static func text(_ path: String) -> String { String(decoding: bytes(path), as: UTF8.self) }

    package static func bytes(_ path: String) -> [UInt8] {
        FileManager.default.contents(atPath: path).map(Array.init) ?? []
    }

    package static func lines(_ path: String) -> [String] {
        text(path).split(whereSeparator: \.isNewline).map(String.init)
    }
}

/// A failure of the test harness itself.
package struct HarnessError: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
