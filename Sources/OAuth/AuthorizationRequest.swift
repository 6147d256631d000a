// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignJSON

/// One authorization request (RFC 6749 §4.1.1) with PKCE (RFC 7636 §4.3).
package struct AuthorizationRequest: Sendable, Equatable {
    /// As sent: a loopback URI has its port.
    package let redirect: RedirectURI
    package let secrets: SignInSecrets
    private let wanted: SignInRequest
    private let metadata: ProviderMetadata
    private let endpoint: EndpointURL

    /// Throws `unsupportedProvider` if the provider has no authorization endpoint, and `malformedResponse` if that
    /// already has a parameter that a request needs.
    package init(
        _ wanted: SignInRequest, redirect: RedirectURI, secrets: SignInSecrets, metadata: ProviderMetadata
    ) throws(OAuthError) {
        guard let endpoint = metadata.authorizationEndpoint else {
            throw OAuthError(.unsupportedProvider, .provider, "the provider has no authorization endpoint")
        }
        self.redirect = redirect
        self.secrets = secrets
        self.wanted = wanted
        self.metadata = metadata
        self.endpoint = endpoint
        let what = "the authorization endpoint"
        guard let taken = FormEncoding.decode((endpoint.query ?? "").utf8) else {
            throw .malformed(what, "its query cannot be read")
        }
        let ours = parameters.pairs.map(\.name)
        guard !taken.contains(where: { ours.containsExactly($0.name) }) else {
            throw .malformed(what, "its query has a parameter of the request")
        }
    }

    /// Where the person signs in. Must not be used if the provider requires that the request is pushed.
    package var url: EndpointURL { endpoint.adding(query: parameters.text) }

    /// Whether the request is pushed first (RFC 9126).
    package var isPushed: Bool {
        metadata.requiresPushedAuthorization
            || wanted.usesPushedAuthorization && metadata.pushedAuthorizationEndpoint != nil
    }

    /// Whether the person can be sent to ``url`` although the push was refused: the endpoint does not exist, or not for
    /// this client, and the provider does not require it.
    func canDoWithoutPush(_ response: ProviderResponse) -> Bool {
        !metadata.requiresPushedAuthorization && [401, 403, 404, 405].contains(response.status)
    }

    /// RFC 9126 §2.1. Throws `unsupportedProvider` if the provider requires it and has no endpoint for it.
    func pushed() throws(OAuthError) -> ProviderRequest {
        guard let endpoint = metadata.pushedAuthorizationEndpoint else {
            throw OAuthError(
                .unsupportedProvider, .provider,
                "the provider requires pushed authorization requests and names no endpoint for them")
        }
        return wanted.client.request(.pushedAuthorization, endpoint, parameters)
    }

    /// Where the person signs in after the request was pushed (RFC 9126 §4).
    func url(afterPush response: ProviderResponse, hiding secrets: [Secret] = []) throws(OAuthError) -> EndpointURL {
        let what = "the response of the pushed authorization request endpoint"
        // §2.2 requires 201; some providers send 200.
        guard response.status == 201 || response.status == 200, response.isJSON else {
            throw ProviderError.error(response, at: .pushedAuthorization, hiding: secrets)
        }
        let name = try OAuthError.reading(what) { () throws(JSONError) in
            var reader = try JSONReader(try JSONParser.parse(response.body), "the document", .lenient)
            return try reader.string("request_uri")
        }
        guard !name.isEmpty, name.utf8.count <= 2048, name.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw .malformed(what, "\"request_uri\" is not a URI")
        }
        var parameters = FormParameters()
        parameters.append("client_id", wanted.client.identifier)
        parameters.append("request_uri", name)
        return endpoint.adding(query: parameters.text)
    }

    private var parameters: FormParameters {
        var parameters = FormParameters()
        parameters.append("response_type", "code")
        parameters.append("client_id", wanted.client.identifier)
        parameters.append("redirect_uri", redirect.text)
        parameters.append("scope", ifPresent: wanted.scope)
        parameters.append("state", secrets.state)
        if wanted.asksForIDToken { parameters.append("nonce", secrets.nonce) }
        parameters.append("code_challenge", secrets.pkce.challenge)
        parameters.append("code_challenge_method", "S256")
        // Binds the code, too (RFC 9449 §10).
        parameters.append("dpop_jkt", ifPresent: wanted.proofKey.map(DPoPProof.thumbprint))
        for resource in wanted.resources { parameters.append("resource", resource) }
        if wanted.usesFormPost { parameters.append("response_mode", "form_post") }
        parameters.append("login_hint", ifPresent: wanted.loginHint)
        parameters.append("prompt", ifPresent: wanted.prompt)
        parameters.append("claims", ifPresent: wanted.claims?.serialized)
        parameters.append("client_info", ifPresent: wanted.clientInfo(besides: wanted.parameters))
        for parameter in wanted.authorizationParameters { parameters.append(parameter.name, parameter.value) }
        return parameters
    }
}
