// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignOAuth

/// The page that a user agent shows, and the agent's way to report what happens there. Every function may be called on
/// any thread.
package struct SignInPage: Sendable {
    package let url: EndpointURL
    /// The URI to which the provider sends the person in the end. A loopback URI has the port of the sign-in's
    /// listener.
    package let redirect: RedirectURI
    /// Where the provider's pages are: the origins of the issuer and its endpoints, each once. For an agent that
    /// restricts navigation.
    package let origins: [Origin]
    /// How long the sign-in waits for the person.
    package let limit: Duration
    private let reports: @Sendable (UserAgentEvent) -> Void
    private let judge: @Sendable (String) -> RedirectVerdict

    init(
        url: EndpointURL, redirect: RedirectURI, origins: [Origin], limit: Duration,
        report: @escaping @Sendable (UserAgentEvent) -> Void, judge: @escaping @Sendable (String) -> RedirectVerdict
    ) {
        self.url = url
        self.redirect = redirect
        self.origins = origins
        self.limit = limit
        reports = report
        self.judge = judge
    }

    package func report(_ event: UserAgentEvent) { reports(event) }

    /// The page was sent to `url`, which has the form of the redirect URI, with its query. After `accepted` and
    /// `failed` the page may be closed. After `foreign` it stays, because a frame or another site can also have done
    /// that.
    package func redirected(to url: String) -> RedirectVerdict { judge(url) }
}

/// What a user agent reports about its page. URLs are without user name, query and fragment; texts are printable.
package enum UserAgentEvent: Equatable, Sendable {
    /// The page could not be shown after all. The sign-in goes on, because the page can be opened by hand.
    case notShown(reason: String)
    case loadStarted(url: String)
    case loadFinished(url: String)
    case loadFailed(url: String, reason: String)
    /// The page wanted to leave the sign-in's origins, and was not permitted to.
    case navigationRefused(url: String, reason: String)
}

/// What the sign-in says about a redirect.
package enum RedirectVerdict: Sendable {
    /// It belongs to this sign-in.
    case accepted
    /// It belongs to this sign-in, and says that it failed.
    case failed
    /// It does not belong to this sign-in, which keeps waiting.
    case foreign
}
