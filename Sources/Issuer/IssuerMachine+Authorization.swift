// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignOAuth

/// The parameters of an authorization request that are used later (RFC 6749 §4.1.1).
struct AuthorizationParameters: Sendable, Equatable {
    let redirect: String
    let scopes: [String]
    let state: String?
    let nonce: String?
    /// RFC 7636 §4.2.
    let challenge: String
}

/// A code that was sent to the client. It is kept after its use, so that a second use is noticed.
struct IssuedCode: Sendable {
    let parameters: AuthorizationParameters
    /// Of the tokens that it was redeemed for.
    let family: String
    var isUsed = false
}

/// The authorization endpoint and the login page.
extension IssuerMachine {
    /// RFC 9126 §2.
    mutating func push(_ parameters: [String: String], now: Int64) -> IssuerResponse {
        guard parameters["client_id"] == settings.clientIdentifier else { return Self.unknownClient }
        switch read(parameters) {
        case .failure(let fault): return .error(fault.code, fault.reason)
        case .success(let request):
            let name = "urn:ietf:params:oauth:request_uri:" + newName()
            pushed.insert(request, name, expires: now + Self.codeSeconds, now: now)
            return .json([("request_uri", .string(name)), ("expires_in", .integer(Self.codeSeconds))], status: 201)
        }
    }

    mutating func authorize(_ parameters: [String: String], now: Int64) -> IssuerResponse {
        guard parameters["client_id"] == settings.clientIdentifier else {
            return .html(IssuerPage.message("The client is not known here."), status: 400)
        }
        let request: AuthorizationParameters
        if let name = parameters["request_uri"] {
            guard let found = pushed.value(name, now: now) else {
                return .html(IssuerPage.message("The request was not pushed, has expired or was used."), status: 400)
            }
            pushed.remove(name)
            request = found
        } else if settings.requiresPushedAuthorization {
            return .html(IssuerPage.message("The request must be pushed (RFC 9126)."), status: 400)
        } else {
            switch read(parameters) {
            case .success(let read): request = read
            case .failure(let fault): return refuse(parameters, fault)
            }
        }
        if case .automatic = settings.interaction { return authorized(request, now: now) }
        let name = newName()
        requests.insert(request, name, expires: now + Self.requestSeconds, now: now)
        return .html(IssuerPage.login(name, settings, message: nil))
    }

    /// The form of the login page.
    mutating func signIn(_ form: [String: String], now: Int64) -> IssuerResponse {
        guard let name = form["request"], let request = requests.value(name, now: now) else {
            return .html(IssuerPage.message("This page has expired. Start the sign-in again."), status: 400)
        }
        if form["deny"] != nil {
            requests.remove(name)
            return redirect(request, [("error", "access_denied"), ("error_description", "the person has declined")])
        }
        guard isSignedIn(form) else {
            return .html(IssuerPage.login(name, settings, message: "The name or the password is wrong."), status: 403)
        }
        requests.remove(name)
        return authorized(request, now: now)
    }

    private mutating func authorized(_ request: AuthorizationParameters, now: Int64) -> IssuerResponse {
        let code = newName()
        codes.insert(
            IssuedCode(parameters: request, family: newName()), code, expires: now + Self.codeSeconds, now: now)
        return redirect(request, [("code", code)])
    }

    /// RFC 6749 §4.1.2, RFC 9207 §2.
    private func redirect(
        _ request: AuthorizationParameters, _ parameters: [(String, String?)]
    ) -> IssuerResponse {
        .redirect(to: request.redirect, parameters + [("state", request.state), ("iss", url)])
    }

    // MARK: Requests

    private struct RequestFault: Error {
        let code: String
        let reason: String
        /// The client and its redirect URI are known, so that the fault may be reported there (RFC 6749 §4.1.2.1).
        var isRedirected = true
    }

    private func refuse(_ parameters: [String: String], _ fault: RequestFault) -> IssuerResponse {
        guard fault.isRedirected, let redirect = parameters["redirect_uri"] else {
            return .html(IssuerPage.message("The request cannot be used: \(fault.reason)."), status: 400)
        }
        return .redirect(
            to: redirect,
            [
                ("error", fault.code), ("error_description", fault.reason), ("state", parameters["state"]),
                ("iss", url),
            ])
    }

    private func read(_ parameters: [String: String]) -> Result<AuthorizationParameters, RequestFault> {
        guard let redirect = parameters["redirect_uri"], isRegistered(redirect) else {
            return .failure(
                RequestFault(code: "invalid_request", reason: "the redirect URI is not registered", isRedirected: false)
            )
        }
        guard parameters["response_type"] == "code" else {
            return .failure(RequestFault(code: "unsupported_response_type", reason: "the response type must be code"))
        }
        guard parameters["response_mode", default: "query"] == "query" else {
            return .failure(RequestFault(code: "invalid_request", reason: "the response mode must be query"))
        }
        guard let challenge = parameters["code_challenge"], parameters["code_challenge_method"] == "S256",
            challenge.utf8.count == 43
        else { return .failure(RequestFault(code: "invalid_request", reason: "PKCE with S256 is required")) }
        return granted(parameters["scope"]).map { scopes in
            AuthorizationParameters(
                redirect: redirect, scopes: scopes, state: parameters["state"], nonce: parameters["nonce"],
                challenge: challenge)
        }
    }

    /// The scopes of a request that are supported. There must be one (RFC 6749 §3.3).
    private func granted(_ scope: String?) -> Result<[String], RequestFault> {
        let scopes = supported(scope)
        guard !scopes.isEmpty else {
            return .failure(RequestFault(code: "invalid_scope", reason: "no scope of the request is supported"))
        }
        return .success(scopes)
    }

    func supported(_ scope: String?) -> [String] {
        (scope ?? "").split(separator: " ").map(String.init).filter(settings.scopes.contains)
    }

    private func isRegistered(_ text: String) -> Bool {
        guard let redirect = try? RedirectURI(text) else { return false }
        return settings.redirects.contains { registered in
            guard case .loopback(_, let port?) = redirect.kind else { return registered == redirect }
            return registered.bound(toPort: port) == redirect
        }
    }

    static let unknownClient = IssuerResponse.error("invalid_client", "the client is not known here", status: 401)
}
