// SPDX-License-Identifier: Apache-2.0

import Dispatch
import FoundationEssentials
import Synchronization

/// A private window of an installed browser. It has a temporary profile, and so shares nothing with the person's own
/// browser. Both are removed after the sign-in.
package final class PrivateBrowser: UserAgent {
    private let environment: [String: String]
    private let state = Mutex<(process: AgentProcess?, folder: String?)>((nil, nil))
    /// Signalled when the browser has ended.
    private let ended = DispatchSemaphore(value: 0)

    /// How long the browser may take to end, in seconds.
    private static let endSeconds = 3

    package init(environment: [String: String]) { self.environment = environment }

    private static let chromiums = [
        "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge", "brave-browser",
    ]
    private static let firefoxes = ["firefox", "firefox-esr"]

    /// The command for the first browser that is installed; nil if none is.
    static func words(
        for url: String, profile: String, path: (String) -> String?
    ) -> [String]? {
        for name in chromiums {
            guard let path = path(name) else { continue }
            return [
                path, "--user-data-dir=\(profile)", "--incognito", "--no-first-run", "--no-default-browser-check", url,
            ]
        }
        for name in firefoxes {
            guard let path = path(name) else { continue }
            return [path, "--no-remote", "--profile", profile, "--private-window", url]
        }
        return nil
    }

    package func open(_ url: String, warn: @escaping @Sendable (String) -> Void) throws(SignInError) {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "countersign-browser-\(UUID().uuidString)").path
        guard
            let words = Self.words(
                for: url, profile: folder, path: { AgentProcess.path(of: $0, in: environment) })
        else {
            throw SignInError(
                .noAgent, "there is no browser with private windows: neither Chromium nor Firefox is installed",
                hint: "install chromium or firefox, or use --user-agent system")
        }
        do {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        } catch {
            throw SignInError(.environment, "cannot create \(folder)")
        }
        state.withLock { $0.folder = folder }
        let process = try AgentProcess(words, environment: environment)
        state.withLock { $0.process = process }
        process.onEnd { [weak self, ended] status in
            ended.signal()
            let isOpen = self?.state.withLock { $0.process != nil }
            if status != 0, isOpen == true { warn("\(words[0]) ended with status \(status)") }
        }
    }

    /// Ends the browser and deletes its profile.
    package func close() {
        let (process, folder) = state.withLock { state in
            defer { state = (nil, nil) }
            return state
        }
        if let process {
            process.end()
            // The browser would write into its profile again.
            _ = ended.wait(timeout: .now() + .seconds(Self.endSeconds))
        }
        if let folder { try? FileManager.default.removeItem(atPath: folder) }
    }

    deinit { close() }
}
