// SPDX-License-Identifier: Apache-2.0

import CountersignJSON
import CountersignOAuth

/// Who the provider is, and where: its issuer, which publishes the rest, or the endpoints of one that publishes
/// nothing.
struct ProviderSettings {
    let issuer: Issuer
    /// Nil if the provider publishes it.
    let metadata: ProviderMetadata?
    let transport: EndpointURL.Transport

    /// The keys of endpoints, by the names of RFC 8414 §2.
    private static let endpointKeys = [
        "authorization_endpoint", "jwks_uri", "device_authorization_endpoint", "revocation_endpoint",
        "end_session_endpoint",
    ]

    /// Whether an ID token can be verified.
    var verifiesIDTokens: Bool { metadata.map { $0.keysEndpoint != nil } ?? true }

    init(_ reader: inout JSONReader) throws {
        let tokenText = try reader.stringIfPresent("token_endpoint")
        let issuerText = try tokenText == nil ? reader.string("issuer") : reader.stringIfPresent("issuer")
        // A provider on this machine, such as one for tests. The loopback interface needs no TLS.
        let isPlain = (issuerText ?? tokenText)?.hasPrefix("http://") == true
        let transport: EndpointURL.Transport = isPlain ? .secureOrLoopback : .secure
        self.transport = transport
        let named = try issuerText.map { text in
            try reader.position(of: "issuer").locating { () throws(OAuthError) in try Issuer(text, transport) }
        }
        var endpoints: [String: EndpointURL] = [:]
        for key in ["token_endpoint"] + Self.endpointKeys {
            guard let text = try reader.stringIfPresent(key) else { continue }
            guard tokenText != nil else {
                throw reader.invalid(
                    key,
                    "needs \"token_endpoint\", with which the profile names all endpoints of the provider; without "
                        + "it, the provider publishes them")
            }
            endpoints[key] = try reader.position(of: key).locating { () throws(OAuthError) in
                try EndpointURL(text, key, transport)
            }
        }
        guard let token = endpoints["token_endpoint"] else {
            guard let named else { throw reader.invalid("issuer", "is missing") }
            (issuer, metadata) = (named, nil)
            return
        }
        if named == nil, endpoints["jwks_uri"] != nil {
            throw reader.invalid("jwks_uri", "needs \"issuer\", which an ID token must name")
        }
        issuer = try named ?? Issuer("\(token.origin.scheme.rawValue)://\(token.origin.authority)", transport)
        var given = ProviderEndpoints(token: token)
        given.authorization = endpoints["authorization_endpoint"]
        given.keys = endpoints["jwks_uri"]
        given.deviceAuthorization = endpoints["device_authorization_endpoint"]
        given.revocation = endpoints["revocation_endpoint"]
        given.endSession = endpoints["end_session_endpoint"]
        metadata = ProviderMetadata(given, issuer: issuer, hasIssuer: named != nil)
    }

    /// Throws if a person could not sign in at the named endpoints, or a machine would send what it signs elsewhere.
    func check(for grant: MachineGrant?, _ reader: JSONReader) throws {
        if let grant, grant.signs {
            guard let metadata else {
                throw reader.invalid("token_endpoint", "is missing: what the client signs is for this address alone")
            }
            if case .installation = grant, !MachineGrant.Installation.isEndpoint(metadata.tokenEndpoint) {
                throw reader.invalid(
                    "token_endpoint",
                    "must be the API's address with /app/installations/NUMBER/access_tokens, such as "
                        + "https://api.github.com/app/installations/12345/access_tokens")
            }
        }
        guard grant == nil, let metadata, metadata.authorizationEndpoint == nil,
            metadata.deviceAuthorizationEndpoint == nil
        else { return }
        throw reader.invalid(
            "token_endpoint",
            "needs \"authorization_endpoint\" or \"device_authorization_endpoint\" beside it: where a "
                + "person signs in")
    }
}

extension SignInProfile {
    /// Throws for the scope `openid` if the ID token would not be used or could not be verified.
    static func checkOpenID(_ provider: ProviderSettings, _ client: ClientSettings, _ reader: JSONReader) throws {
        guard client.grant == nil else {
            throw reader.invalid("scopes", "must not have \"openid\": with this \"grant_type\", nobody signs in")
        }
        guard provider.verifiesIDTokens else {
            throw reader.invalid("scopes", "has \"openid\", and without \"jwks_uri\" no ID token can be verified")
        }
    }
}
