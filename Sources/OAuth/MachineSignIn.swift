// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// One grant without a person, from the issuer's name to an access token. Events and actions are as in ``SignIn``.
///
///     start           → send(metadata) … → send(token request)
///     received tokens → finish
package struct MachineSignIn: Sendable {
    package enum Action: Sendable, Equatable {
        /// Send the request; report ``MachineSignIn/received(_:now:)``.
        case send(ProviderRequest)
        case finish(TokenSet)
        case fail(OAuthError)
    }

    private enum State {
        case idle
        case fetchingMetadata(MetadataFetch)
        case granting
        /// With the action that every later event returns.
        case ended(Action)
    }

    private let issuer: Issuer
    private var wanted: SignInRequest
    private let grant: MachineGrant
    private let token: Secret?
    private let transport: EndpointURL.Transport
    private var state = State.idle
    /// The secrets of the request that was sent last.
    private var sent: [Secret] = []

    /// The provider's metadata, once it is known.
    package private(set) var metadata: ProviderMetadata?

    /// The tokens that the provider has issued in place of bound ones. The caller revokes them.
    package private(set) var tokensToRevoke: TokenSet?

    /// `token` is the contents of the grant's file, or the client's ``GrantAssertion``. `metadata` is the provider's if
    /// the profile has it.
    package init(
        issuer: Issuer, _ wanted: SignInRequest, by grant: MachineGrant, with token: Secret?,
        metadata: ProviderMetadata? = nil, transport: EndpointURL.Transport = .secure
    ) {
        self.issuer = issuer
        self.wanted = wanted
        self.grant = grant
        self.token = token
        self.metadata = metadata
        self.transport = transport
    }

    package mutating func start() -> Action {
        if case .ended(let action) = state { return action }
        guard case .idle = state else { preconditionFailure("a sign-in starts once") }
        return attempt { machine throws(OAuthError) in
            if let metadata = machine.metadata { return try machine.ask(at: metadata) }
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

    private mutating func advance(_ outcome: ProviderOutcome, now: Int64) throws(OAuthError) -> Action {
        switch state {
        case .fetchingMetadata(var fetch):
            switch try fetch.received(outcome) {
            case .send(let request):
                state = .fetchingMetadata(fetch)
                return .send(request)
            case .done(let metadata):
                self.metadata = metadata
                return try ask(at: metadata)
            }
        case .granting:
            if case .installation = grant {
                let response = try outcome.response(from: .installation)
                return end(.finish(TokenSet(try InstallationToken(response, hiding: sent), now: now)))
            }
            let response: TokenResponse
            do throws(OAuthError) {
                response = try TokenResponse(
                    try outcome.response(from: .token), hiding: sent, boundTo: wanted.proofKey)
            } catch {
                tokensToRevoke = outcome.refusedTokens(now: now)
                throw grant.explaining(error)
            }
            let tokens = TokenSet(response, requestedScope: wanted.scope, now: now)
            return end(.finish(tokens.accessTokenAlone))
        case .ended(let action):
            return action
        case .idle:
            preconditionFailure("no request was sent")
        }
    }

    private mutating func ask(at metadata: ProviderMetadata) throws(OAuthError) -> Action {
        wanted.client = try wanted.client.resolved(for: metadata)
        let request = grant.request(token, wanted, at: metadata)
        sent = request.secrets
        state = .granting
        return .send(request)
    }

    private mutating func end(_ action: Action) -> Action {
        state = .ended(action)
        return action
    }

    private mutating func attempt(_ body: (inout MachineSignIn) throws(OAuthError) -> Action) -> Action {
        do throws(OAuthError) {
            return try body(&self)
        } catch {
            return end(.fail(error))
        }
    }
}

extension TokenSet {
    /// Without a refresh token, which would end the sign-in when it ends, and without an ID token: nobody has signed in
    /// (RFC 6749 §4.4.3, RFC 8693 §2.2.1).
    var accessTokenAlone: TokenSet {
        TokenSet(
            accessToken: accessToken, expiresAt: expiresAt, obtainedAt: obtainedAt, refreshToken: nil, scope: scope,
            idToken: nil, clientInfo: nil)
    }
}

extension MachineGrant {
    /// Nobody can sign in again, and a refusal does not end the sign-in: the file may have another token next time, and
    /// the client another right.
    fileprivate func explaining(_ error: OAuthError) -> OAuthError {
        guard error.code == .invalidGrant || error.code == .interactionRequired || error.providerCode != nil else {
            return error
        }
        let isGrant = error.code == .invalidGrant || error.code == .interactionRequired
        let hint: String? =
            if isGrant || error.providerCode?.error == "invalid_request", let file {
                "check that \(file) has a token that has not expired, and that the provider accepts its issuer, subject "
                    + "and audience"
            } else if isGrant, signs {
                "check that the provider still lists the key and has not disabled its account, and that the clock is "
                    + "right; `countersign enroll NAME --key FILE` gives another key"
            } else if case .signedAssertion(let grant) = self, grant.subject != nil,
                error.providerCode?.error == "unauthorized_client"
            {
                "ask an administrator of the domain to delegate the scopes to this client, or leave the subject out"
            } else if isGrant {
                "ask the provider's operator whether the client may use \(name)"
            } else {
                error.hint
            }
        return OAuthError(
            isGrant ? .refused : error.code, error.fault, error.detail, hint: hint, providerCode: error.providerCode,
            retryAfter: error.retryAfter)
    }
}
