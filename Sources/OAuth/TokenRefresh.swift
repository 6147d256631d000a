// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// One refresh of the tokens of a sign-in (RFC 6749 §6, OpenID Connect Core §12).
///
/// An outage never discards a token; only `invalid_grant` does. A new refresh token is stored before anything else is
/// done, because the provider may have revoked the old one (RFC 9700 §4.14.2). Events and actions are as in ``SignIn``.
package struct TokenRefresh: Sendable {
    package enum Action: Sendable, Equatable {
        /// Send the request; report ``TokenRefresh/received(_:now:)``.
        case send(ProviderRequest)
        /// Store these tokens; report ``TokenRefresh/stored()``. Only the refresh token is new.
        case store(TokenSet)
        /// Store these tokens and use them. With the ID token that came with them, if one came and was verified.
        case finish(TokenSet, IDToken?)
        /// Keep the tokens that were stored last, or delete them if `discardsTokens`.
        case fail(OAuthError, discardsTokens: Bool)
    }

    private enum State {
        case idle
        case fetchingMetadata(MetadataFetch)
        case refreshing(ProviderMetadata)
        case storing(Received)
        case fetchingKeys(IDTokenCheck, Received)
        case ended
    }

    /// The new tokens, before their ID token is verified.
    private struct Received {
        let response: TokenResponse
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

    /// What the provider says about itself, once it is known.
    package private(set) var metadata: ProviderMetadata?
    /// The keys that verified the ID token, once they are known.
    package private(set) var keys: KeySet?

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

    package mutating func start() -> Action {
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
        guard case .storing(let received) = state else { preconditionFailure("there is nothing to store") }
        return attempt { machine throws(OAuthError) in try machine.verify(received) }
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
            return try accept(try TokenResponse(try outcome.response(from: .token)), metadata, now: now)
        case .fetchingKeys(let check, let received):
            do throws(OAuthError) {
                keys = try check.received(outcome)
            } catch {
                guard error.code != .invalidIDToken else { throw error }
                // The response came from the token endpoint over TLS, which may stand in for the signature (§3.1.3.7
                // item 6). The tokens are used, and the ID token that cannot be verified is not stored.
                return finish(received, nil)
            }
            return finish(received, check)
        case .idle, .storing, .ended:
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
        return .send(TokenRequest.refreshing(refreshToken, wanted, at: metadata))
    }

    private mutating func accept(
        _ response: TokenResponse, _ metadata: ProviderMetadata, now: Int64
    ) throws(OAuthError) -> Action {
        guard let text = response.idToken else {
            return finish(Received(response: response, now: now, check: nil), nil)
        }
        let expected = IDToken.Expectation(
            issuer: metadata.issuer, clientIdentifier: wanted.client.identifier, accessToken: response.accessToken,
            subject: subject, now: now, clockSkew: clockSkew)
        let check: Result<IDTokenCheck, OAuthError>
        do throws(OAuthError) {
            check = .success(try IDTokenCheck(text, expected, algorithms: algorithms, metadata))
        } catch {
            // The new refresh token is not this account's.
            guard error.code != .accountChanged else { throw error }
            check = .failure(error)
        }
        let received = Received(response: response, now: now, check: check)
        guard let refreshToken = response.refreshToken, refreshToken != tokens.refreshToken else {
            return try verify(received)
        }
        state = .storing(received)
        return .store(tokens.rotated(to: refreshToken))
    }

    private mutating func verify(_ received: Received) throws(OAuthError) -> Action {
        guard let check = try received.check?.get() else { return finish(received, nil) }
        guard let request = try check.start(keys) else { return finish(received, check) }
        state = .fetchingKeys(check, received)
        return .send(request)
    }

    private mutating func finish(_ received: Received, _ check: IDTokenCheck?) -> Action {
        state = .ended
        let idToken = check == nil ? nil : received.response.idToken
        return .finish(
            tokens.refreshed(received.response, idToken: idToken, now: received.now), check?.claims)
    }

    private mutating func attempt(_ body: (inout TokenRefresh) throws(OAuthError) -> Action) -> Action {
        do throws(OAuthError) {
            return try body(&self)
        } catch {
            state = .ended
            return .fail(error, discardsTokens: error.code == .invalidGrant)
        }
    }
}
