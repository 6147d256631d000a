// SPDX-License-Identifier: Apache-2.0
import CountersignCryptography
import CountersignJSON
import CountersignOAuth
import CountersignSignIn

/// A value that is written is read again.
@Sendable func json(_ input: [UInt8]) {
    guard let value = try? JSONParser.parse(input) else { return }
    precondition((try? JSONParser.parse(Array(value.serialized.utf8))) == value)
}

@Sendable func providerMetadata(_ input: [UInt8]) {
    reporting { () throws(OAuthError) in
        let metadata = try ProviderMetadata(parsing: input, issuer: issuer)
        precondition(metadata.issuer == issuer.text && metadata.tokenEndpoint.origin.scheme == .https)
    }
}

@Sendable func keySet(_ input: [UInt8]) {
    reporting { () throws(OAuthError) in _ = try KeySet(parsing: input) }
}

/// The first line is the token's header, the rest its claims. An accepted token is for this client.
@Sendable func idToken(_ input: [UInt8]) {
    let parts = input.split(separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false)
    let text = parts.map { Base64URL.encode($0) }.joined(separator: ".") + ".AAAA"
    reporting { () throws(OAuthError) in
        let token = try SignedToken(parsing: Secret(utf8: text))
        let expected = IDToken.Expectation(
            issuer: issuer.text, clientIdentifier: "app", nonce: "n", accessToken: Secret(utf8: "a"), now: 1000)
        let claims = try IDToken(token, expected)
        precondition(claims.issuer == issuer.text && claims.claims["nonce"]?.content == .string("n"))
        precondition(claims.accountName.utf8.allSatisfy { (0x20...0x7E).contains($0) })
    }
    reporting { () throws(OAuthError) in _ = try SignedToken(parsing: Secret(input)) }
}

/// Only a message with the right state is accepted.
@Sendable func authorizationResponse(_ input: [UInt8]) {
    reporting { () throws(OAuthError) in
        let response = try AuthorizationResponse(.formPost(input), to: redirect, state: "s", metadata: metadata)
        precondition(response.code.count > 0)
        let states = FormEncoding.decode(input)?.filter { $0.name == "state" }
        precondition(states?.map(\.value) == ["s"])
    }
    let url = String(decoding: input, as: UTF8.self)
    reporting { () throws(OAuthError) in
        _ = try AuthorizationResponse(.url(url), to: redirect, state: "s", metadata: metadata)
    }
}

/// The whole machine, after the code was sent.
@Sendable func tokenResponse(_ input: [UInt8]) {
    var signIn = redeeming
    let response = ProviderResponse(status: 200, contentType: "application/json", body: input)
    switch signIn.received(.response(response), now: 1000) {
    case .fail(let error): check(error)
    case .finish(let result):
        precondition(result.tokens.accessToken.count > 0 && result.tokens.expiresAt.map { $0 >= 1000 } ?? true)
    case .send(let request): precondition(request.purpose == .keys)
    case .open, .show, .wait, .authorized: fatalError("an action that does not belong here")
    }
}

/// A code that is shown is printable.
@Sendable func deviceAuthorization(_ input: [UInt8]) {
    var signIn = requestingCode
    let response = ProviderResponse(status: 200, contentType: "application/json", body: input)
    switch signIn.received(.response(response), now: 1000) {
    case .fail(let error): check(error)
    case .show(let authorization, let seconds):
        precondition(authorization.userCode.utf8.allSatisfy { (0x21...0x7E).contains($0) })
        precondition(authorization.expiresAt > 1000 && seconds > 0)
    case .send, .open, .wait, .authorized, .finish: fatalError("an action that does not belong here")
    }
}

@Sendable func tokenRevocation(_ input: [UInt8]) {
    for status in [200, 400, 503] {
        let response = ProviderResponse(status: status, contentType: "application/json", body: input)
        reporting { () throws(OAuthError) in
            try TokenRevocation.check(.response(response))
            precondition(status == 200)
        }
    }
}

/// A profile that is accepted names an https issuer, or one of this machine, and sites that a list accepts.
@Sendable func signInProfile(_ input: [UInt8]) {
    do {
        let profile = try SignInProfile(input)
        precondition(profile.issuer.url.origin.scheme == .https || profile.transport == .secureOrLoopback)
        precondition(profile.sites.allSatisfy { site in !site.contains { $0.isNewline || $0.isWhitespace } })
    } catch let error as OAuthError {
        check(error)
    } catch {
        precondition(error is JSONError, "another error: \(error)")
    }
}

/// The first line is the parameter of a challenge, the rest the document. An accepted document is of the challenged
/// origin and for this issuer.
@Sendable func protectedResource(_ input: [UInt8]) {
    let parts = input.split(separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false)
    let parameter = String(decoding: parts.first ?? [], as: UTF8.self)
    do throws(ProtectedResourceError) {
        let location = try ProtectedResourceMetadata.location(parameter, of: challenged)
        precondition(location.origin == challenged.origin)
    } catch {
        check(error.detail)
    }
    guard let document = parts.dropFirst().first else { return }
    do throws(ProtectedResourceError) {
        let metadata = try ProtectedResourceMetadata(parsing: Array(document), for: challenged, issuer: issuer)
        precondition(metadata.resource.lowercased().hasPrefix("https://api.example"))
        precondition(metadata.scopes.count <= 64 && metadata.scopes.allSatisfy { !$0.contains(" ") && !$0.isEmpty })
    } catch {
        check(error.detail)
    }
}

private func reporting(_ body: () throws(OAuthError) -> Void) {
    do throws(OAuthError) {
        try body()
    } catch {
        check(error)
    }
}

/// Errors are printed in terminals and logs.
private func check(_ error: OAuthError) { check(error.detail) }

private func check(_ detail: String) {
    precondition(detail.utf8.allSatisfy { (0x20...0x7E).contains($0) }, "an error is not printable")
    precondition(detail.utf8.count < 1000, "an error is too long")
}

/// The value of an expression that cannot fail.
private func made<Value>(_ body: () throws -> Value) -> Value {
    do {
        return try body()
    } catch {
        fatalError("\(error)")
    }
}

private let issuer = made { try Issuer("https://id.example") }
private let challenged = made { try EndpointURL("https://api.example/v1/items?x=1", "url") }
private let redirect = made { try RedirectURI("com.example.app:/cb") }
private let metadata = made { try ProviderMetadata(parsing: Array(document.utf8), issuer: issuer) }
private let document = """
    {"issuer":"https://id.example","token_endpoint":"https://id.example/t","jwks_uri":"https://id.example/k",\
    "authorization_endpoint":"https://id.example/a"}
    """

private let redeeming: SignIn = made {
    let wanted = try SignInRequest(client: Client("app"), scopes: ["api"])
    let secrets = SignInSecrets(randomBytes: Secret([UInt8](repeating: 7, count: SignInSecrets.randomByteCount)))
    var signIn = SignIn(issuer: issuer, wanted, by: .browser(redirect), secrets: secrets)
    _ = signIn.start()
    let response = ProviderResponse(status: 200, contentType: "application/json", body: Array(document.utf8))
    _ = signIn.received(.response(response), now: 1000)
    _ = signIn.redirected(.query("code=c&state=\(secrets.state)"))
    return signIn
}

private let requestingCode: SignIn = made {
    let wanted = try SignInRequest(client: Client("app"), scopes: ["api"])
    let secrets = SignInSecrets(randomBytes: Secret([UInt8](repeating: 7, count: SignInSecrets.randomByteCount)))
    var signIn = SignIn(issuer: issuer, wanted, by: .device, secrets: secrets)
    _ = signIn.start()
    let whole = document.dropLast() + #","device_authorization_endpoint":"https://id.example/d"}"#
    let response = ProviderResponse(status: 200, contentType: "application/json", body: Array(whole.utf8))
    _ = signIn.received(.response(response), now: 1000)
    return signIn
}
