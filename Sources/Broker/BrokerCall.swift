// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// A call of a method of the identity broker on the session bus. Each takes three strings, the protocol's version, a
/// correlation identifier and a JSON object, and returns one, a JSON object.
///
/// Microsoft publishes no description of the interface. Names and members are those that siemens/linux-entra-sso,
/// siemens/sso-mib and himmelblau-idm/himmelblau agree on. The broker has no introspection after version 2.0.1.
package struct BrokerCall: Equatable, Sendable {
    package static let busName = "com.microsoft.identity.broker1"
    package static let objectPath = "/com/microsoft/identity/broker1"
    package static let interface = "com.microsoft.identity.Broker1"
    /// The protocol's version that clients send.
    package static let protocolVersion = "0.0"

    package enum Method: String, Sendable, CaseIterable {
        case getAccounts
        case acquireTokenSilently
        case acquireTokenInteractively
        /// Is not called: its request is not known.
        case cancelInteractiveFlow
        case acquirePrtSsoCookie
        case removeAccount
        case generateSignedHttpRequest
        case getLinuxBrokerVersion
    }

    package let method: Method
    /// A JSON object. May contain account data; no token, except in a token's renewal.
    package let request: JSONValue
    /// Nil: a person signs in meanwhile, which may take any time.
    package let limit: Duration?

    package init(_ method: Method, _ request: JSONValue, limit: Duration? = Self.limit) {
        self.method = method
        self.request = request
        self.limit = limit
    }

    /// How long a call for tokens may take without a person. The broker asks the network.
    package static let limit = Duration.seconds(20)
    /// How long a call may take for which a page waits.
    static let pageLimit = Duration.seconds(10)
}

/// A program that the broker acquires something for.
package struct BrokerClientApp: Equatable, Sendable {
    package let identifier: String
    package let redirectURI: String
    /// The URL of the tenant: `https://login.microsoftonline.com/common`.
    package let authority: String
    package let scopes: [String]
    /// A JSON object: the claims that the tokens have to contain (OpenID Connect Core §5.5).
    package let claims: String?
    /// Sent unchanged with each authorization request, by name.
    package let parameters: [String: String]

    package init(
        identifier: String, redirectURI: String, authority: String, scopes: [String], claims: String? = nil,
        parameters: [String: String] = [:]
    ) {
        self.identifier = identifier
        self.redirectURI = redirectURI
        self.authority = authority
        self.scopes = scopes
        self.claims = claims
        self.parameters = parameters
    }

    /// The browser that the cookie for navigation requests is for. The broker issues it to this client only.
    package static let browser = BrokerClientApp(
        identifier: "d7b530a4-7680-4c23-a8bf-c52c121d2e87",
        redirectURI: "https://login.microsoftonline.com/common/oauth2/nativeclient",
        authority: "https://login.microsoftonline.com/common", scopes: ["https://graph.microsoft.com/.default"])
}

extension BrokerCall {
    /// `authorizationType` in the parameters.
    private enum Authorization: Int64 {
        case silent = 1
        case interactive = 6
        case cookie = 8
    }

    package static func accounts(for app: BrokerClientApp) -> BrokerCall {
        BrokerCall(
            .getAccounts,
            .object([("clientId", .text(app.identifier)), ("redirectUri", .text(app.redirectURI))]),
            limit: pageLimit)
    }

    /// Tokens without a person. With `renewing`, others than that access token.
    package static func token(
        for app: BrokerClientApp, of account: BrokerAccount, renewing: Secret? = nil
    ) -> BrokerCall {
        let parameters = parameters(
            .silent, app, account,
            more: renewing.map { [("accessTokenToRenew", JSONValue(.secret($0)))] } ?? [])
        return BrokerCall(
            .acquireTokenSilently, .object([("account", account.object), ("authParameters", parameters)]))
    }

    /// Tokens after the broker has asked the person, in a window of its own. Without an account, the person chooses.
    package static func interactiveToken(
        for app: BrokerClientApp, of account: BrokerAccount?, prompt: String? = nil
    ) -> BrokerCall {
        let parameters = parameters(
            .interactive, app, account, more: prompt.map { [("prompt", .text($0))] } ?? [])
        let accounts = account.map { [("account", $0.object)] } ?? []
        return BrokerCall(
            .acquireTokenInteractively, .object(accounts + [("authParameters", parameters)]), limit: nil)
    }

    /// The cookie for a navigation request to `url`.
    package static func cookie(
        for url: String, of account: BrokerAccount, app: BrokerClientApp = .browser
    ) -> BrokerCall {
        let parameters = parameters(.cookie, app, account, more: [("ssoUrl", .text(url))])
        return BrokerCall(
            .acquirePrtSsoCookie,
            .object([
                ("account", account.object), ("authParameters", parameters), ("mamEnrollment", JSONValue(.bool(false))),
                ("ssoUrl", .text(url)),
            ]), limit: pageLimit)
    }

    package static func version(of program: String) -> BrokerCall {
        BrokerCall(.getLinuxBrokerVersion, .object([("msalCppVersion", .text(program))]))
    }

    private static func parameters(
        _ authorization: Authorization, _ app: BrokerClientApp, _ account: BrokerAccount?,
        more: [(String, JSONValue)] = []
    ) -> JSONValue {
        var members: [(String, JSONValue)] = []
        if let account { members.append(("account", account.object)) }
        let additional = app.parameters.sorted { $0.key < $1.key }.map { ($0.key, JSONValue.text($0.value)) }
        members.append(("additionalQueryParametersForAuthorization", .object(additional)))
        members.append(("authority", .text(app.authority)))
        members.append(("authorizationType", JSONValue(.integer(authorization.rawValue))))
        members.append(("clientId", .text(app.identifier)))
        if let claims = app.claims { members.append(("decodedClaims", .text(claims))) }
        members.append(("redirectUri", .text(app.redirectURI)))
        members.append(("requestedScopes", JSONValue(.array(app.scopes.map { .text($0) }))))
        if let account { members.append(("username", .text(account.username))) }
        return .object(members + more)
    }
}

extension JSONValue {
    static func text(_ text: String) -> JSONValue { JSONValue(.string(text)) }

    static func object(_ members: [(String, JSONValue)]) -> JSONValue {
        JSONValue(.object(members.map { JSONMember($0.0, $0.1) }))
    }
}
