// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignJSON
import Synchronization

/// A small OAuth 2.0 and OpenID Connect provider for the demo and for tests, with one client and one account:
/// discovery, the authorization code flow with PKCE (RFC 7636, required) and pushed requests (RFC 9126), the device
/// flow (RFC 8628), refresh tokens that can be used once (RFC 9700 §4.14.2), revocation (RFC 7009), and a page to sign
/// out.
///
/// It is not for production: nothing outlives the process, access tokens are valid for every API (RFC 8707 is ignored),
/// and there is no session, so that every sign-in shows the login page.
package final class LocalIssuer: Sendable {
    /// The issuer identifier: an origin, such as `http://127.0.0.1:8080`.
    package let url: String
    package let settings: IssuerSettings
    private let machine: Mutex<IssuerMachine>

    /// `random` returns that many unpredictable bytes.
    package init(
        url: String, _ settings: IssuerSettings,
        random: @escaping @Sendable (Int) -> [UInt8] = { Randomness.bytes($0) }
    ) throws(CertificateError) {
        self.url = url
        self.settings = settings
        machine = Mutex(IssuerMachine(url: url, settings, key: try IssuerKey(), random: random))
    }

    /// `now` is in seconds since 1970.
    package func respond(to request: IssuerRequest, now: Int64) -> IssuerResponse {
        machine.withLock { $0.respond(to: request, now: now) }
    }

    /// An access token that is valid now.
    package struct Grant: Sendable, Equatable {
        /// The account's name.
        package let user: String
        package let scopes: [String]
    }

    /// Nil for a token that this issuer has not issued, that has expired or was revoked.
    package func grant(of accessToken: Secret, now: Int64) -> Grant? {
        guard let token = accessToken.utf8Text else { return nil }
        return machine.withLock { $0.grant(of: token, now: now) }
    }
}

/// An issuer's state and its decisions, which take the time as an argument.
struct IssuerMachine: Sendable {
    let url: String
    let settings: IssuerSettings
    let key: IssuerKey
    let random: @Sendable (Int) -> [UInt8]

    /// Authorization requests by the name that the login page has for them, or by their `request_uri`.
    var requests = ExpiringTable<AuthorizationParameters>()
    var pushed = ExpiringTable<AuthorizationParameters>()
    var codes = ExpiringTable<IssuedCode>()
    var accessTokens = ExpiringTable<IssuedToken>()
    var refreshTokens = ExpiringTable<IssuedToken>()
    var devices = ExpiringTable<IssuedDeviceCode>()

    static let requestSeconds: Int64 = 600
    static let codeSeconds: Int64 = 60
    static let refreshSeconds: Int64 = 86_400

    init(
        url: String, _ settings: IssuerSettings, key: IssuerKey, random: @escaping @Sendable (Int) -> [UInt8]
    ) {
        self.url = url
        self.settings = settings
        self.key = key
        self.random = random
    }

    mutating func respond(to request: IssuerRequest, now: Int64) -> IssuerResponse {
        guard let endpoint = IssuerEndpoint.allCases.first(where: { $0.paths.contains(request.path) }) else {
            return .html(IssuerPage.message("There is no such page."), status: 404)
        }
        guard endpoint.methods.contains(request.method) else {
            return .html(IssuerPage.message("This page does not support \(request.method)."), status: 405)
        }
        guard let parameters = request.parameters else {
            return .error("invalid_request", "a parameter is not encoded properly, or is there twice")
        }
        switch endpoint {
        case .metadata: return metadata
        case .keys: return .json([("keys", .array([key.publicKey]))])
        case .push: return push(parameters, now: now)
        case .authorize: return authorize(parameters, now: now)
        case .signIn: return signIn(parameters, now: now)
        case .token: return token(parameters, now: now)
        case .revoke: return revoke(parameters)
        case .device: return device(parameters, now: now)
        case .enter where request.method == "GET":
            return .html(IssuerPage.code(parameters["user_code"] ?? "", settings, message: nil))
        case .enter: return enter(parameters, now: now)
        case .signOut: return .html(IssuerPage.message("You are signed out."))
        }
    }

    /// OpenID Connect Discovery §3, RFC 8414 §2.
    private var metadata: IssuerResponse {
        func texts(_ values: String...) -> JSONValue.Content { .array(values.map { JSONValue(.string($0)) }) }
        func address(_ endpoint: IssuerEndpoint) -> JSONValue.Content { .string(url + endpoint.paths[0]) }
        return .json([
            ("issuer", .string(url)), ("authorization_endpoint", address(.authorize)),
            ("token_endpoint", address(.token)), ("jwks_uri", address(.keys)),
            ("pushed_authorization_request_endpoint", address(.push)),
            ("require_pushed_authorization_requests", .bool(settings.requiresPushedAuthorization)),
            ("device_authorization_endpoint", address(.device)), ("revocation_endpoint", address(.revoke)),
            ("end_session_endpoint", address(.signOut)),
            ("scopes_supported", .array(settings.scopes.map { JSONValue(.string($0)) })),
            ("response_types_supported", texts("code")), ("response_modes_supported", texts("query")),
            (
                "grant_types_supported",
                texts("authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code")
            ),
            ("code_challenge_methods_supported", texts("S256")),
            ("token_endpoint_auth_methods_supported", texts("none")),
            ("revocation_endpoint_auth_methods_supported", texts("none")),
            ("subject_types_supported", texts("public")), ("id_token_signing_alg_values_supported", texts("ES256")),
            ("authorization_response_iss_parameter_supported", .bool(true)),
        ])
    }

    /// A new name that cannot be guessed.
    func newName() -> String { Base64URL.encode(random(24)) }

    func grant(of token: String, now: Int64) -> LocalIssuer.Grant? {
        accessTokens.value(token, now: now).map { LocalIssuer.Grant(user: settings.account.name, scopes: $0.scopes) }
    }

    /// Whether a form has the account's name and password.
    func isSignedIn(_ form: [String: String]) -> Bool {
        form["user"] == settings.account.name && form["password"].map { Secret(utf8: $0) } == settings.account.password
    }
}

/// The issuer's pages and endpoints.
enum IssuerEndpoint: CaseIterable {
    case metadata
    case keys
    case push
    case authorize
    case signIn
    case token
    case revoke
    case device
    case enter
    case signOut

    var paths: [String] {
        switch self {
        case .metadata: ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"]
        case .keys: ["/keys"]
        case .push: ["/push"]
        case .authorize: ["/authorize"]
        case .signIn: ["/sign-in"]
        case .token: ["/token"]
        case .revoke: ["/revoke"]
        case .device: ["/device"]
        case .enter: ["/enter"]
        case .signOut: ["/sign-out"]
        }
    }

    var methods: [String] {
        switch self {
        case .metadata, .keys: ["GET"]
        case .push, .signIn, .token, .revoke, .device: ["POST"]
        // OpenID Connect Core §3.1.2.1, RP-Initiated Logout §2.
        case .authorize, .enter, .signOut: ["GET", "POST"]
        }
    }
}
