// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import CountersignOAuth
import CountersignSignIn

/// How the person sees the provider's pages. Later versions may add cases, so include a `default` in a `switch`.
public enum SignInAgent: Sendable {
    /// The profile's choice, else `system` on a machine with a display, else `device`.
    case automatic
    /// The person's browser: that of `$BROWSER`, else the desktop's. Shares its cookies.
    case system
    /// A private window of Chromium or Firefox, with a profile of its own that is deleted afterwards.
    case systemPrivate
    /// A window of `countersign-webview`, a program of its own that must be installed. It connects to servers itself,
    /// or through a proxy of your process, which answers the challenges of listed sites: ``SignInWindows`` says which.
    /// The cookies that the profile names come from the vault, and are stored there with the sign-in. Your program
    /// answers questions of the page with ``Enrollment/pageCallbackHandlers``. Its pages can manage the device if the
    /// profile permits it; see ``InteractiveWebviewHandler``.
    case embedded
    /// A code that the person enters in a browser elsewhere (RFC 8628). Your program shows it: it is in
    /// ``EnrollmentEvent/code(_:page:pageWithCode:)``.
    case device
    /// Your program's own.
    case custom(any UserAgent)
}

/// Shows a person the pages of a provider in your program's own way, such as in a web view.
public protocol UserAgent: Sendable {
    /// Whether the agent notices that its page is sent to `redirectURI`, and reports that with
    /// ``SignInPage/redirected(to:)``. Only such an agent can be used with a redirect URI that is not on the loopback
    /// interface (RFC 8252 §7.1, §7.2). By default, it does not.
    func notices(redirectURI: String) -> Bool

    /// Shows `page`. Called once for each sign-in.
    ///
    /// When the sign-in has ended, the task is cancelled; close the page then, and return: the sign-in waits for that.
    /// If you hand the page to another program, return at once; the sign-in goes on. If the person closes the page,
    /// throw `CancellationError`, which ends the sign-in with the code `signInCancelled`. Another error ends it with
    /// `userAgentFailed`.
    func show(_ page: SignInPage) async throws
}

extension UserAgent {
    /// False.
    public func notices(redirectURI: String) -> Bool { false }
}

/// The page that a ``UserAgent`` shows. Its methods may be called on any thread.
public struct SignInPage: Sendable {
    /// The provider's authorization page.
    public let url: String
    /// The URI to which the provider finally sends the person. If it is on the loopback interface, the sign-in listens
    /// there.
    public let redirectURI: String
    private let redirected: @Sendable (String) -> Bool

    /// Reports that the page is being sent to `url`, which begins with ``redirectURI``, so that it need not be loaded.
    /// Returns whether the redirect belongs to this sign-in; if not, another site or a frame has caused it, and the
    /// sign-in keeps waiting. For a URI on the loopback interface, calling this is optional.
    @discardableResult
    public func redirected(to url: String) -> Bool { redirected(url) }

    /// Creates a page, for the tests of a user agent. `redirected` receives the arguments of ``redirected(to:)``.
    public init(url: String, redirectURI: String, redirected: @escaping @Sendable (String) -> Bool) {
        self.url = url
        self.redirectURI = redirectURI
        self.redirected = redirected
    }

    init(_ page: CountersignSignIn.SignInPage) {
        url = page.url.description
        redirectURI = page.redirect.description
        redirected = { url in
            switch page.redirected(to: url) {
            case .accepted, .failed: true
            case .foreign: false
            }
        }
    }
}

/// Passes the pages of a sign-in to an agent of the public API.
struct AppUserAgent: CountersignSignIn.UserAgent {
    let agent: any UserAgent

    func notices(_ redirect: RedirectURI) -> Bool { agent.notices(redirectURI: redirect.description) }

    func show(_ page: CountersignSignIn.SignInPage) async throws {
        do {
            try await agent.show(SignInPage(page))
        } catch is CancellationError {
            throw SignInError(.cancelled, "the person has closed the provider's page")
        } catch {
            throw SignInError(.noAgent, "the program's user agent has failed: \(Diagnostic.all(in: error)[0].message)")
        }
    }
}

extension SignInAgent {
    init(_ kind: UserAgentKind) {
        self =
            switch kind {
            case .system: .system
            case .systemPrivate: .systemPrivate
            case .embedded: .embedded
            case .device: .device
            }
    }

    /// Nil for the program's own. Throws `profile` if the provider cannot send the person back to it, and `noAgent` if
    /// the window's program is not installed.
    func kind(for plan: SignInPlan, environment: [String: String]) throws(SignInError) -> UserAgentKind? {
        let kind: UserAgentKind
        switch self {
        case .automatic: kind = plan.userAgent(in: environment)
        case .system: kind = .system
        case .systemPrivate: kind = .systemPrivate
        case .embedded: kind = .embedded
        case .device: kind = .device
        case .custom: return nil
        }
        try plan.profile.check(kind)
        if kind == .embedded { try EmbeddedAgent.check(environment) }
        return kind
    }

    /// The agent of the flow. Throws as ``kind(for:environment:)`` does. `window` is for a window.
    func resolved(
        for plan: SignInPlan, environment: [String: String], window: SignInWindow?,
        specialURLs: SpecialURLSupport? = nil
    ) throws(SignInError) -> SignInFlow.Agent {
        if case .custom(let agent) = self { return .browser(AppUserAgent(agent: agent)) }
        return SignInFlow.Agent(
            try kind(for: plan, environment: environment) ?? .embedded, environment: environment,
            door: window?.proxy?.door, cookies: window?.cookies, specialURLs: specialURLs)
    }
}
