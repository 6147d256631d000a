// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON
import Testing

@testable import CountersignBroker

/// The requests and replies, without a bus.
@Suite struct BrokerMessageTests {
    private static let accountText =
        #"{"homeAccountId":"uid.utid","later":{"kept":[1]},"name":"J. Doe","username":"jdoe@corp.example"}"#
    private static let app = BrokerClientApp(
        identifier: "app", redirectURI: "https://app.example/", authority: "https://login.example/common",
        scopes: ["api", "openid"])

    private static func account() throws -> BrokerAccount { try BrokerAccount(parsing: accountText) }

    private static func reply(
        _ text: String, to method: BrokerCall.Method = .acquireTokenSilently
    ) throws -> BrokerReply {
        try BrokerReply(Array(text.utf8), to: method)
    }

    // MARK: Requests

    @Test func aRequestForAccountsNamesTheProgram() {
        #expect(
            BrokerCall.accounts(for: Self.app).request.serialized
                == #"{"clientId":"app","redirectUri":"https://app.example/"}"#)
    }

    @Test func aRequestForTokensHasTheWholeAccount() throws {
        let call = BrokerCall.token(for: Self.app, of: try Self.account())
        #expect(call.method == .acquireTokenSilently && call.limit != nil)
        #expect(
            call.request.serialized
                == #"{"account":\#(Self.accountText),"authParameters":{"account":\#(Self.accountText),"#
                + #""additionalQueryParametersForAuthorization":{},"authority":"https://login.example/common","#
                + #""authorizationType":1,"clientId":"app","redirectUri":"https://app.example/","#
                + #""requestedScopes":["api","openid"],"username":"jdoe@corp.example"}}"#)
    }

    @Test func anInteractiveRequestHasNoTimeLimit() throws {
        let app = BrokerClientApp(
            identifier: "app", redirectURI: "https://app.example/", authority: "https://login.example/common",
            scopes: [], claims: #"{"a":1}"#, parameters: ["acr_values": "mfa"])
        let call = BrokerCall.interactiveToken(for: app, of: nil, prompt: "login")
        #expect(call.method == .acquireTokenInteractively && call.limit == nil)
        let parameters = try #require(call.request["authParameters"])
        #expect(parameters["authorizationType"] == JSONValue(.integer(6)))
        #expect(parameters["decodedClaims"] == JSONValue(.string(#"{"a":1}"#)))
        #expect(parameters["prompt"] == JSONValue(.string("login")))
        let additional = parameters["additionalQueryParametersForAuthorization"]
        #expect(additional?["acr_values"] == JSONValue(.string("mfa")))
        #expect(parameters["account"] == nil && parameters["username"] == nil && call.request["account"] == nil)
    }

    @Test func aRequestForTheCookieHasTheURLTwice() throws {
        let url = "https://login.microsoftonline.com/x?sso_nonce=n"
        let request = BrokerCall.cookie(for: url, of: try Self.account()).request
        #expect(request["ssoUrl"] == JSONValue(.string(url)) && request["mamEnrollment"] == JSONValue(.bool(false)))
        let parameters = try #require(request["authParameters"])
        #expect(parameters["ssoUrl"] == JSONValue(.string(url)))
        #expect(parameters["authorizationType"] == JSONValue(.integer(8)))
        #expect(parameters["clientId"] == JSONValue(.string("d7b530a4-7680-4c23-a8bf-c52c121d2e87")))
    }

    @Test func aCorrelationIdentifierIsAUUID() {
        let bytes = [UInt8](repeating: 0xFF, count: 16)
        #expect(Broker.identifier(bytes) == "ffffffff-ffff-4fff-bfff-ffffffffffff")
        #expect(Broker.identifier([UInt8](repeating: 0, count: 16)) == "00000000-0000-4000-8000-000000000000")
    }

    // MARK: Replies

    @Test func accountsAreReadInOrder() throws {
        let reply = try Self.reply(#"{"accounts":[\#(Self.accountText),{"username":"b"}],"x":1}"#, to: .getAccounts)
        let accounts = try reply.accounts()
        #expect(accounts.map(\.username) == ["jdoe@corp.example", "b"])
        #expect(accounts[0].homeAccountIdentifier == "uid.utid" && accounts[1].homeAccountIdentifier == nil)
        #expect(accounts[0].object.serialized == Self.accountText)
        #expect(try Self.reply(#"{"accounts":[]}"#, to: .getAccounts).accounts().isEmpty)
    }

    @Test(arguments: [#"["api","openid"]"#, #""api openid""#])
    func aTokenExpiresInMilliseconds(scopes: String) throws {
        let token = try Self.reply(
            #"{"brokerTokenResponse":{"accessToken":"at","accessTokenType":0,"clientInfo":"ci","#
                + #""expiresOn":1800000000999,"extendedExpiresOn":1800003600,"grantedScopes":\#(scopes),"#
                + #""idToken":"","account":{"username":"jdoe"},"error":null},"error":null}"#
        ).token()
        #expect(token.accessToken == Secret(utf8: "at") && token.expiresAt == 1_800_000_000)
        #expect(token.scopes == ["api", "openid"] && token.idToken == nil && token.clientInfo == "ci")
        #expect(token.account?.username == "jdoe")
    }

    /// One broker adds the seconds of a token's life to a time in milliseconds.
    @Test func theTokensOwnTimeCounts() throws {
        let payload = Base64URL.encode(#"{"exp":1800003600,"iat":1800000000}"#.utf8)
        for (token, expected) in [
            ("h.\(payload).s", 1_800_003_600), ("h.\(payload)", 1_800_000_003), ("h.e30.s", 1_800_000_003),
        ] {
            let reply = try Self.reply(
                #"{"brokerTokenResponse":{"accessToken":"\#(token)","expiresOn":1800000003600}}"#)
            #expect(try reply.token().expiresAt == Int64(expected), "\(token)")
        }
    }

    @Test func anotherTokenThanABearerTokenIsNotUsed() throws {
        let reply = try Self.reply(#"{"brokerTokenResponse":{"accessToken":"at","accessTokenType":1}}"#)
        let error = #expect(throws: BrokerError.self) { try reply.token() }
        #expect(error?.code == .failed && error?.detail.contains("bearer") == true)
    }

    @Test(arguments: ["", "a b", "a\\r\\nb", "ä"])
    func aTokenThatCannotBeSentIsNotUsed(token: String) throws {
        let reply = try Self.reply(#"{"brokerTokenResponse":{"accessToken":"\#(token)"}}"#)
        #expect(throws: BrokerError(.malformedReply, "")) { try reply.token() }
    }

    @Test(arguments: [
        #"{"cookieName":"x-ms-RefreshTokenCredential","cookieContent":"jwt"}"#,
        #"{"account":{},"cookieName":"X-MS-RefreshTokenCredential","cookieContent":"jwt","telemetry":null}"#,
        #"{"cookieItems":[{"cookieName":"x-ms-RefreshTokenCredential","cookieContent":"jwt"}]}"#,
        #"{"cookieItems":[{"cookieName":"x-ms-DeviceCredential","cookieContent":"other"},"#
            + #"{"cookieName":"x-ms-RefreshTokenCredential","cookieContent":"jwt"}]}"#,
    ])
    func theCookieIsReadInBothForms(text: String) throws {
        #expect(try Self.reply(text, to: .acquirePrtSsoCookie).cookie() == BrokerCookie(content: Secret(utf8: "jwt")))
    }

    @Test(arguments: [
        #"{"cookieItems":[]}"#, #"{"cookieName":"Cookie","cookieContent":"jwt"}"#, "{}",
        #"{"cookieItems":[{"cookieName":"x-ms-DeviceCredential","cookieContent":"jwt"}]}"#,
        #"{"cookieName":"x-ms-RefreshTokenCredential","cookieContent":""}"#,
        #"{"cookieName":"x-ms-RefreshTokenCredential","cookieContent":7}"#,
    ])
    func aCookieOfAnotherNameIsNone(text: String) throws {
        let reply = try Self.reply(text, to: .acquirePrtSsoCookie)
        #expect(throws: BrokerError(.failed, "")) { try reply.cookie() }
    }

    @Test func aCookieCannotAddALine() throws {
        let reply = try Self.reply(
            #"{"cookieName":"x-ms-RefreshTokenCredential","cookieContent":"a\r\nX: y"}"#, to: .acquirePrtSsoCookie)
        #expect(throws: BrokerError(.malformedReply, "")) { try reply.cookie() }
    }

    @Test func theVersionIsPrintable() throws {
        let reply = try Self.reply(#"{"linuxBrokerVersion":"2.0.1\u0007"}"#, to: .getLinuxBrokerVersion)
        #expect(try reply.version() == "2.0.1.")
    }

    // MARK: Failures

    @Test(arguments: [
        (
            #"{"error":{"code":"x","context":"the account is gone","tag":558133255}}"#,
            "x, 558133255, the account is gone"
        ),
        (#"{"error":"plain"}"#, "plain"),
        (#"{"brokerTokenResponse":{"error":{"errorCode":-6,"status":3,"message":"sign in"}}}"#, "-6, 3, sign in"),
        (#"{"brokerTokenResponse":{"accessToken":"at","error":{}}}"#, "it does not say why"),
        ("", "the reply is empty"),
    ])
    func everyFormOfAFailureIsTold(text: String, reason: String) {
        let error = #expect(throws: BrokerError.self) { try Self.reply(text) }
        #expect(error?.code == .failed)
        #expect(error?.detail == "the identity broker failed at acquireTokenSilently: \(reason)")
    }

    @Test(arguments: ["[]", "\"x\"", "{", "{\"a\":1,\"a\":2}", "null"])
    func whatIsNoObjectIsMalformed(text: String) {
        #expect(throws: BrokerError(.malformedReply, "")) { try Self.reply(text) }
    }

    @Test(arguments: [
        ("ServiceUnknown", BrokerError.Code.noBroker), ("NameHasNoOwner", .noBroker),
        ("Spawn.ServiceNotFound", .noBroker), ("UnknownMethod", .noMethod), ("UnknownInterface", .noMethod),
        ("UnknownObject", .noMethod), ("NoReply", .timedOut), ("Disconnected", .noBus), ("Failed", .failed),
        ("AccessDenied", .failed),
    ])
    func aBusErrorIsNamed(name: String, code: BrokerError.Code) {
        let error = BrokerError(named: "org.freedesktop.DBus.Error.\(name)", "me\nssage", in: .getAccounts)
        #expect(error.code == code && !error.detail.contains("\n"))
    }

    /// Each kind of failure has a sentence of its own.
    @Test func noTwoFailuresReadTheSame() {
        let errors = [
            BrokerError.noLibrary, .noBus("r"), .noBroker, .noMethod(.getAccounts), .timedOut(.getAccounts),
            .cancelled(.getAccounts), .malformed(.getAccounts, "r"), .failed(.getAccounts, "r"),
        ]
        #expect(Set(errors.map(\.detail)).count == errors.count)
    }
}
