// SPDX-License-Identifier: Apache-2.0

/// The person's browser: that of `$BROWSER`, else the desktop's, through `xdg-open`, `gio open` or the desktop portal.
package struct SystemBrowser: UserAgent {
    private let environment: [String: String]

    package init(environment: [String: String]) { self.environment = environment }

    /// A program and its arguments, without the URL.
    struct Command: Equatable {
        let words: [String]

        /// The URL is one argument, in place of each `%s` or after the others.
        func opening(_ url: String) -> [String] {
            guard words.dropFirst().contains(where: { $0.contains("%s") }) else { return words + [url] }
            return words.prefix(1) + words.dropFirst().map { $0.replacing("%s", with: url) }
        }
    }

    /// In the order in which they are tried. `BROWSER` is a list with colons; its entries may have arguments.
    var commands: [Command] {
        let named = (environment["BROWSER"] ?? "").split(separator: ":").map { entry in
            Command(words: entry.split(separator: " ").map(String.init))
        }
        return named.filter { !$0.words.isEmpty } + [
            Command(words: ["xdg-open"]), Command(words: ["gio", "open"]), Self.portal,
        ]
    }

    /// Asks the desktop to open the URL (org.freedesktop.portal.OpenURI), without a parent window and options: in a
    /// container or a sandbox, there may be a session bus and no browser.
    private static let portal = Command(
        words: ["gdbus", "call", "--session", "--dest", "org.freedesktop.portal.Desktop", "--object-path"]
            + ["/org/freedesktop/portal/desktop", "--method", "org.freedesktop.portal.OpenURI.OpenURI", "", "%s", "{}"])

    package func show(_ page: SignInPage) async throws {
        try await start(installed(opening: page.url.description), page)
    }

    /// Opens a page that no sign-in waits for, and returns without waiting for the browser.
    package func open(_ url: String) throws(SignInError) {
        for words in try installed(opening: url).prefix(1) { _ = try AgentProcess(words, environment: environment) }
    }

    /// How long a program may take to fail. One that runs longer has opened a window.
    private static let failureLimit = Duration.seconds(5)

    /// Opens a page, with the next program if one fails. Throws if none has opened it.
    func handOff(_ url: String) async throws {
        for words in try installed(opening: url) {
            guard let process = try? AgentProcess(words, environment: environment) else { continue }
            let status = await withTaskGroup(of: Int32?.self) { group in
                group.addTask { await process.status() }
                group.addTask {
                    try? await Task.sleep(for: Self.failureLimit)
                    return nil
                }
                defer { group.cancelAll() }
                return await group.next() ?? nil
            }
            guard let status, status != 0 else { return }
        }
        throw SignInError(
            .noAgent, "no program has opened the address that the page hands off",
            hint: "open it yourself, or set BROWSER")
    }

    /// The commands that are installed, with the URL.
    private func installed(opening url: String) throws(SignInError) -> [[String]] {
        let found = commands.compactMap { command -> [String]? in
            guard let path = AgentProcess.path(of: command.words[0], in: environment) else { return nil }
            return [path] + command.opening(url).dropFirst()
        }
        guard !found.isEmpty else {
            throw SignInError(
                .noAgent, "there is no browser: neither $BROWSER nor xdg-open nor gio nor gdbus is a program here",
                hint: "install xdg-utils and a browser, set BROWSER, or use --user-agent device")
        }
        return found
    }

    /// Starts the first command, and the next one if it fails, as `xdg-open` does without a browser. The browser stays
    /// open after the sign-in.
    private func start(_ commands: [[String]], _ page: SignInPage) async throws {
        for (index, words) in commands.enumerated() {
            let process: AgentProcess
            do throws(SignInError) {
                process = try AgentProcess(words, environment: environment)
            } catch {
                guard index > 0 else { throw error }
                return page.report(.notShown(reason: error.detail))
            }
            guard let status = await process.status(), status != 0 else { return }
            guard index < commands.count - 1 else {
                let reason = "\(words[0]) ended with status \(status); open the URL in a browser yourself"
                return page.report(.notShown(reason: reason))
            }
        }
    }
}
