// SPDX-License-Identifier: Apache-2.0

import Foundation

/// An X server without a screen (Xvfb), for programs with a window.
package final class VirtualDisplay: Sendable {
    /// The value of `DISPLAY`.
    package let name: String
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init() throws {
        folder = try TemporaryFolder("display")
        // It writes the number and a line break at once when it can be used.
        process = try ChildProcess(
            Tool.path("Xvfb"),
            [
                "-displayfd", "1", "-screen", "0", "1024x768x24", "-nolisten", "tcp", "-noreset", "-fbdir", folder.path,
            ], capture: folder.file("xvfb"))
        name = try ":" + process.line(after: "", seconds: 60)
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
