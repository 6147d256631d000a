// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignEnrollment
import CountersignOAuth

extension ProviderClient {
    /// Fetches the metadata of a protected resource (RFC 9728) from the address that its challenge names; nil for the
    /// well-known addresses. `target` is the path and query of the challenged request. Sends no credential, follows no
    /// redirect, and asks no other origin. Throws ``ProtectedResourceError``.
    package func resourceMetadata(
        _ parameter: String?, for origin: Origin, _ target: String, issuer: Issuer?
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
        var locations = try parameter.map { [try ProtectedResourceMetadata.location($0, of: challenged)] }
        locations = locations ?? ProtectedResourceMetadata.wellKnownLocations(of: challenged)
        var status = 0
        for location in locations ?? [] {
            switch await send(ProviderRequest(.metadata, location)) {
            case .response(let document) where document.status == 200:
                return try ProtectedResourceMetadata(parsing: document.body, for: challenged, issuer: issuer)
            case .response(let document): status = document.status
            case .failure(let failure):
                throw ProtectedResourceError(
                    .unavailable, "the metadata of \(origin)'s resources cannot be fetched: \(failure.detail)")
            }
        }
        throw ProtectedResourceError(
            .unavailable, "\(origin) does not send the metadata of its resources (\(status))")
    }
}

extension ProviderClient {
    /// A site's demand for a token, in answer to a request without one.
    package struct SiteChallenge: Sendable {
        /// The parameter `resource_metadata` (RFC 9728 §5.1), as received.
        package let metadata: String?
        /// The scopes that the challenge names (RFC 6750 §3).
        package let scopes: [String]
    }

    /// Requests `url`. Nil if it is not challenged for a Bearer token, and so may be a document. Throws
    /// ``EnrollmentError``.
    package func challenge(at url: EndpointURL) async throws -> SiteChallenge? {
        let response = try await fetch(exchange(url, body: nil), url)
        guard response.status == 401 else { return nil }
        let fields = response.fields.filter { $0.name == "www-authenticate" }.map(\.value)
        guard
            let challenge = try? ChallengeParser.parse(fields: fields).first(where: {
                $0.isOf("Bearer") || $0.isOf(DPoPAuthenticator.name)
            })
        else { return nil }
        let scopes = challenge.parameter("scope")?.split(separator: " ").map(String.init) ?? []
        return SiteChallenge(
            metadata: BearerError.resourceMetadata(in: fields),
            scopes: scopes.filter { (try? SignInRequest.check(scope: $0)) != nil })
    }

    /// Registers a client. Throws ``OAuthError``.
    package func register(_ client: ClientRegistration, at metadata: ProviderMetadata) async throws(OAuthError)
        -> String
    {
        try client.identifier(await send(try client.request(at: metadata)))
    }

    /// The metadata document of a client, at its identifier. Throws ``OAuthError``.
    package func clientDocument(_ identifier: String) async throws(OAuthError) -> ClientDocument {
        let location = try ClientDocument.location(identifier)
        return try ClientDocument(await send(ProviderRequest(.clientDocument, location)), for: identifier)
    }

    /// The metadata of an issuer. Throws ``OAuthError``.
    package func metadata(of issuer: Issuer) async throws(OAuthError) -> ProviderMetadata {
        var fetch = MetadataFetch(issuer, .secure)
        var request = fetch.start()
        while true {
            switch try fetch.received(await send(request)) {
            case .send(let next): request = next
            case .done(let metadata): return metadata
            }
        }
    }
}
