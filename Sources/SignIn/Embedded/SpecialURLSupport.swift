// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignDeviceManagement

/// The services that an ``EmbeddedAgent`` needs to carry out special URLs.
package struct SpecialURLSupport: Sendable {
    /// The proxies of the two windows.
    package struct Doors: Sendable {
        /// The proxy of the sign-in's window, which reports the responses to the window's pages.
        let main: EmbeddedAgent.Door
        /// The proxy of a second window.
        let session: EmbeddedAgent.Door
        let close: @Sendable () async -> Void

        package init(
            main: EmbeddedAgent.Door, session: EmbeddedAgent.Door, close: @escaping @Sendable () async -> Void
        ) {
            self.main = main
            self.session = session
            self.close = close
        }
    }

    package var settings: SpecialURLSettings
    /// The name of the sign-in.
    package var signIn: String
    /// Opens the proxies of a sign-in with pages of these origins. Nil if no proxy sees the windows' requests; no
    /// header of a response is known then.
    package var openDoors: (@Sendable ([Origin], ResponseFeed) async throws -> Doors)?
    /// Installs configuration profiles; nil if this program cannot.
    package var installer: (any ProfileInstalling)?
    /// Lets the identity broker of the machine continue the sign-in; nil without one. After an error the window
    /// continues, unless the person has cancelled.
    package var broker: (@Sendable () async throws -> Void)?
    /// Asks the person whether a page may hand this URL to another program; nil without a person to ask, so that none
    /// may. Ends when its task is cancelled.
    package var confirmHandOff: (@Sendable (_ url: String) async -> Bool)?
    /// An app's own handler, which may pass decisions on to the given one; nil for the given one.
    package var handler: (@Sendable (any InteractiveWebviewHandler) -> any InteractiveWebviewHandler)?

    package init(_ settings: SpecialURLSettings, signIn: String) {
        self.settings = settings
        self.signIn = signIn
    }
}

/// The default handler of a sign-in.
struct SignInWebviewHandler: InteractiveWebviewHandler {
    let rules: SpecialURLRules
    let support: SpecialURLSupport
    let environment: [String: String]
    let openSession: @Sendable (AuthenticationSessionRequest) async throws -> String

    func shouldAcquireBrokerRefreshToken(for url: SpecialURL, _ state: InteractiveWebviewState) -> Bool {
        support.settings.brokerToken != nil && url.scheme == .msauth && url.host.lowercased() == "enroll"
    }

    func continuesWithoutBrokerRefreshToken(after error: any Error) -> Bool { support.settings.brokerToken != .fail }

    /// When the device is enrolled, the broker repeats the sign-in.
    func shouldRetryInBroker(for url: SpecialURL, _ state: InteractiveWebviewState) -> Bool {
        guard support.broker != nil, url.scheme == .msauth, Self.ends.contains(url.host.lowercased()),
            case .complete = viewAction(forSpecialURL: url.text, state: state)
        else { return false }
        return true
    }

    private static let ends: Set<String> = [
        "profileinstalled", "profilecomplete", "in_app_enrollment_complete", "compliance_status",
    ]

    func retryInBroker(for url: SpecialURL, _ state: InteractiveWebviewState) async throws {
        guard let broker = support.broker else {
            throw DeviceManagementError(.brokerRequired, "there is no broker on this machine")
        }
        try await broker()
    }

    func continuesInView(after error: any Error) -> Bool {
        switch error {
        case is CancellationError: false
        case let error as SignInError: error.code != .cancelled && error.code != .timedOut
        default: true
        }
    }

    func viewAction(forSpecialURL url: String, state: InteractiveWebviewState) -> WebviewAction {
        SpecialURLViewActionResolver.action(for: url, state, rules)
    }

    func openSystemWebview(_ request: AuthenticationSessionRequest) async throws -> String {
        try await openSession(request)
    }

    func confirmsHandOff(of url: String) async -> Bool { await support.confirmHandOff?(url) ?? false }

    func openExternalBrowser(_ url: String) async throws {
        try await SystemBrowser(environment: environment).handOff(url)
    }
}
