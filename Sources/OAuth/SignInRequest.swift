// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// The wishes of the profile and the caller for a sign-in.
package struct SignInRequest: Sendable, Equatable {
    package var client: Client
    /// `openid` asks for an ID token (OpenID Connect Core §3.1.2.1).
    package var scopes: [String]
    /// The APIs that the token is for (RFC 8707 §2).
    package var resources: [String]
    /// Those of ``resources`` that one access token is for; nil for all.
    package var tokenResources: [String]?
    /// Sent unchanged in the authorization request. They must not be ones that the protocol sets.
    package var parameters: [Parameter]
    /// Sent unchanged in every token request.
    package var tokenParameters: [Parameter]
    /// A JSON object (OpenID Connect Core §5.5).
    package var claims: JSONValue?
    package var loginHint: String?
    /// Authentication context class references, by preference (RFC 9470 §4). The ID token must name one of them, if
    /// there are any.
    package var acrValues: [String] = []
    /// How long ago the person may have signed in, in seconds (OpenID Connect Core §3.1.2.1). The ID token must say so.
    package var maxAge: Int64?
    /// OpenID Connect Core §3.1.2.1: `login`, `consent`, `select_account`.
    package var prompt: String?
    /// Ask for the response in a POST (OAuth 2.0 Form Post Response Mode §2).
    package var usesFormPost: Bool
    /// Push the request if the provider can (RFC 9126). A provider that requires it gets it in any case.
    package var usesPushedAuthorization: Bool
    /// Ask for ``ClientInfo`` with `client_info=1`, unless the profile's own parameters have it.
    package var asksForClientInfo = false
    /// The key to which the tokens are bound (RFC 9449); nil for bearer tokens.
    package var proofKey: ES256Key?

    package struct Parameter: Sendable, Hashable {
        package let name: String
        package let value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// Throws `configuration` for a scope, resource or parameter that cannot be sent; see ``check()``.
    package init(
        client: Client, scopes: [String], resources: [String] = [], parameters: [Parameter] = [],
        tokenParameters: [Parameter] = [], claims: JSONValue? = nil, loginHint: String? = nil, prompt: String? = nil,
        usesFormPost: Bool = false, usesPushedAuthorization: Bool = true
    ) throws(OAuthError) {
        self.client = client
        self.scopes = scopes
        self.resources = resources
        self.parameters = parameters
        self.tokenParameters = tokenParameters
        self.claims = claims
        self.loginHint = loginHint
        self.prompt = prompt
        self.usesFormPost = usesFormPost
        self.usesPushedAuthorization = usesPushedAuthorization
        try check()
    }

    /// `openid` is one of the scopes.
    package var asksForIDToken: Bool { scopes.containsExactly("openid") }

    /// With more scopes, each once. Throws `configuration` for one that cannot be sent.
    package func adding(scopes more: [String]) throws(OAuthError) -> SignInRequest {
        var request = self
        for scope in more where !request.scopes.containsExactly(scope) { request.scopes.append(scope) }
        try request.check()
        return request
    }

    /// With a sign-in of one of these classes, at most so many seconds ago.
    package func requiring(acrValues: [String], maxAge: Int64?) throws(OAuthError) -> SignInRequest {
        var request = self
        guard asksForIDToken || acrValues.isEmpty && maxAge == nil else {
            throw OAuthError(
                .configuration, .profile,
                "the profile does not ask for the scope openid, so that nobody can tell how you have signed in",
                hint: "ask the organisation for a profile with this scope")
        }
        request.acrValues = acrValues
        request.maxAge = maxAge
        try request.check()
        return request
    }

    /// With other wishes; nil keeps those that it has, and a parameter replaces the one of its name. Throws
    /// `configuration` for a parameter that cannot be sent.
    package func changing(
        prompt: String?, loginHint: String?, parameters more: [Parameter]
    ) throws(OAuthError) -> SignInRequest {
        var request = self
        request.prompt = prompt ?? request.prompt
        request.loginHint = loginHint ?? request.loginHint
        request.parameters = parameters.filter { old in !more.contains { $0.name.isExactly(old.name) } } + more
        try request.check()
        return request
    }

    /// The parameters of the request for authorization that say how the person signs in, and the profile's own.
    var authorizationParameters: [Parameter] {
        var required: [Parameter] = []
        if !acrValues.isEmpty { required.append(Parameter("acr_values", acrValues.joined(separator: " "))) }
        if let maxAge { required.append(Parameter("max_age", "\(maxAge)")) }
        return required + parameters.filter { own in !required.contains { $0.name == own.name } }
    }

    /// `client_info=1`, if the request asks for it and `own` does not have it.
    func clientInfo(besides own: [Parameter]) -> String? {
        asksForClientInfo && !own.contains { $0.name == "client_info" } ? "1" : nil
    }

    var scope: String? { scopes.isEmpty ? nil : scopes.joined(separator: " ") }
}

// MARK: Checks

extension SignInRequest {
    /// The parameters that the protocol sets, and those that would move the request to another document (OpenID Connect
    /// Core §6).
    private static let reserved: Set<String> = [
        "response_type", "client_id", "client_secret", "redirect_uri", "scope", "state", "nonce", "code_challenge",
        "code_challenge_method", "code_verifier", "resource", "response_mode", "login_hint", "prompt", "claims",
        "request", "request_uri", "grant_type", "code", "refresh_token", "device_code", "client_assertion",
        "client_assertion_type", "dpop_jkt",
    ]

    private func check() throws(OAuthError) {
        if !client.identifier.isEmpty { try Self.check(clientIdentifier: client.identifier) }
        for scope in scopes { try Self.check(scope: scope) }
        for resource in resources { try Self.check(resource: resource) }
        if maxAge ?? 0 < 0 || !acrValues.allSatisfy(Self.isClass) {
            throw .profile("the required kind of sign-in has a character that OAuth does not permit")
        }
        try Self.check(parameters)
        try Self.check(tokenParameters)
        if let claims, claims.kind != "an object" { throw .profile("the claims must be an object") }
    }

    private static func isClass(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    /// RFC 6749 §2.2. Throws `configuration`, as the other checks do.
    package static func check(clientIdentifier: String) throws(OAuthError) {
        guard !clientIdentifier.isEmpty, clientIdentifier.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
            throw .profile("the client identifier is empty or has a character that OAuth does not permit")
        }
    }

    /// RFC 6749 §3.3.
    package static func check(scope: String) throws(OAuthError) {
        guard !scope.isEmpty, scope.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C }) else {
            throw .profile("\(PrintableText.quote(scope)) is not a scope")
        }
    }

    /// RFC 8707 §2: an absolute URI without a fragment.
    package static func check(resource: String) throws(OAuthError) {
        guard let colon = resource.firstIndex(of: ":"), colon > resource.startIndex, !resource.contains("#"),
            resource.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw .profile("the resource \(PrintableText.quote(resource)) is not an absolute URI without fragment") }
    }

    /// The protocol's own parameters cannot be added.
    package static func check(_ parameter: Parameter) throws(OAuthError) {
        guard !parameter.name.isEmpty, !reserved.contains(parameter.name) else {
            throw .profile(
                "the parameter \(PrintableText.quote(parameter.name)) is set by the protocol and cannot be added")
        }
    }

    private static func check(_ parameters: [Parameter]) throws(OAuthError) {
        var names: Set<String> = []
        for parameter in parameters {
            try check(parameter)
            guard names.insert(parameter.name).inserted else {
                throw .profile("the parameter \(PrintableText.quote(parameter.name)) is there twice")
            }
        }
    }
}
