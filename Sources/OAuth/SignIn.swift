// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// One sign-in, from the issuer's name to verified tokens: the authorization code flow with PKCE (RFC 6749 §4.1, RFC
/// 8252) or the device flow (RFC 8628).
///
/// Each event returns the one action to run, whose outcome is the next event. The machine reads no clock and opens no
/// connection. Times are seconds since 1970.
///
///     start           → send(metadata) … → send(pushed request) → open(URL)
///     redirected      → send(token request), or authorized and later redeem
///     received tokens → send(keys) → finish
///
/// The device flow asks for a code instead, shows it and polls. A failure is final; another attempt is a new sign-in,
/// because codes, states and nonces are for one use.
package struct SignIn: Sendable {
    package enum Method: Sendable, Equatable {
        /// In a browser that is redirected to this URI. A loopback URI must be bound to the listener's port.
        case browser(RedirectURI)
        /// With a code that the person types in on any device.
        case device
    }

    /// The steps after the authorization response.
    package enum Form: Sendable, Equatable {
        /// The tokens are fetched at once.
        case automatic
        /// The tokens are fetched when ``SignIn/redeem()`` is called.
        case manual
    }

    package enum Action: Sendable, Equatable {
        /// Send the request; report ``SignIn/received(_:now:)``.
        case send(ProviderRequest)
        /// Open the URL in the user agent and wait for the redirect; report ``SignIn/redirected(_:)``.
        case open(EndpointURL)
        /// Show code and address to the person, wait; report ``SignIn/waited(now:)``.
        case show(DeviceAuthorization, seconds: Int64)
        /// Wait; report ``SignIn/waited(now:)``.
        case wait(seconds: Int64)
        /// In the manual form: the authorization response is in hand. Call ``SignIn/redeem()``.
        case authorized
        case finish(SignInResult)
        case fail(OAuthError)
    }

    /// The consequence of a message at the redirect URI.
    package enum Redirection: Sendable, Equatable {
        /// The sign-in goes on, or fails: stop waiting and run the action.
        case accepted(Action)
        /// The message is not from this sign-in, or is too late: answer it with an error, and keep waiting.
        case ignored(OAuthError)
    }

    private enum State {
        case idle
        case fetchingMetadata(MetadataFetch)
        case pushing(AuthorizationRequest)
        case waitingForRedirect(AuthorizationRequest)
        case authorized(AuthorizationRequest, AuthorizationResponse)
        case redeeming
        case requestingDeviceCode
        case waitingToPoll(DeviceAuthorization, DevicePolling)
        case polling(DeviceAuthorization, DevicePolling)
        /// With the number of failures before.
        case fetchingKeys(IDTokenCheck, TokenSet, failures: Int)
        case waitingForKeys(IDTokenCheck, TokenSet, failures: Int)
        /// With the action that every later event returns. A token request may still be in progress.
        case ended(Action, awaitsTokens: Bool)
    }

    private let issuer: Issuer
    private var wanted: SignInRequest
    private let method: Method
    private let form: Form
    private let secrets: SignInSecrets
    private let transport: EndpointURL.Transport
    private let algorithms: Set<SignatureAlgorithm>
    private let clockSkew: Int64
    private var state = State.idle
    /// The secrets of the request that was sent last.
    private var sent: [Secret] = []
    /// The tokens that the provider has sent.
    private var issued: TokenSet?

    /// The pauses before further requests for the keys, in seconds. By then, the code is redeemed, and cannot be
    /// redeemed again.
    private static let pausesForKeys: [Int64] = [1, 2, 5]

    /// The provider's metadata, once it is known.
    package private(set) var metadata: ProviderMetadata?
    /// The keys that verified the ID token, once they are known.
    package private(set) var keys: KeySet?

    /// The tokens that the provider has issued although the sign-in has failed: they are not bound to the key, their ID
    /// token was refused, or the sign-in was cancelled, even if they arrived after that. The caller revokes them.
    package var tokensToRevoke: TokenSet? {
        if case .ended(.fail, _) = state { issued } else { nil }
    }

    /// Whether the person has yet to confirm the code of the device flow.
    package var awaitsConfirmation: Bool {
        if case .waitingToPoll = state { true } else { false }
    }

    /// `metadata` is the provider's if the profile has it, and `keys` are if they were fetched before. `clockSkew` is
    /// in seconds.
    package init(
        issuer: Issuer, _ wanted: SignInRequest, by method: Method, form: Form = .automatic, secrets: SignInSecrets,
        metadata: ProviderMetadata? = nil, transport: EndpointURL.Transport = .secure, keys: KeySet? = nil,
        algorithms: Set<SignatureAlgorithm> = Set(SignatureAlgorithm.allCases), clockSkew: Int64 = 120
    ) {
        self.issuer = issuer
        self.wanted = wanted
        self.method = method
        self.form = form
        self.secrets = secrets
        self.metadata = metadata
        self.transport = transport
        self.keys = keys
        self.algorithms = algorithms
        self.clockSkew = clockSkew
    }

    // MARK: Events

    // The program reports the outcome of each action in one loop, which no response of a provider can reorder; a trap
    // here is a mistake of the program. Redirects arrive from outside at any time, and unexpected ones are ignored.

    package mutating func start() -> Action {
        if case .ended(let action, _) = state { return action }
        guard case .idle = state else { preconditionFailure("a sign-in starts once") }
        if let metadata { return attempt { machine throws(OAuthError) in try machine.begin(at: metadata) } }
        var fetch = MetadataFetch(issuer, transport)
        let request = fetch.start()
        state = .fetchingMetadata(fetch)
        return send(request)
    }

    /// The outcome of the request that was sent last. After a cancellation, its tokens are kept; see
    /// ``tokensToRevoke``.
    package mutating func received(_ outcome: ProviderOutcome, now: Int64) -> Action {
        attempt { machine throws(OAuthError) in try machine.advance(outcome, now: now) }
    }

    /// The user agent has come back to the redirect URI.
    package mutating func redirected(_ message: RedirectMessage) -> Redirection {
        guard case .waitingForRedirect(let request) = state, let metadata else {
            return .ignored(OAuthError(.stateMismatch, .person, "no sign-in waits for this redirect"))
        }
        do throws(OAuthError) {
            let response = try AuthorizationResponse(
                message, to: request.redirect, state: request.secrets.state, metadata: metadata)
            state = .authorized(request, response)
            return .accepted(form == .automatic ? redeem() : .authorized)
        } catch {
            let isForeign = error.code == .stateMismatch || error.code == .wrongRedirect
            return isForeign ? .ignored(error) : .accepted(fail(error))
        }
    }

    /// Fetches the tokens. In the automatic form this is called by the machine itself.
    package mutating func redeem() -> Action {
        if case .ended(let action, _) = state { return action }
        guard case .authorized(let request, let response) = state, let metadata else {
            preconditionFailure("there is no authorization response to redeem")
        }
        state = .redeeming
        return send(TokenRequest.redeeming(response, of: request, wanted, at: metadata))
    }

    /// The time of the last ``Action/wait(seconds:)`` or ``Action/show(_:seconds:)`` is over.
    package mutating func waited(now: Int64) -> Action {
        switch state {
        case .waitingToPoll(let authorization, let polling):
            guard let metadata else { preconditionFailure("there is a code and no provider") }
            state = .polling(authorization, polling)
            return send(TokenRequest.polling(authorization.deviceCode, wanted, at: metadata))
        case .waitingForKeys(let check, let tokens, let failures):
            return attempt { machine throws(OAuthError) in
                try machine.verify(check, tokens, failures: failures)
            }
        case .ended(let action, _):
            return action
        case .idle, .fetchingMetadata, .pushing, .waitingForRedirect, .authorized, .redeeming, .requestingDeviceCode,
            .polling, .fetchingKeys:
            preconditionFailure("the sign-in does not wait")
        }
    }

    /// The person, the program or a time limit has ended the sign-in. Later redirects are ignored. Changes nothing if
    /// the sign-in has ended before. Report the outcome of a request in progress nevertheless.
    package mutating func cancelled(_ reason: OAuthError? = nil) -> Action {
        let awaitsTokens: Bool
        switch state {
        case .ended(let action, _): return action
        case .redeeming, .polling: awaitsTokens = true
        case .idle, .fetchingMetadata, .pushing, .waitingForRedirect, .authorized, .requestingDeviceCode,
            .waitingToPoll, .fetchingKeys, .waitingForKeys:
            awaitsTokens = false
        }
        return end(
            .fail(reason ?? OAuthError(.cancelled, .person, "the sign-in was cancelled")), awaitsTokens: awaitsTokens)
    }

    // MARK: Steps

    private mutating func advance(_ outcome: ProviderOutcome, now: Int64) throws(OAuthError) -> Action {
        switch state {
        case .fetchingMetadata(var fetch):
            switch try fetch.received(outcome) {
            case .send(let request):
                state = .fetchingMetadata(fetch)
                return send(request)
            case .done(let metadata):
                self.metadata = metadata
                return try begin(at: metadata)
            }
        case .pushing(let request):
            let response = try outcome.response(from: .pushedAuthorization)
            let url =
                request.canDoWithoutPush(response) ? request.url : try request.url(afterPush: response, hiding: sent)
            state = .waitingForRedirect(request)
            return .open(url)
        case .redeeming:
            return try accept(try tokens(in: outcome, now: now), nonce: secrets.nonce, now: now)
        case .requestingDeviceCode:
            let authorization = try DeviceAuthorization(
                try outcome.response(from: .deviceAuthorization), transport, now: now, hiding: sent)
            let polling = DevicePolling(authorization)
            state = .waitingToPoll(authorization, polling)
            switch polling.start(now: now) {
            case .wait(let seconds): return .show(authorization, seconds: seconds)
            case .fail(let error): throw error
            }
        case .polling(let authorization, let polling):
            return try polled(outcome, authorization, polling, now: now)
        case .fetchingKeys(let check, let tokens, let failures):
            do throws(OAuthError) {
                keys = try check.received(outcome)
            } catch {
                guard error.isTransient, failures < Self.pausesForKeys.count else { throw error }
                state = .waitingForKeys(check, tokens, failures: failures + 1)
                return .wait(seconds: max(Self.pausesForKeys[failures], min(error.retryAfter ?? 0, 30)))
            }
            return finish(tokens, check.claims)
        case .ended(let action, let awaitsTokens):
            if awaitsTokens, let late = outcome.refusedTokens(now: now) {
                issued = late
                state = .ended(action, awaitsTokens: false)
            }
            return action
        case .idle, .waitingForRedirect, .authorized, .waitingToPoll, .waitingForKeys:
            preconditionFailure("no request was sent")
        }
    }

    private mutating func begin(at metadata: ProviderMetadata) throws(OAuthError) -> Action {
        wanted.client = try wanted.client.resolved(for: metadata)
        switch method {
        case .browser(let redirect):
            let request = try AuthorizationRequest(wanted, redirect: redirect, secrets: secrets, metadata: metadata)
            guard request.isPushed else {
                state = .waitingForRedirect(request)
                return .open(request.url)
            }
            let push = try request.pushed()
            state = .pushing(request)
            return send(push)
        case .device:
            let request = try DeviceAuthorization.request(wanted, at: metadata)
            state = .requestingDeviceCode
            return send(request)
        }
    }

    private mutating func polled(
        _ outcome: ProviderOutcome, _ authorization: DeviceAuthorization, _ polling: DevicePolling, now: Int64
    ) throws(OAuthError) -> Action {
        let tokens: TokenResponse
        do throws(OAuthError) {
            tokens = try self.tokens(in: outcome, now: now)
        } catch {
            var timedOut = false
            if case .failure(let failure) = outcome { timedOut = failure.timedOut }
            var polling = polling
            switch polling.failed(error, timedOut: timedOut, now: now) {
            case .fail(let error): throw error
            case .wait(let seconds):
                state = .waitingToPoll(authorization, polling)
                return .wait(seconds: seconds)
            }
        }
        return try accept(tokens, nonce: nil, now: now)
    }

    /// Throws for tokens of another type than was asked for. The provider has issued them nevertheless.
    private mutating func tokens(in outcome: ProviderOutcome, now: Int64) throws(OAuthError) -> TokenResponse {
        do throws(OAuthError) {
            return try TokenResponse(try outcome.response(from: .token), hiding: sent, boundTo: wanted.proofKey)
        } catch {
            issued = outcome.refusedTokens(now: now)
            throw error
        }
    }

    /// Checks the ID token, which is required if the request asked for it (OpenID Connect Core §3.1.3.3). Ignores an
    /// unrequested one.
    private mutating func accept(_ response: TokenResponse, nonce: String?, now: Int64) throws(OAuthError) -> Action {
        let tokens = TokenSet(response, requestedScope: wanted.scope, now: now)
        issued = tokens
        guard wanted.asksForIDToken else { return finish(tokens.withoutIDToken, nil) }
        guard let metadata, let text = response.idToken else {
            throw .malformed("the response of the token endpoint", "there is no ID token")
        }
        var expected = IDToken.Expectation(
            issuer: metadata.issuer, clientIdentifier: wanted.client.identifier, nonce: nonce,
            accessToken: response.accessToken, now: now, clockSkew: clockSkew)
        (expected.acrValues, expected.maxAge) = (wanted.acrValues, wanted.maxAge)
        return try verify(try IDTokenCheck(text, expected, algorithms: algorithms, metadata), tokens, failures: 0)
    }

    private mutating func verify(
        _ check: IDTokenCheck, _ tokens: TokenSet, failures: Int
    ) throws(OAuthError) -> Action {
        guard let request = try check.start(keys) else { return finish(tokens, check.claims) }
        state = .fetchingKeys(check, tokens, failures: failures)
        return send(request)
    }

    private mutating func send(_ request: ProviderRequest) -> Action {
        sent = request.secrets
        return .send(request)
    }

    private mutating func finish(_ tokens: TokenSet, _ idToken: IDToken?) -> Action {
        end(.finish(SignInResult(tokens: tokens, idToken: idToken)))
    }

    private mutating func fail(_ error: OAuthError) -> Action { end(.fail(error)) }

    private mutating func end(_ action: Action, awaitsTokens: Bool = false) -> Action {
        state = .ended(action, awaitsTokens: awaitsTokens)
        return action
    }

    private mutating func attempt(_ body: (inout SignIn) throws(OAuthError) -> Action) -> Action {
        do throws(OAuthError) {
            return try body(&self)
        } catch {
            return fail(error)
        }
    }
}

/// The result of a sign-in.
package struct SignInResult: Sendable, Equatable {
    package let tokens: TokenSet
    /// The verified ID token; nil unless the request contained `openid`.
    package let idToken: IDToken?

    package init(tokens: TokenSet, idToken: IDToken?) {
        self.tokens = tokens
        self.idToken = idToken
    }
}
