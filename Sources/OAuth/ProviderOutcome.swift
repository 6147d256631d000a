// SPDX-License-Identifier: Apache-2.0

/// The outcome of a ``ProviderRequest``.
package enum ProviderOutcome: Sendable {
    case response(ProviderResponse)
    /// There is no complete response.
    case failure(ProviderFailure)

    /// Throws `unreachable` if there is no response.
    func response(from purpose: ProviderRequest.Purpose) throws(OAuthError) -> ProviderResponse {
        switch self {
        case .response(let response): return response
        case .failure(let failure): throw failure.error(at: purpose)
        }
    }
    /// The tokens of a response that is not accepted, whatever their type is; see ``TokenResponse/init(ofAnyType:)``.
    func refusedTokens(now: Int64) -> TokenSet? {
        guard case .response(let response) = self else { return nil }
        return TokenResponse(ofAnyType: response).map { TokenSet($0, requestedScope: nil, now: now) }
    }
}
