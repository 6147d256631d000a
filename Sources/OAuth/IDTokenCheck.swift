// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Checks one ID token, and fetches the provider's keys if those at hand do not have the token's.
struct IDTokenCheck: Sendable {
    let claims: IDToken
    private let token: SignedToken
    private let keysEndpoint: EndpointURL

    /// Parses the token and checks its claims, before its signature.
    init(
        _ text: Secret, _ expected: IDToken.Expectation, algorithms: Set<SignatureAlgorithm>,
        _ metadata: ProviderMetadata
    ) throws(OAuthError) {
        token = try SignedToken(parsing: text, algorithms: algorithms)
        claims = try IDToken(token, expected)
        guard let endpoint = metadata.keysEndpoint else {
            throw OAuthError(
                .unsupportedProvider, .provider, "the provider signs ID tokens and does not say with which keys")
        }
        keysEndpoint = endpoint
    }

    /// Nil if the token is verified. Otherwise the request for the keys, whose outcome goes to ``received(_:)``. Throws
    /// if the token is forged.
    func start(_ keys: KeySet?) throws(OAuthError) -> ProviderRequest? {
        guard let keys else { return ProviderRequest(.keys, keysEndpoint) }
        switch token.verification(with: keys) {
        case .verified: return nil
        case .forged: throw Self.forged
        case .unknownKey: return ProviderRequest(.keys, keysEndpoint)
        }
    }

    /// The keys with which the token is verified. Throws if it is not, or if there are no keys.
    func received(_ outcome: ProviderOutcome) throws(OAuthError) -> KeySet {
        switch outcome {
        case .failure(let failure): throw failure.error(at: .keys)
        case .response(let response):
            guard response.status == 200 else { throw ProviderError.error(response, at: .keys) }
            let keys = try KeySet(parsing: response.body)
            switch token.verification(with: keys) {
            case .verified: return keys
            case .forged: throw Self.forged
            case .unknownKey: throw SignedToken.invalid("it is signed with a key that the provider does not publish")
            }
        }
    }

    private static let forged = SignedToken.invalid("its signature is not the provider's")
}
