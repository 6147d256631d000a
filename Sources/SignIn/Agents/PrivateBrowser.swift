// SPDX-License-Identifier: Apache-2.0

import Dispatch
import FoundationEssentials
import Glibc

/// A private window of an installed browser. It has a temporary profile, and so shares nothing with the person's own
/// browser. Both are removed after the sign-in.
package struct PrivateBrowser: UserAgent {
    private let environment: [String: String]

    /// How long the browser may take to end.
    private static let endLimit = DispatchTimeInterval.seconds(3)
    /// How long a redirect may be on its way when the browser has ended.
    private static let redirectLimit = Duration.seconds(2)

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

    package func show(_ page: SignInPage) async throws {
        let folder = try LockedFolder.browser(environment)
        defer { folder.remove() }
        // Firefox has a lock of its own in the profile.
        let profile = "\(folder.path)/profile"
        guard
            let words = Self.words(
                for: page.url.description, profile: profile, path: { AgentProcess.path(of: $0, in: environment) })
        else {
            throw SignInError(
                .noAgent, "there is no browser with private windows: neither Chromium nor Firefox is installed",
                hint: "install chromium or firefox, or use --user-agent system")
        }
        guard mkdir(profile, 0o700) == 0 else {
            throw SignInError(.environment, "cannot create \(profile): \(String(cString: strerror(errno)))")
        }
        let process = try AgentProcess(words, environment: environment)
        if let status = await process.status() {
            let hasProfile = (try? FileManager.default.contentsOfDirectory(atPath: profile).isEmpty) == false
            if status == 0, hasProfile {
                try await waitForWindow(of: BrowserProcesses(profile: profile, session: process.identifier))
            } else {
                page.report(.notShown(reason: Self.reason(words[0], status)))
            }
        }
        // The page can also be opened elsewhere.
        while !Task.isCancelled { try? await Task.sleep(for: .seconds(86_400)) }
        process.end()
        // The browser would write into its profile again.
        await process.waitForEnd(within: Self.endLimit)
    }

    /// The window may be that of another process than the first. Throws `cancelled` when the last one has ended, and
    /// returns if the sign-in ends before.
    private func waitForWindow(of processes: BrowserProcesses) async throws {
        await processes.end()
        do { try await Task.sleep(for: Self.redirectLimit) } catch { return }
        throw SignInError.windowClosed
    }

    /// Without a profile, the program is a wrapper that has passed the page to an unknown browser.
    private static func reason(_ program: String, _ status: Int32) -> String {
        guard status == 0 else { return "\(program) ended with status \(status)" }
        return "\(program) ended without using its profile; if no window shows the page, open the URL yourself"
    }
}
