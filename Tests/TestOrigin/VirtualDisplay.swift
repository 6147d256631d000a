// SPDX-License-Identifier: Apache-2.0

import Foundation

/// An X server without a screen (Xvfb), for programs with a window.
package final class VirtualDisplay: Sendable {
    /// The value of `DISPLAY`.
    package let name: String
    private let folder: TemporaryFolder
    private let process: ChildProcess
    /// Those of an earlier display with the same number.
    private let formerPrograms: [Int32: String]

    package init() throws {
        folder = try TemporaryFolder("display")
        // It writes the number and a line break at once when it can be used.
        process = try ChildProcess(
            Tool.path("Xvfb"),
            [
                "-displayfd", "1", "-screen", "0", "1024x768x24", "-nolisten", "tcp", "-noreset", "-fbdir", folder.path,
            ], capture: folder.file("xvfb"))
        name = try ":" + process.line(after: "")
        formerPrograms = Self.programs(on: name)
    }

    /// The environment of `countersign` with the web view in a window. There is no session bus.
    package var windowEnvironment: [String: String] {
        get throws {
            ["DISPLAY": name, "COUNTERSIGN_WEBVIEW": try Tool.webView()]
        }
    }

    /// The programs that were started on the display and have not ended.
    package var programs: [String] {
        Self.programs(on: name).compactMap { formerPrograms[$0] == nil ? $1 : nil }
    }

    /// The names of the programs whose environment names a display, by their process numbers.
    private static func programs(on name: String) -> [Int32: String] {
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc"))?.compactMap { Int32($0) } ?? []
        let wanted = Data("DISPLAY=\(name)".utf8)
        let found = processes.compactMap { process -> (Int32, String)? in
            guard let variables = FileManager.default.contents(atPath: "/proc/\(process)/environ"),
                variables.split(separator: 0).contains(where: { $0 == wanted })
            else { return nil }
            return (process, TextFile.text("/proc/\(process)/comm").trimmingCharacters(in: .newlines))
        }
        return Dictionary(uniqueKeysWithValues: found)
    }

    /// The screen's content in the format of xwd(1).
    package var screen: String { folder.file("Xvfb_screen0") }
}

extension Tool {
    /// `countersign-webview`: COUNTERSIGN_WEBVIEW, or the one that Scripts/test builds.
    package static func webView() throws -> String {
        let chosen = ProcessInfo.processInfo.environment["COUNTERSIGN_WEBVIEW"]
        return try webView(at: chosen ?? "\(repository)/.build-webview/debug/countersign-webview")
    }

    /// `webpage`, the example of WebView, which Scripts/test builds.
    package static func webPage() throws -> String {
        try webView(at: "\(repository)/.build-webview/debug/webpage")
    }

    private static func webView(at path: String) throws -> String {
        guard access(path, X_OK) == 0 else {
            throw HarnessError("there is no web view at \"\(path)\"; run Scripts/test, which builds it")
        }
        return path
    }
}
