// SPDX-License-Identifier: Apache-2.0

/// Shows a person the pages of a provider (RFC 8252 §8.12). The authorization response comes back through the redirect
/// URI, not through the agent.
package protocol UserAgent: Sendable {
    /// Shows `url` and returns without waiting for the person. `warn` receives a sentence if the page could not be
    /// shown after all, on any thread; the person can still open the URL elsewhere. Throws `noAgent` if there is no
    /// such agent.
    func open(_ url: String, warn: @escaping @Sendable (String) -> Void) throws(SignInError)

    /// The sign-in has ended.
    func close()
}

/// The kinds of user agents that a profile or the command line can name.
package enum UserAgentKind: String, CaseIterable, Sendable {
    /// The person's browser, which shares its cookies.
    case system
    /// A private window of an installed browser, with a profile of its own that is deleted afterwards.
    case systemPrivate = "system-private"
    /// A code that the person enters in a browser elsewhere (RFC 8628).
    case device

    /// The kind for a machine with these environment variables: a browser needs a display.
    package static func preferred(in environment: [String: String]) -> UserAgentKind {
        hasDisplay(environment) ? .system : .device
    }

    /// `BROWSER` counts, because the person has said what to use.
    static func hasDisplay(_ environment: [String: String]) -> Bool {
        ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].contains { environment[$0].map { !$0.isEmpty } ?? false }
    }
}
