// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignHome
import CountersignOAuth
import CountersignSignIn

/// A site's statement about the scopes that an access token lacks.
struct LackedScopes: Sendable {
    /// In the challenge; empty if it names none.
    let named: [String]
    /// The parameter `resource_metadata` of the challenge (RFC 9728 §5.1), as received.
    let metadata: String?
    let origin: Origin
    /// The request's path and query.
    let target: String

    /// The largest number of scopes to request because the metadata of a resource lists them.
    private static let maximumListed = 16

    /// The scopes that the challenge names, or else the metadata of the resource, without those in `granted`. Throws
    /// `refused` without any, and ``ProtectedResourceError`` if the resource is not for tokens of `issuer`. `inform`
    /// gets a sentence about ignored metadata.
    func found(
        besides granted: [String], issuer: Issuer, _ client: ProviderClient, inform: (String) -> Void
    ) async throws -> [String] {
        var missing = named.filter { !granted.contains($0) }
        guard named.isEmpty || !missing.isEmpty else {
            throw CountersignError(.refused, "the provider has granted it before")
        }
        if let metadata {
            do {
                let listed = try await client.resourceMetadata(metadata, for: origin, target, issuer: issuer).scopes
                if missing.isEmpty {
                    missing = Array(listed.filter { !granted.contains($0) }.prefix(Self.maximumListed))
                }
            } catch let error as ProtectedResourceError where !error.endsRequest && !missing.isEmpty {
                inform(error.detail)
            }
        }
        guard !missing.isEmpty else {
            throw CountersignError(
                .refused, "neither the challenge nor the site's metadata names a scope that the token does not have")
        }
        return missing
    }
}
