// SPDX-License-Identifier: Apache-2.0

/// Your program's part when the provider's pages manage the device during a sign-in with the agent `embedded`: they
/// open *special URLs*, such as `msauth://enroll`, that are not pages. `Documentation/DeviceManagement.md` describes
/// them.
///
/// Every requirement has a default, which is that of a program without a broker. Set
/// ``Enrollment/webviewHandler`` before the sign-in, and enable special URLs in the profile or with
/// ``EnrollmentProfile/enablingSpecialURLs()``.
public protocol InteractiveWebviewHandler: Sendable {
    /// Whether your program is the broker, which needs no token of one. By default, it is not.
    var isInBrokerContext: Bool { get }

    /// The error of a sign-in that the pages end without a reason of their own. By default, it says that the sign-in
    /// was not complete.
    var genericError: ChallengeError { get }

    /// Whether to obtain a broker refresh token before acting on `url`. Not called in a broker context, after one was
    /// obtained, or after two attempts. `proposed` is the profile's wish, and the default.
    func shouldAcquireBrokerRefreshToken(
        for url: String, _ state: InteractiveWebviewState, proposed: Bool
    ) -> Bool

    /// Obtains a broker refresh token. The methods of the broker for Linux return none, so the default throws.
    func acquireBrokerRefreshToken() async throws

    /// Whether the sign-in goes on after the last attempt has failed with `error`. `proposed` is the profile's policy,
    /// and the default.
    func continuesWithoutBrokerRefreshToken(after error: any Error, proposed: Bool) -> Bool

    /// Whether the broker continues the sign-in, so that the window closes. `proposed` is whether there is a broker and
    /// the device is enrolled, and the default.
    func shouldRetryInBroker(for url: String, _ state: InteractiveWebviewState, proposed: Bool) -> Bool

    /// Lets the broker continue the sign-in, and returns when it has the tokens. The window closes then. `proposed`
    /// asks the broker of the machine, and is the default; it throws on a machine without a broker. If your program
    /// does not call it, the sign-in ends with the code `signInCancelled`, because it continues elsewhere. After an
    /// error the sign-in is repeated in the window, once; a cancellation ends it.
    func retryInBroker(
        for url: String, _ state: InteractiveWebviewState, proposed: @Sendable () async throws -> Void
    ) async throws

    /// Shows a page in a second window, and returns the URL that has ended it, which becomes the first window's next
    /// navigation. `proposed` opens a window of `countersign-webview`, and is the default. The task is cancelled when
    /// the sign-in ends: close your window then.
    func openSystemWebview(
        _ session: AuthenticationSession, proposed: @Sendable () async throws -> String
    ) async throws -> String

    /// The window's action for `url`. The page waits. `proposed` follows from the URL and the profile, and is the
    /// default. Pages on hosts that the profile does not name are always refused.
    func viewAction(
        forSpecialURL url: String, _ state: InteractiveWebviewState, proposed: WebviewAction
    ) -> WebviewAction

    /// A response to a request of the window has arrived, also one that redirects: for telemetry. Called only if a
    /// proxy sees the window's responses. By default, nothing happens.
    func responseReceived(_ headers: ResponseHeaders)

    /// Installs a configuration profile that a page has delivered, for the sign-in of this name, and returns a sentence
    /// about it. `document` contains the bytes received, not yet verified. By default, it is refused.
    func installProfile(_ document: [UInt8], signIn: String) async throws -> String

    /// The window is about to close because the broker goes on. By default, nothing happens.
    func dismissView()
}

extension InteractiveWebviewHandler {
    /// False.
    public var isInBrokerContext: Bool { false }

    /// With the code `providerRefused`.
    public var genericError: ChallengeError {
        ChallengeError(.providerRefused, "the sign-in ended before it was complete")
    }

    /// `proposed`.
    public func shouldAcquireBrokerRefreshToken(
        for url: String, _ state: InteractiveWebviewState, proposed: Bool
    ) -> Bool { proposed }

    /// Throws ``ChallengeError`` with the code `providerRefused`.
    public func acquireBrokerRefreshToken() async throws {
        throw ChallengeError(.providerRefused, "the broker for Linux issues no refresh token of its own")
    }

    /// `proposed`.
    public func continuesWithoutBrokerRefreshToken(after error: any Error, proposed: Bool) -> Bool { proposed }

    /// `proposed`.
    public func shouldRetryInBroker(for url: String, _ state: InteractiveWebviewState, proposed: Bool) -> Bool {
        proposed
    }

    /// `proposed`.
    public func retryInBroker(
        for url: String, _ state: InteractiveWebviewState, proposed: @Sendable () async throws -> Void
    ) async throws { try await proposed() }

    /// `proposed`.
    public func openSystemWebview(
        _ session: AuthenticationSession, proposed: @Sendable () async throws -> String
    ) async throws -> String { try await proposed() }

    /// `proposed`.
    public func viewAction(
        forSpecialURL url: String, _ state: InteractiveWebviewState, proposed: WebviewAction
    ) -> WebviewAction { proposed }

    /// Does nothing.
    public func responseReceived(_ headers: ResponseHeaders) {}

    /// Throws ``ChallengeError`` with the code `providerRefused`.
    public func installProfile(_ document: [UInt8], signIn: String) async throws -> String {
        throw ChallengeError(.providerRefused, "this program does not install configuration profiles")
    }

    /// Does nothing.
    public func dismissView() {}
}

/// The state of a sign-in in the window when a special URL appears.
public struct InteractiveWebviewState: Equatable, Sendable {
    /// The number of requests for a broker refresh token: at most two.
    public let brtAttemptCount: Int
    /// Whether one was obtained.
    public let brtAcquired: Bool
    /// Those of the response that led to the special URL: the redirect to it, else that of the window's page. Empty if
    /// no proxy sees the window's responses.
    public let responseHeaders: ResponseHeaders
}

/// The header fields of a response: at most 128, each with at most 16 KiB.
public struct ResponseHeaders: Equatable, Sendable {
    /// The names in lower case and the values, in order. Names may occur more than once.
    public let fields: [ResponseHeader]

    /// The value of the only field with this name, in upper or lower case; nil if it is missing, is empty, or occurs
    /// more than once.
    public subscript(name: String) -> String? {
        let values = fields.filter { $0.name == name.lowercased() }.map(\.value)
        return values.count == 1 && !values[0].isEmpty ? values[0] : nil
    }
}

/// A header field of a response.
public struct ResponseHeader: Equatable, Sendable {
    /// In lower case.
    public let name: String
    /// Without white space around it.
    public let value: String
}

/// The window's action for a special URL. Later versions may add cases, so include a `default` in a `switch`.
public enum WebviewAction: Equatable, Sendable {
    /// Nothing: the page stays.
    case noop
    /// Load this page. The fields go with the first request, to its origin only.
    case loadRequest(url: String, headers: [String: String])
    /// Show a page in a second window.
    case openAuthenticationSession(AuthenticationSession)
    /// Show the address in the person's browser. Unless it `keepsView`, the sign-in ends.
    case openExternalBrowser(url: String, keepsView: Bool)
    /// The page has done its part. The URL is an authorization response if it is the redirect URI; otherwise the
    /// sign-in is repeated once.
    case complete(url: String)
    /// The sign-in fails, with the code `providerRefused`.
    case fail(reason: String, hint: String?)
    /// Close the window: the sign-in goes on elsewhere. Fails the sign-in with the code `signInCancelled`.
    case dismiss
}

/// A page for a second window.
public struct AuthenticationSession: Equatable, Sendable {
    /// The page, on one of the hosts that the profile has.
    public var url: String
    /// For the first request to the page's origin only.
    public var headers: [String: String]
    /// Whether the page may deliver a configuration profile.
    public var installsProfile: Bool
    /// The scheme of the URL that ends the session and becomes the window's next navigation.
    public var callbackScheme: String
    /// Whether the window has a session of its own, which is forgotten. Otherwise it has the cookies of the sign-in's
    /// window. A session that installs a profile is always ephemeral.
    public var isEphemeral: Bool

    /// A page, with the draft's callback scheme unless another one is given.
    public init(
        url: String, headers: [String: String] = [:], installsProfile: Bool = false, callbackScheme: String = "msauth",
        isEphemeral: Bool = true
    ) {
        self.url = url
        self.headers = headers
        self.installsProfile = installsProfile
        self.callbackScheme = callbackScheme
        self.isEphemeral = isEphemeral
    }
}
