// SPDX-License-Identifier: Apache-2.0

import CountersignOAuth

/// Shows a person the pages of a provider (RFC 8252 §8.12): a browser, a web view, or an app's own window.
package protocol UserAgent: Sendable {
    /// Whether the agent itself notices that its page is sent to `redirect`, and reports that with
    /// ``SignInPage/redirected(to:)``. The sign-in listens for a loopback redirect in any case; all others need an
    /// agent that notices them (RFC 8252 §7.1, §7.2).
    func notices(_ redirect: RedirectURI) -> Bool

    /// Shows `page`. Called once for a sign-in.
    ///
    /// The end of the sign-in cancels the task. The agent then closes its windows and returns; the sign-in waits for
    /// that. An agent that hands the page to another program may return earlier: the sign-in goes on. An error ends the
    /// sign-in: ``SignInError``, with `noAgent` if there is no such agent and `cancelled` if the person has closed the
    /// page.
    func show(_ page: SignInPage) async throws
}

extension UserAgent {
    package func notices(_ redirect: RedirectURI) -> Bool { false }
}

/// The kinds of user agents that a profile or the command line can name.
package enum UserAgentKind: String, CaseIterable, Sendable {
    /// The person's browser, which shares its cookies.
    case system
    /// A private window of an installed browser, with a profile of its own that is deleted afterwards.
    case systemPrivate = "system-private"
    /// A window of our own (``EmbeddedAgent``).
    case embedded
    /// A code that the person enters in a browser elsewhere (RFC 8628).
    case device

    /// The kind for a machine with these environment variables: a browser needs a display.
    package static func preferred(in environment: [String: String]) -> UserAgentKind {
        hasDisplay(environment) ? .system : .device
    }

    /// `BROWSER` counts, because it is the person's choice.
    static func hasDisplay(_ environment: [String: String]) -> Bool {
        ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].contains { environment[$0].map { !$0.isEmpty } ?? false }
    }
}
