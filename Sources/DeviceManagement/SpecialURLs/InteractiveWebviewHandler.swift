// SPDX-License-Identifier: Apache-2.0

/// An app's part in the dialogue between the web view and device management. Each requirement has a default, which is
/// that of a program without a broker.
package protocol InteractiveWebviewHandler: Sendable {
    /// Whether this program is the broker, which needs no token of one.
    var isInBrokerContext: Bool { get }

    /// The error of a sign-in that ends without a reason of its own.
    var genericError: DeviceManagementError { get }

    /// Whether to obtain a broker refresh token before acting on `url`. Not called in a broker context, after one was
    /// obtained, or after ``InteractiveWebviewState/maximumBRTAttempts``.
    func shouldAcquireBrokerRefreshToken(for url: SpecialURL, _ state: InteractiveWebviewState) -> Bool

    /// Obtains a broker refresh token. The methods of the broker for Linux return none, so that the default throws.
    func acquireBrokerRefreshToken() async throws

    /// Whether the sign-in goes on after the last attempt has failed with `error`; otherwise it fails.
    func continuesWithoutBrokerRefreshToken(after error: any Error) -> Bool

    /// Whether the broker is to repeat the sign-in instead of the view going on.
    func shouldRetryInBroker(for url: SpecialURL, _ state: InteractiveWebviewState) -> Bool

    /// Hands the sign-in over to the broker.
    func retryInBroker(for url: SpecialURL, _ state: InteractiveWebviewState) async throws

    /// Whether the view continues without the broker, which has failed with `error` and is not tried again. Otherwise
    /// the sign-in fails.
    func continuesInView(after error: any Error) -> Bool

    /// The web view's action for `url`. Synchronous: the page waits.
    func viewAction(forSpecialURL url: String, state: InteractiveWebviewState) -> WebviewAction

    /// A response has arrived in the view, also one that redirects: for telemetry.
    func responseReceived(_ headers: ResponseHeaders)

    /// Shows `request` in a window of its own, which is closed when the task is cancelled, and returns the URL with the
    /// callback's scheme to which the session was sent.
    func openSystemWebview(_ request: AuthenticationSessionRequest) async throws -> String

    /// Whether the person agrees that `url` is handed to another program, such as a wallet, while the view stays. Ends
    /// when its task is cancelled.
    func confirmsHandOff(of url: String) async -> Bool

    /// Shows `url` in the person's browser.
    func openExternalBrowser(_ url: String) async throws

    /// Closes the view, if there is one.
    func dismissView()
}

extension InteractiveWebviewHandler {
    package var isInBrokerContext: Bool { false }

    package var genericError: DeviceManagementError {
        DeviceManagementError(.enrollmentFailed, "the sign-in ended before it was complete")
    }

    package func shouldAcquireBrokerRefreshToken(for url: SpecialURL, _ state: InteractiveWebviewState) -> Bool {
        false
    }

    package func acquireBrokerRefreshToken() async throws {
        throw DeviceManagementError(.brokerToken, "the broker for Linux issues no refresh token of its own")
    }

    package func continuesWithoutBrokerRefreshToken(after error: any Error) -> Bool { true }

    package func shouldRetryInBroker(for url: SpecialURL, _ state: InteractiveWebviewState) -> Bool { false }

    package func retryInBroker(for url: SpecialURL, _ state: InteractiveWebviewState) async throws {
        throw DeviceManagementError(.brokerRequired, "there is no broker on this machine")
    }

    package func continuesInView(after error: any Error) -> Bool { !(error is CancellationError) }

    package func responseReceived(_ headers: ResponseHeaders) {}

    /// False, because nobody has consented.
    package func confirmsHandOff(of url: String) async -> Bool { false }

    package func dismissView() {}
}
