// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignOAuth

extension ProviderClient {
    /// Revokes the tokens at the profile's provider (RFC 7009). Returns the reason for a failure, if any, and the
    /// provider's metadata if it can be reached.
    package func revoke(
        _ tokens: TokenSet, of profile: SignInProfile
    ) async -> (warning: String?, metadata: ProviderMetadata?) {
        let metadata: ProviderMetadata
        do {
            metadata = try await self.metadata(of: profile)
        } catch {
            return ((error as? any DiagnosableError)?.detail ?? "\(error)", nil)
        }
        guard metadata.revocationEndpoint != nil else { return ("it has no revocation endpoint", metadata) }
        let requests: [ProviderRequest]
        do throws(OAuthError) {
            requests = try TokenRevocation.requests(tokens, client: profile.request.client, at: metadata)
        } catch {
            return (error.detail, metadata)
        }
        for request in requests {
            let outcome = await send(request)
            do throws(OAuthError) {
                try TokenRevocation.check(outcome, of: request)
            } catch {
                // Some providers serve no public clients here, although RFC 7009 §2.1 has them.
                if case .response(let response) = outcome, response.status == 401,
                    profile.request.client.authentication == .none
                {
                    return ("its revocation endpoint wants a password of the client, which has none", metadata)
                }
                // Some providers revoke refresh tokens only; access tokens expire soon.
                if error.providerCode?.error != "unsupported_token_type" { return (error.detail, metadata) }
            }
        }
        return (nil, metadata)
    }

    /// The metadata of the profile's provider. Throws ``OAuthError`` and ``SignInError``.
    package func metadata(of profile: SignInProfile) async throws -> ProviderMetadata {
        if let known = profile.metadata { return known }
        for location in profile.issuer.metadataLocations {
            guard case .response(let response) = await send(ProviderRequest(.metadata, location)),
                response.status == 200
            else { continue }
            return try ProviderMetadata(parsing: response.body, issuer: profile.issuer, profile.transport)
        }
        throw SignInError(.unreachable, "\(profile.issuer) cannot be reached")
    }
}
