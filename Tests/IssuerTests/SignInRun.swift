// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignOAuth
import Testing

@testable import CountersignIssuer

/// An issuer, and the client's own machines as its client. No bytes travel: requests and responses are values.
struct SignInRun {
    static let url = "http://127.0.0.1:8080"
    let issuer: LocalIssuer
    let request: SignInRequest

    init(
        _ interaction: IssuerSettings.Interaction = .automatic, scopes: [String] = ["openid", "offline_access"],
        _ change: (inout IssuerSettings) -> Void = { _ in }
    ) throws {
        var settings = IssuerSettings(
            clientIdentifier: "client", redirects: [try RedirectURI("http://127.0.0.1/back")],
            account: .init(subject: "4711", name: "jdoe", password: Secret(utf8: "pa<ss")), interaction: interaction)
        change(&settings)
        issuer = try LocalIssuer(url: Self.url, settings)
        request = try SignInRequest(client: Client("client"), scopes: scopes)
    }

    func machine(device: Bool = false) throws -> SignIn {
        SignIn(
            issuer: try Issuer(Self.url, .secureOrLoopback), request,
            by: device ? .device : .browser(try RedirectURI("http://127.0.0.1:4000/back")),
            secrets: SignInSecrets(randomBytes: Randomness.secret(SignInSecrets.randomByteCount)),
            transport: .secureOrLoopback)
    }

    /// Runs the machine's requests until it wants something else.
    func run(_ action: SignIn.Action, _ machine: inout SignIn, now: Int64 = 1000) -> SignIn.Action {
        var action = action
        while case .send(let request) = action { action = machine.received(outcome(of: request, now: now), now: now) }
        return action
    }

    /// Signs in as a browser does that needs no person.
    func signIn(now: Int64 = 1000) throws -> SignInResult {
        var machine = try machine()
        guard case .open(let url) = run(machine.start(), &machine, now: now) else { throw Unexpected("no page") }
        let redirect = try #require(open(url, now: now).location)
        guard case .accepted(let action) = machine.redirected(.url(redirect)) else { throw Unexpected(redirect) }
        guard case .finish(let result) = run(action, &machine, now: now) else { throw Unexpected("no tokens") }
        return result
    }

    func open(_ url: EndpointURL, now: Int64 = 1000) -> IssuerResponse {
        let query = url.query.map(String.init) ?? ""
        return issuer.respond(to: IssuerRequest(path: String(url.path), query: query), now: now)
    }

    func post(_ path: String, _ form: [String: String], now: Int64 = 1000) -> IssuerResponse {
        let body = form.map { "\($0.key)=\(FormEncoding.encode(Array($0.value.utf8)))" }.joined(separator: "&")
        return issuer.respond(to: IssuerRequest(method: "POST", path: path, body: Array(body.utf8)), now: now)
    }

    func outcome(of request: ProviderRequest, now: Int64) -> ProviderOutcome {
        let response = issuer.respond(
            to: IssuerRequest(
                method: request.method, path: String(request.url.path), query: request.url.query.map(String.init) ?? "",
                body: request.body?.withBytes { Array($0) } ?? []),
            now: now)
        return .response(
            ProviderResponse(status: response.status, contentType: response.contentType, body: response.body))
    }

    func refresh(_ tokens: TokenSet, now: Int64 = 1000) throws -> TokenRefresh.Action {
        var machine = TokenRefresh(
            tokens, issuer: try Issuer(Self.url, .secureOrLoopback), request, subject: "4711",
            transport: .secureOrLoopback)
        var action = machine.start()
        while true {
            switch action {
            case .send(let request): action = machine.received(outcome(of: request, now: now), now: now)
            case .store: action = machine.stored()
            case .finish, .fail: return action
            }
        }
    }

    struct Unexpected: Error {
        let text: String
        init(_ text: String) { self.text = text }
    }
}

extension IssuerResponse {
    var text: String { String(decoding: body, as: UTF8.self) }

    /// The value of a hidden input of the page.
    func hidden(_ name: String) -> String? {
        guard let start = text.firstRange(of: "name=\"\(name)\" value=\"") else { return nil }
        return String(text[start.upperBound...].prefix { $0 != "\"" })
    }
}
