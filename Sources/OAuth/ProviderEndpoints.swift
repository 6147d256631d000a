// SPDX-License-Identifier: Apache-2.0

/// The endpoints of a provider that has no metadata, as a profile names them; by the names of RFC 8414 §2.
package struct ProviderEndpoints: Sendable, Equatable {
    package var authorization: EndpointURL?
    package var token: EndpointURL
    package var keys: EndpointURL?
    package var deviceAuthorization: EndpointURL?
    package var revocation: EndpointURL?
    package var endSession: EndpointURL?

    package init(token: EndpointURL) { self.token = token }
}

extension ProviderMetadata {
    /// Metadata from a profile. `hasIssuer` says that the profile names the issuer, too. The provider promises nothing:
    /// neither `iss` in its responses, nor how it wants to have a client secret.
    package init(_ endpoints: ProviderEndpoints, issuer: Issuer, hasIssuer: Bool) {
        self.issuer = issuer.text
        self.hasIssuer = hasIssuer
        authorizationEndpoint = endpoints.authorization
        tokenEndpoint = endpoints.token
        keysEndpoint = endpoints.keys
        pushedAuthorizationEndpoint = nil
        requiresPushedAuthorization = false
        deviceAuthorizationEndpoint = endpoints.deviceAuthorization
        revocationEndpoint = endpoints.revocation
        endSessionEndpoint = endpoints.endSession
        sendsIssuerInResponses = false
        responseModes = nil
        tokenEndpointAuthenticationMethods = nil
        revocationEndpointAuthenticationMethods = nil
    }
}
