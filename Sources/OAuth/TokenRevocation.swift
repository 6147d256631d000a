// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography

/// Token revocation (RFC 7009).
package enum TokenRevocation {
    /// The requests that revoke the tokens of a sign-in: the refresh token first, which ends the access tokens with it
    /// at most providers, then the access token. Empty if the provider cannot revoke. Throws `unsupportedProvider` as
    /// ``Client/resolved(for:)`` does.
    package static func requests(
        _ tokens: TokenSet, client: Client, at metadata: ProviderMetadata
    ) throws(OAuthError) -> [ProviderRequest] {
        guard let endpoint = metadata.revocationEndpoint else { return [] }
        let client = try client.resolvedForRevocation(metadata)
        func request(_ token: Secret, _ kind: String) -> ProviderRequest {
            var parameters = FormParameters()
            parameters.append("token", token)
            parameters.append("token_type_hint", kind)
            return client.request(.revocation, endpoint, parameters)
        }
        return (tokens.refreshToken.map { [request($0, "refresh_token")] } ?? [])
            + [request(BoundToken(decoding: tokens.accessToken)?.token ?? tokens.accessToken, "access_token")]
    }

    /// Throws unless the token is revoked. A token that the provider does not know is (§2.2). Throws `refused` with
    /// `unsupported_token_type` if the provider revokes only the other kind. `request` is the sent request: its secrets
    /// are kept out of the error.
    package static func check(_ outcome: ProviderOutcome, of request: ProviderRequest? = nil) throws(OAuthError) {
        switch outcome {
        case .failure(let failure): throw failure.error(at: .revocation)
        case .response(let response):
            guard (200...204).contains(response.status), ProviderError(response) == nil else {
                throw ProviderError.error(response, at: .revocation, hiding: request?.secrets ?? [])
            }
        }
    }
}
