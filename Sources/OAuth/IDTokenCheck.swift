// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Checks one ID token, and fetches the provider's keys if the known ones do not include the token's.
struct IDTokenCheck: Sendable {
    let claims: IDToken
    private let token: SignedToken
    private let keysEndpoint: EndpointURL?

    enum Verdict: Sendable {
        /// With the keys that verified it.
        case verified(KeySet)
        /// The provider does not publish the key.
        case unknownKey
    }

    /// Parses the token and checks its claims, before its signature. An algorithm that the provider does not promise is
    /// not permitted (OpenID Connect Discovery §3), although the provider has published the key: nothing else says
    /// which algorithm was agreed on (Core §3.1.3.7 item 7).
    init(
        _ text: Secret, _ expected: IDToken.Expectation, algorithms: Set<SignatureAlgorithm>,
        _ metadata: ProviderMetadata
    ) throws(OAuthError) {
        let promised = metadata.idTokenAlgorithms.map(algorithms.intersection)
        token = try SignedToken(parsing: text, algorithms: promised ?? algorithms)
        claims = try IDToken(token, expected)
        keysEndpoint = metadata.keysEndpoint
    }

    /// Nil if the token is verified. Otherwise the request for the keys, whose outcome goes to ``received(_:)``. Known
    /// keys do not prove a forgery, because the provider may have replaced one under the same name. Throws
    /// `unsupportedProvider` if the provider does not publish keys.
    func start(_ keys: KeySet?) throws(OAuthError) -> ProviderRequest? {
        let found = keys.map { token.verification(with: $0) }
        if found == .verified { return nil }
        guard let keysEndpoint else {
            if found == .forged { throw Self.forged }
            throw OAuthError(
                .unsupportedProvider, .provider, "the provider signs ID tokens and does not say with which keys")
        }
        return ProviderRequest(.keys, keysEndpoint)
    }

    /// The keys with which the token is verified. Throws if it is not, or if there are no keys.
    func received(_ outcome: ProviderOutcome) throws(OAuthError) -> KeySet {
        switch try verdict(outcome) {
        case .verified(let keys): return keys
        case .unknownKey: throw SignedToken.invalid("it is signed with a key that the provider does not publish")
        }
    }

    /// Throws `invalidIDToken` if the token is forged, and other codes if there are no keys.
    func verdict(_ outcome: ProviderOutcome) throws(OAuthError) -> Verdict {
        let response = try outcome.response(from: .keys)
        guard response.status == 200 else { throw ProviderError.error(response, at: .keys) }
        let keys = try KeySet(parsing: response.body)
        return switch token.verification(with: keys) {
        case .verified: .verified(keys)
        case .forged: throw Self.forged
        case .unknownKey: .unknownKey
        }
    }

    private static let forged = SignedToken.invalid("its signature is not the provider's")
}
