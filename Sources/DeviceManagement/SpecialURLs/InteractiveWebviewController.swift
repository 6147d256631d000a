// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The steps between the web view and its handler, in their order. It has the session's state, and owns the window of
/// the current system session.
///
/// A special URL leads to these steps: the headers of the response that led to it are copied into the state; a broker
/// refresh token is obtained if one is wanted; the broker takes over if it should; otherwise the handler decides about
/// the view.
package actor InteractiveWebviewController {
    private let handler: any InteractiveWebviewHandler
    private let rules: SpecialURLRules
    package private(set) var state = InteractiveWebviewState()
    private var session: Task<String, any Error>?

    package init(_ handler: any InteractiveWebviewHandler, _ rules: SpecialURLRules) {
        self.handler = handler
        self.rules = rules
    }

    /// A response has arrived in the view. The result is an action if its headers ask for a second window.
    package func responseReceived(_ response: PageResponse) -> WebviewAction {
        handler.responseReceived(response.headers)
        switch BrowserHandoff(of: response.headers, from: response.origin, rules) {
        case .none, .ignored: return .noop
        case .open(let request): return .openAuthenticationSession(request)
        case .fail(let error): return .fail(error)
        }
    }

    /// The view is about to go to `url`, which is special, because of `response`. Returns the view's action.
    package func action(for url: String, after response: PageResponse? = nil) async -> WebviewAction {
        state.responseHeaders = response?.headers ?? ResponseHeaders()
        state.responder = response?.origin
        let special: SpecialURL?
        do {
            special = try SpecialURL(url)
        } catch {
            return .fail(error)
        }
        guard let special else { return handler.viewAction(forSpecialURL: url, state: state) }
        if let identifier = SpecialURLViewActionResolver.deviceIdentifier(in: special) {
            state.deviceIdentifier = identifier
        }
        if let error = await acquireToken(special) { return .fail(error) }
        guard state.brokerFailure == nil, handler.shouldRetryInBroker(for: special, state) else {
            return handler.viewAction(forSpecialURL: url, state: state)
        }
        do {
            try await handler.retryInBroker(for: special, state)
        } catch {
            let failure = failure(error)
            guard !Task.isCancelled, handler.continuesInView(after: error) else { return .fail(failure) }
            state.brokerFailure = failure
            return handler.viewAction(forSpecialURL: url, state: state)
        }
        state.isTransferredToBroker = true
        handler.dismissView()
        return .dismiss
    }

    /// An error of the handler's, with its text.
    private func failure(_ error: any Error) -> DeviceManagementError {
        switch error {
        case let error as DeviceManagementError: error
        case let error as any CodedError: DeviceManagementError(.brokerRequired, error.detail, hint: error.hint)
        default: handler.genericError
        }
    }

    /// Returns the error that ends the sign-in, if any.
    private func acquireToken(_ url: SpecialURL) async -> DeviceManagementError? {
        guard !handler.isInBrokerContext else { return nil }
        while !state.brtAcquired, state.brtAttemptCount < InteractiveWebviewState.maximumBRTAttempts,
            handler.shouldAcquireBrokerRefreshToken(for: url, state)
        {
            state.brtAttemptCount += 1
            do {
                try await handler.acquireBrokerRefreshToken()
                state.brtAcquired = true
            } catch {
                guard state.brtAttemptCount == InteractiveWebviewState.maximumBRTAttempts || error is CancellationError
                else { continue }
                guard !handler.continuesWithoutBrokerRefreshToken(after: error) else { return nil }
                return failure(error)
            }
        }
        return nil
    }

    /// Opens a system session and waits for its callback, which is the view's next navigation. A session that is still
    /// open is closed first: there is one at a time.
    package func run(_ request: AuthenticationSessionRequest) async throws -> String {
        session?.cancel()
        let handler = handler
        let task = Task { try await handler.openSystemWebview(request) }
        session = task
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }

    /// The sign-in has ended, and its system session with it.
    package func end() {
        session?.cancel()
        session = nil
    }
}
