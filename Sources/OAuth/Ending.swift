// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Token revocation (RFC 7009).
package enum TokenRevocation {
    /// The requests that revoke the tokens of a sign-in: the refresh token first, which ends the access tokens with it
    /// at most providers, then the access token. Empty if the provider cannot revoke.
    package static func requests(
        _ tokens: TokenSet, client: Client, at metadata: ProviderMetadata
    ) -> [ProviderRequest] {
        guard let endpoint = metadata.revocationEndpoint else { return [] }
        let client = client.resolvedForRevocation(metadata)
        func request(_ token: Secret, _ kind: String) -> ProviderRequest {
            var parameters = FormParameters()
            parameters.append("token", token)
            parameters.append("token_type_hint", kind)
            return client.request(.revocation, endpoint, parameters)
        }
        return (tokens.refreshToken.map { [request($0, "refresh_token")] } ?? [])
            + [request(tokens.accessToken, "access_token")]
    }

    /// Throws unless the token is revoked. A token that the provider does not know is (§2.2). Throws `refused` with
    /// `unsupported_token_type` if the provider revokes only the other kind. `request` is the one that was sent: its
    /// secrets are kept out of the error.
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

/// Signing out at the provider in the browser (OpenID Connect RP-Initiated Logout §2).
package enum EndSession {
    /// Where to send the person; nil if the provider has no such page.
    package static func url(
        idToken: Secret?, client: Client, at metadata: ProviderMetadata, redirect: RedirectURI? = nil,
        state: String? = nil
    ) -> EndpointURL? {
        guard let endpoint = metadata.endSessionEndpoint else { return nil }
        var parameters = FormParameters()
        if let idToken { parameters.append("id_token_hint", idToken) }
        parameters.append("client_id", client.identifier)
        parameters.append("post_logout_redirect_uri", ifPresent: redirect?.text)
        parameters.append("state", ifPresent: state)
        return endpoint.adding(query: parameters.text)
    }
}
