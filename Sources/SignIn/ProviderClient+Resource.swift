// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignEnrollment
import CountersignOAuth

extension ProviderClient {
    /// Fetches the metadata of a protected resource (RFC 9728) from the address that its challenge names. `target` is
    /// the path and query of the challenged request. Sends no credential, follows no redirect, and asks no other
    /// origin. Throws ``ProtectedResourceError``.
    package func resourceMetadata(
        _ parameter: String, for origin: Origin, _ target: String, issuer: Issuer
    ) async throws -> ProtectedResourceMetadata {
        let challenged: EndpointURL
        do throws(OAuthError) {
            challenged = try EndpointURL("https://\(origin.authority)\(target)", "the request's URL")
        } catch {
            throw ProtectedResourceError(.otherResource, error.detail)
        }
        guard origin.scheme == .https else {
            throw ProtectedResourceError(.otherOrigin, "\(origin) is not https")
        }
        let location = try ProtectedResourceMetadata.location(parameter, of: challenged)
        let response = await send(ProviderRequest(.metadata, location))
        let document: ProviderResponse
        switch response {
        case .response(let received): document = received
        case .failure(let failure):
            throw ProtectedResourceError(
                .unavailable, "the metadata of \(origin)'s resources cannot be fetched: \(failure.detail)")
        }
        guard document.status == 200 else {
            throw ProtectedResourceError(
                .unavailable, "\(origin) does not send the metadata of its resources (\(document.status))")
        }
        return try ProtectedResourceMetadata(parsing: document.body, for: challenged, issuer: issuer)
    }
}
