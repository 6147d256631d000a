// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignHome
import CountersignOAuth
import CountersignSignIn

/// A site's statement about what an access token lacks.
struct LackedScopes: Sendable {
    /// As the challenge says it.
    let stepUp: StepUp
    /// The parameter `resource_metadata` of the challenge (RFC 9728 §5.1), as received.
    let metadata: String?
    let origin: Origin
    /// The request's path and query.
    let target: String

    /// The largest number of scopes to request because the metadata of a resource lists them.
    private static let maximumListed = 16

    /// What to ask the provider for.
    struct Found {
        /// Without the scopes that the token has.
        var stepUp: StepUp
        /// The site's resource identifier (RFC 8707), if the metadata says it.
        var resource: String?
    }

    /// What the challenge names, or else the metadata of the resource lists, without the scopes in `granted`. Throws
    /// `refused` if there is nothing to ask for, and ``ProtectedResourceError`` if the resource is not for tokens of
    /// `issuer`. `inform` gets a sentence about ignored metadata.
    func found(
        besides granted: [String], issuer: Issuer, _ client: ProviderClient, inform: (String) -> Void
    ) async throws -> Found {
        let named = stepUp.scopes
        var found = Found(stepUp: stepUp)
        found.stepUp.scopes = named.filter { !granted.contains($0) }
        guard named.isEmpty || !found.stepUp.scopes.isEmpty || stepUp.isForOneSite else {
            throw CountersignError(.refused, "the provider has granted it before")
        }
        if let metadata {
            let isEnough = found.stepUp != StepUp()
            do {
                let resource = try await client.resourceMetadata(metadata, for: origin, target, issuer: issuer)
                found.resource = resource.resource
                if !isEnough {
                    found.stepUp.scopes = Array(
                        resource.scopes.filter { !granted.contains($0) }.prefix(Self.maximumListed))
                }
            } catch let error as ProtectedResourceError where !error.endsRequest && isEnough {
                inform(error.detail)
            }
        }
        guard found.stepUp != StepUp() else {
            throw CountersignError(
                .refused, "neither the challenge nor the site's metadata names a scope that the token does not have")
        }
        return found
    }
}
