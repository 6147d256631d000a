// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignOAuth

/// The page that a user agent shows, and the agent's way to report its events. Every function may be called on any
/// thread.
package struct SignInPage: Sendable {
    package let url: EndpointURL
    /// The URI to which the provider finally sends the person. A loopback URI has the port of the sign-in's listener.
    package let redirect: RedirectURI
    /// Where the provider's pages are: the origins of the issuer, of its endpoints and of the profile's
    /// `navigation_hosts`, each once. For an agent that restricts navigation.
    package let origins: [Origin]
    /// How long the sign-in waits for the person.
    package let limit: Duration
    /// Which pages may post messages; nil if none may.
    package let messages: PageMessageRules?
    private let reports: @Sendable (UserAgentEvent) -> Void
    private let judge: @Sendable (String) -> RedirectVerdict
    private let answers: @Sendable (PageMessage) async -> String?

    init(
        url: EndpointURL, redirect: RedirectURI, origins: [Origin], limit: Duration, messages: PageMessageRules?,
        report: @escaping @Sendable (UserAgentEvent) -> Void, judge: @escaping @Sendable (String) -> RedirectVerdict,
        answer: @escaping @Sendable (PageMessage) async -> String?
    ) {
        self.url = url
        self.redirect = redirect
        self.origins = origins
        self.limit = limit
        self.messages = messages
        reports = report
        self.judge = judge
        answers = answer
    }

    /// A page of the profile's compliance service, without a redirect: the service reports when the person has
    /// finished.
    package init(
        compliance url: EndpointURL, of profile: SignInProfile, limit: Duration,
        report: @escaping @Sendable (UserAgentEvent) -> Void
    ) {
        self.init(
            url: url, redirect: profile.redirect, origins: profile.compliance?.pageOrigins ?? [], limit: limit,
            messages: nil, report: report, judge: { _ in .foreign }, answer: { _ in nil })
    }

    package func report(_ event: UserAgentEvent) { reports(event) }

    /// The page was sent to `url`, which has the form of the redirect URI, with its query. After `accepted` and
    /// `failed` the page may be closed. After `foreign` it stays, because a frame or another site can also have done
    /// that.
    package func redirected(to url: String) -> RedirectVerdict { judge(url) }

    /// The answer to a message of the page, as JSON text of at most 16 KiB; nil if the person cancels the sign-in. Ends
    /// when its task is cancelled.
    package func answer(_ message: PageMessage) async -> String? { await answers(message) }
}

/// A user agent's report about its page. URLs are without user name, query and fragment; texts are printable.
package enum UserAgentEvent: Equatable, Sendable {
    /// The page could not be shown after all. The sign-in goes on, because the page can be opened by hand.
    case notShown(reason: String)
    case loadStarted(url: String)
    case loadFinished(url: String)
    case loadFailed(url: String, reason: String)
    /// The page wanted to leave the sign-in's origins, and was not permitted to.
    case navigationRefused(url: String, reason: String, hint: String? = nil)
    /// A page of this origin waits for an answer.
    case messageReceived(origin: String)
    /// The page has used a special URL with this scheme and host.
    case specialURL(String)
    /// A second window shows a page, for the installation of a configuration profile or for something else.
    case sessionOpened(url: String, installsProfile: Bool)
    case sessionEnded
    /// A configuration profile was installed; the sentence is about it.
    case profileInstalled(String)
    case profileNotInstalled(reason: String)
    /// Something that the page relies on does not work here.
    case unavailable(String)
    /// The page has asked for another program, which opens this address: complete, so that a person can open it.
    case handedOff(url: String)
    /// The page has caused so many events that no more are reported.
    case othersOmitted
}

/// The sign-in's verdict on a redirect.
package enum RedirectVerdict: Sendable {
    /// It belongs to this sign-in.
    case accepted
    /// It belongs to this sign-in, and says that it failed.
    case failed
    /// It does not belong to this sign-in, which keeps waiting.
    case foreign
}
