// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// One refresh of the tokens of a sign-in (RFC 6749 §6, OpenID Connect Core §12).
///
/// An outage never discards a token; only `invalid_grant` does. A new refresh token is stored before the rest of the
/// response is judged, because the provider may have revoked the old one (RFC 9700 §4.14.2), unless the response is for
/// another account. Events and actions are as in ``SignIn``.
package struct TokenRefresh: Sendable {
    package enum Action: Sendable, Equatable {
        /// Send the request; report ``TokenRefresh/received(_:now:)``.
        case send(ProviderRequest)
        /// Store these tokens; report ``TokenRefresh/stored()``. Only the refresh token is new.
        case store(TokenSet)
        /// Store these tokens and use them. With the ID token of the same response, if it has a verified one.
        case finish(TokenSet, IDToken?)
        /// Keep the tokens that were stored last, or delete them if `discardsTokens`.
        case fail(OAuthError, discardsTokens: Bool)
    }

    private enum State {
        case idle
        case fetchingMetadata(MetadataFetch)
        case refreshing(ProviderMetadata)
        case storing(Received)
        case fetchingKeys(IDTokenCheck, TokenResponse, now: Int64)
        /// With the action that every later event returns.
        case ended(Action)
    }

    /// A response, before it is judged.
    private struct Received {
        let response: Result<TokenResponse, OAuthError>
        let now: Int64
        let check: Result<IDTokenCheck, OAuthError>?
    }

    private let issuer: Issuer
    private var wanted: SignInRequest
    private let tokens: TokenSet
    private let subject: String?
    private let transport: EndpointURL.Transport
    private let algorithms: Set<SignatureAlgorithm>
    private let clockSkew: Int64
    private var state = State.idle
    /// The secrets of the request that was sent last.
    private var sent: [Secret] = []

    /// The provider's metadata, once it is known.
    package private(set) var metadata: ProviderMetadata?
    /// The keys that verified the ID token, once they are known.
    package private(set) var keys: KeySet?

    /// The access token that the provider has issued in place of a bound one. The caller revokes it. The refresh token
    /// is still that of the sign-in.
    package private(set) var tokensToRevoke: TokenSet?

    /// `subject` is that of the sign-in's ID token, if there was one. `metadata` and `keys` are the provider's, if they
    /// were fetched before; keys are fetched again if they do not have the ID token's. `clockSkew` is in seconds.
    package init(
        _ tokens: TokenSet, issuer: Issuer, _ wanted: SignInRequest, subject: String?,
        metadata: ProviderMetadata? = nil, keys: KeySet? = nil, transport: EndpointURL.Transport = .secure,
        algorithms: Set<SignatureAlgorithm> = Set(SignatureAlgorithm.allCases), clockSkew: Int64 = 120
    ) {
        self.tokens = tokens
        self.issuer = issuer
        self.wanted = wanted
        self.subject = subject
        self.metadata = metadata
        self.keys = keys
        self.transport = transport
        self.algorithms = algorithms
        self.clockSkew = clockSkew
    }

    // MARK: Events

    // The program reports the outcome of each action in one loop, which no response of a provider can reorder; a trap
    // here is a mistake of the program.

    package mutating func start() -> Action {
        if case .ended(let action) = state { return action }
        guard case .idle = state else { preconditionFailure("a refresh starts once") }
        return attempt { machine throws(OAuthError) in
            if let metadata = machine.metadata { return try machine.refresh(at: metadata) }
            var fetch = MetadataFetch(machine.issuer, machine.transport)
            let request = fetch.start()
            machine.state = .fetchingMetadata(fetch)
            return .send(request)
        }
    }

    /// The outcome of the request that was sent last.
    package mutating func received(_ outcome: ProviderOutcome, now: Int64) -> Action {
        attempt { machine throws(OAuthError) in try machine.advance(outcome, now: now) }
    }

    /// The tokens of ``Action/store(_:)`` are on disk.
    package mutating func stored() -> Action {
        if case .ended(let action) = state { return action }
        guard case .storing(let received) = state else { preconditionFailure("there is nothing to store") }
        return attempt { machine throws(OAuthError) in try machine.judge(received) }
    }

    // MARK: Steps

    private mutating func advance(_ outcome: ProviderOutcome, now: Int64) throws(OAuthError) -> Action {
        switch state {
        case .fetchingMetadata(var fetch):
            switch try fetch.received(outcome) {
            case .send(let request):
                state = .fetchingMetadata(fetch)
                return .send(request)
            case .done(let metadata):
                self.metadata = metadata
                return try refresh(at: metadata)
            }
        case .refreshing(let metadata):
            return try accept(try outcome.response(from: .token), metadata, now: now)
        case .fetchingKeys(let check, let response, let now):
            do throws(OAuthError) {
                guard case .verified(let verifying) = try check.verdict(outcome) else {
                    return finish(response, nil, now: now)
                }
                keys = verifying
            } catch {
                guard error.code != .invalidIDToken else { throw error }
                return finish(response, nil, now: now)
            }
            return finish(response, check, now: now)
        case .ended(let action):
            return action
        case .idle, .storing:
            preconditionFailure("no request was sent")
        }
    }

    private mutating func refresh(at metadata: ProviderMetadata) throws(OAuthError) -> Action {
        guard let refreshToken = tokens.refreshToken else {
            throw OAuthError(
                .interactionRequired, .person, "there is no refresh token, and the access token has expired",
                hint: "sign in again")
        }
        wanted.client = try wanted.client.resolved(for: metadata)
        state = .refreshing(metadata)
        let request = TokenRequest.refreshing(refreshToken, wanted, at: metadata)
        sent = request.secrets
        return .send(request)
    }

    private mutating func accept(
        _ response: ProviderResponse, _ metadata: ProviderMetadata, now: Int64
    ) throws(OAuthError) -> Action {
        let (secrets, proofKey) = (sent, wanted.proofKey)
        let parsed = Result { () throws(OAuthError) in
            try TokenResponse(response, hiding: secrets, boundTo: proofKey)
        }
        if case .failure = parsed, proofKey != nil {
            tokensToRevoke = ProviderOutcome.response(response).refusedTokens(now: now)?.accessTokenAlone
        }
        var check: Result<IDTokenCheck, OAuthError>?
        if wanted.asksForIDToken, case .success(let tokens) = parsed, let text = tokens.idToken {
            var expected = IDToken.Expectation(
                issuer: metadata.issuer, clientIdentifier: wanted.client.identifier, accessToken: tokens.accessToken,
                subject: subject, now: now, clockSkew: clockSkew)
            expected.checksTimes = false
            expected.earlierNonce = self.tokens.idToken.flatMap { IDToken.claims(ofVerified: $0)?.text("nonce") }
            do throws(OAuthError) {
                check = .success(try IDTokenCheck(text, expected, algorithms: algorithms, metadata))
            } catch {
                // The new refresh token is not this account's.
                guard error.code != .accountChanged else { throw error }
                check = .failure(error)
            }
        }
        let received = Received(response: parsed, now: now, check: check)
        guard let refreshToken = TokenResponse.refreshToken(in: response), refreshToken != tokens.refreshToken else {
            return try judge(received)
        }
        state = .storing(received)
        return .store(tokens.rotated(to: refreshToken))
    }

    /// An ID token that cannot be verified, for lack of keys or because the clocks differ, is not kept and does not
    /// stop the refresh: the response came from the token endpoint over TLS, which may stand in for the signature
    /// (OpenID Connect Core §3.1.3.7 item 6). One for something else, or with a forged signature, does.
    private mutating func judge(_ received: Received) throws(OAuthError) -> Action {
        let response = try received.response.get()
        guard let check = try received.check?.get() else { return finish(response, nil, now: received.now) }
        let request: ProviderRequest?
        do throws(OAuthError) {
            request = try check.start(keys)
        } catch {
            guard error.code != .invalidIDToken else { throw error }
            return finish(response, nil, now: received.now)
        }
        guard let request else { return finish(response, check, now: received.now) }
        state = .fetchingKeys(check, response, now: received.now)
        return .send(request)
    }

    private mutating func finish(_ response: TokenResponse, _ check: IDTokenCheck?, now: Int64) -> Action {
        let claims = check.flatMap { $0.claims.isCurrent(now: now, clockSkew: clockSkew) ? $0.claims : nil }
        let idToken = claims == nil ? nil : response.idToken
        return end(.finish(tokens.refreshed(response, idToken: idToken, now: now), claims))
    }

    private mutating func end(_ action: Action) -> Action {
        state = .ended(action)
        return action
    }

    private mutating func attempt(_ body: (inout TokenRefresh) throws(OAuthError) -> Action) -> Action {
        do throws(OAuthError) {
            return try body(&self)
        } catch {
            return end(.fail(error, discardsTokens: error.code == .invalidGrant))
        }
    }
}
