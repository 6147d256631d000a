// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The requests to the token endpoint.
enum TokenRequest {
    /// RFC 6749 §4.1.3 with the verifier of RFC 7636 §4.5.
    static func redeeming(
        _ response: AuthorizationResponse, of request: AuthorizationRequest, _ wanted: SignInRequest,
        at metadata: ProviderMetadata
    ) -> ProviderRequest {
        var parameters = FormParameters()
        parameters.append("grant_type", "authorization_code")
        parameters.append("code", response.code)
        parameters.append("redirect_uri", request.redirect.text)
        parameters.append("code_verifier", request.secrets.pkce.verifier)
        return wanted.tokenRequest(parameters, at: metadata)
    }

    /// RFC 6749 §6. Omits the scope, which asks for the originally granted scope.
    static func refreshing(
        _ refreshToken: Secret, _ wanted: SignInRequest, at metadata: ProviderMetadata
    ) -> ProviderRequest {
        var parameters = FormParameters()
        parameters.append("grant_type", "refresh_token")
        parameters.append("refresh_token", refreshToken)
        return wanted.tokenRequest(parameters, at: metadata)
    }

    /// RFC 8628 §3.4.
    static func polling(
        _ deviceCode: Secret, _ wanted: SignInRequest, at metadata: ProviderMetadata
    ) -> ProviderRequest {
        var parameters = FormParameters()
        parameters.append("grant_type", "urn:ietf:params:oauth:grant-type:device_code")
        parameters.append("device_code", deviceCode)
        return wanted.tokenRequest(parameters, at: metadata)
    }
}

extension MachineGrant {
    /// `token` is the contents of the grant's file, or the client's assertion.
    func request(_ token: Secret?, _ wanted: SignInRequest, at metadata: ProviderMetadata) -> ProviderRequest {
        var parameters = FormParameters()
        parameters.append("grant_type", name)
        switch self {
        case .clientCredentials: break
        // The scope is in the assertion, where Google reads it.
        case .signedAssertion:
            if let token { parameters.append("assertion", token) }
            return wanted.tokenRequest(parameters, at: metadata)
        case .installation(let installation): return installation.request(token, at: metadata.tokenEndpoint)
        case .assertion: if let token { parameters.append("assertion", token) }
        case .exchange(let exchange):
            if let token { parameters.append("subject_token", token) }
            parameters.append("subject_token_type", exchange.subjectTokenType)
            parameters.append("requested_token_type", ifPresent: exchange.requestedTokenType)
            parameters.append("audience", ifPresent: exchange.audience)
        }
        parameters.append("scope", ifPresent: wanted.scope)
        return wanted.tokenRequest(parameters, at: metadata)
    }
}

extension SignInRequest {
    /// Adds the parameters of every token request: the resources (RFC 8707 §2.2), the claims, the profile's parameters,
    /// the client. Microsoft's provider puts claims into an access token only if the token request asks for them, too.
    fileprivate func tokenRequest(_ parameters: FormParameters, at metadata: ProviderMetadata) -> ProviderRequest {
        var parameters = parameters
        for resource in tokenResources ?? resources { parameters.append("resource", resource) }
        parameters.append("claims", ifPresent: claims?.serialized)
        parameters.append("client_info", ifPresent: clientInfo(besides: tokenParameters))
        for parameter in tokenParameters { parameters.append(parameter.name, parameter.value) }
        return client.request(.token, metadata.tokenEndpoint, parameters, proofKey: proofKey)
    }
}
