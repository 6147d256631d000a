// SPDX-License-Identifier: Apache-2.0

import CountersignDeviceManagement
import CountersignHome
import CountersignOAuth
import CountersignSignIn
import Synchronization

/// Puts an app's handler in the place of a sign-in's own, which makes the proposals.
struct AppWebviewHandler: CountersignDeviceManagement.InteractiveWebviewHandler {
    let app: any Countersign.InteractiveWebviewHandler
    let own: any CountersignDeviceManagement.InteractiveWebviewHandler

    typealias State = CountersignDeviceManagement.InteractiveWebviewState
    typealias Headers = CountersignDeviceManagement.ResponseHeaders
    typealias Action = CountersignDeviceManagement.WebviewAction

    var isInBrokerContext: Bool { app.isInBrokerContext }

    var genericError: DeviceManagementError { DeviceManagementError(app: app.genericError, .enrollmentFailed) }

    func shouldAcquireBrokerRefreshToken(for url: SpecialURL, _ state: State) -> Bool {
        app.shouldAcquireBrokerRefreshToken(
            for: url.text, InteractiveWebviewState(state),
            proposed: own.shouldAcquireBrokerRefreshToken(for: url, state))
    }

    func acquireBrokerRefreshToken() async throws {
        do {
            try await app.acquireBrokerRefreshToken()
        } catch {
            throw DeviceManagementError(app: error, .brokerToken)
        }
    }

    func continuesWithoutBrokerRefreshToken(after error: any Error) -> Bool {
        app.continuesWithoutBrokerRefreshToken(
            after: ChallengeError(signingIn: error),
            proposed: own.continuesWithoutBrokerRefreshToken(after: error))
    }

    func shouldRetryInBroker(for url: SpecialURL, _ state: State) -> Bool {
        app.shouldRetryInBroker(
            for: url.text, InteractiveWebviewState(state), proposed: own.shouldRetryInBroker(for: url, state))
    }

    func retryInBroker(for url: SpecialURL, _ state: State) async throws {
        try await converting(.brokerRequired) {
            try await app.retryInBroker(for: url.text, InteractiveWebviewState(state)) {
                try await own.retryInBroker(for: url, state)
            }
        }
    }

    func continuesInView(after error: any Error) -> Bool { own.continuesInView(after: error) }

    func viewAction(forSpecialURL url: String, state: State) -> Action {
        let proposed = own.viewAction(forSpecialURL: url, state: state)
        let offered = Countersign.WebviewAction(proposed)
        let chosen = app.viewAction(
            forSpecialURL: url, InteractiveWebviewState(state), proposed: offered)
        // The public form of an action has less than the action.
        return chosen == offered ? proposed : Action(chosen)
    }

    func responseReceived(_ headers: Headers) { app.responseReceived(ResponseHeaders(headers)) }

    func openSystemWebview(_ request: AuthenticationSessionRequest) async throws -> String {
        try await converting(.enrollmentFailed) {
            try await app.openSystemWebview(AuthenticationSession(request)) {
                try await own.openSystemWebview(request)
            }
        }
    }

    /// Converts the errors of an app, and leaves those of the sign-in unchanged.
    private func converting<Value>(
        _ code: DeviceManagementError.Code, _ body: () async throws -> Value
    ) async throws -> Value {
        do {
            return try await body()
        } catch let error as ChallengeError {
            throw DeviceManagementError(app: error, code)
        }
    }

    /// The app has seen the action, and could have chosen another one.
    func confirmsHandOff(of url: String) async -> Bool { true }

    func openExternalBrowser(_ url: String) async throws { try await own.openExternalBrowser(url) }

    func dismissView() { app.dismissView() }
}

/// Passes configuration profiles to an app. Profiles that the app installs for the sign-in depend on it: as long as
/// this object lives, the sign-in does not count as failed.
final class AppProfileInstaller: ProfileInstalling {
    private let app: any Countersign.InteractiveWebviewHandler
    private let home: Home
    /// Held from the first profile on.
    private let lock = Mutex<RenewalLock?>(nil)

    init(app: any Countersign.InteractiveWebviewHandler, home: Home) {
        self.app = app
        self.home = home
    }

    /// Whether a profile was delivered.
    var wasAsked: Bool { lock.withLock { $0 != nil } }

    /// The sign-in has failed.
    func end() { lock.withLock { $0 = nil } }

    func install(_ document: [UInt8], from host: String, for signIn: String) async throws -> String {
        do {
            try lock.withLock { lock in
                if lock == nil { lock = try VaultOperations.enrollingLock(of: signIn, in: home) }
                guard lock != nil else {
                    throw CountersignError(
                        .refused, "another process is signing in as \(signIn.debugDescription) and installs a profile")
                }
            }
            return try await app.installProfile(document, signIn: signIn)
        } catch {
            throw DeviceManagementError(app: error, .enrollmentFailed)
        }
    }
}

extension DeviceManagementError {
    fileprivate init(app error: any Error, _ code: Code) {
        if let error = error as? ChallengeError {
            self.init(code, error.detail, hint: error.hint)
            return
        }
        let diagnostic = Diagnostic.all(in: error).first
        self.init(code, diagnostic?.message ?? "the program's handler has failed", hint: diagnostic?.hint)
    }
}

extension InteractiveWebviewState {
    init(_ state: AppWebviewHandler.State) {
        self.init(
            brtAttemptCount: state.brtAttemptCount, brtAcquired: state.brtAcquired,
            responseHeaders: ResponseHeaders(state.responseHeaders))
    }
}

extension ResponseHeaders {
    init(_ headers: AppWebviewHandler.Headers) {
        self.init(fields: headers.fields.map { ResponseHeader(name: $0.name, value: $0.value) })
    }
}

extension AdditionalHeader {
    fileprivate static func values(_ headers: [AdditionalHeader]) -> [String: String] {
        Dictionary(headers.map { ($0.name, $0.value) }) { first, _ in first }
    }
}

extension AuthenticationSession {
    fileprivate init(_ session: AuthenticationSessionRequest) {
        self.init(
            url: session.url.description, headers: AdditionalHeader.values(session.headers),
            installsProfile: session.purpose == .installProfile, callbackScheme: session.callbackScheme,
            isEphemeral: session.isEphemeral)
    }
}

extension WebviewAction {
    init(_ action: AppWebviewHandler.Action) {
        self =
            switch action {
            case .noop: .noop
            case .loadRequest(let page):
                .loadRequest(url: page.url.description, headers: AdditionalHeader.values(page.headers))
            case .openAuthenticationSession(let session):
                .openAuthenticationSession(AuthenticationSession(session))
            case .openExternalBrowser(let url, let keepsView): .openExternalBrowser(url: url, keepsView: keepsView)
            case .complete(let url): .complete(url: url)
            case .fail(let error): .fail(reason: error.detail, hint: error.hint)
            case .dismiss: .dismiss
            }
    }
}

extension CountersignDeviceManagement.WebviewAction {
    fileprivate init(_ action: Countersign.WebviewAction) {
        func fields(_ headers: [String: String]) -> [AdditionalHeader] {
            headers.sorted { $0.key < $1.key }.map { AdditionalHeader($0.key, $0.value) }
        }
        do {
            self =
                switch action {
                case .noop: .noop
                case .loadRequest(let url, let headers):
                    .loadRequest(
                        WebviewRequest(try EndpointURL(url, "url", .secureOrLoopback), headers: fields(headers)))
                case .openAuthenticationSession(let session):
                    .openAuthenticationSession(
                        AuthenticationSessionRequest(
                            try EndpointURL(session.url, "url", .secureOrLoopback), headers: fields(session.headers),
                            purpose: session.installsProfile ? .installProfile : .unknown,
                            callbackScheme: session.callbackScheme.lowercased(), isEphemeral: session.isEphemeral))
                case .openExternalBrowser(let url, let keepsView): .openExternalBrowser(url, keepsView: keepsView)
                case .complete(let url): .complete(url)
                case .fail(let reason, let hint): .fail(DeviceManagementError(.enrollmentFailed, reason, hint: hint))
                case .dismiss: .dismiss
                }
        } catch {
            self = .fail(DeviceManagementError(app: error, .malformed))
        }
    }
}
