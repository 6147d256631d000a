// SPDX-License-Identifier: Apache-2.0

public import Countersign
import CountersignCryptography
import CountersignIssuer
import CountersignJSON
import CountersignOAuth
import Glibc
import NIOPosix
import Synchronization

/// An OAuth 2.0 and OpenID Connect provider on the loopback interface, for the tests of an app that signs its user in.
/// It signs in everyone who opens its authorization page, and confirms every device code: use ``FakeBrowser`` as the
/// user agent. Tests can make it fail.
///
/// Serves discovery, the authorization code flow with PKCE, pushed requests (RFC 9126), the device flow (RFC 8628),
/// refresh tokens that can be used once, keys and revocation. It is not for production: it has no login page, and its
/// state is in memory.
public final class FakeIssuer: Sendable {
    /// The endpoints of the provider.
    public enum Endpoint: String, CaseIterable, Sendable {
        /// The provider's description of itself (OpenID Connect Discovery).
        case metadata = "/.well-known/openid-configuration"
        /// The keys that verify ID tokens.
        case keys = "/keys"
        /// Pushed authorization requests (RFC 9126).
        case pushedAuthorization = "/push"
        /// The page that signs the person in.
        case authorization = "/authorize"
        /// Codes and refresh tokens become access tokens here.
        case token = "/token"
        /// Tokens are revoked here (RFC 7009).
        case revocation = "/revoke"
        /// Codes for other devices (RFC 8628).
        case deviceAuthorization = "/device"
    }

    /// How an endpoint fails. A request that fails is not processed: codes and refresh tokens stay usable. Later
    /// versions may add cases.
    public enum Failure: Equatable, Sendable {
        /// It closes the connection without a response.
        case down
        /// It responds after this time.
        case slow(Duration)
        /// It responds with this status and no content.
        case status(Int)
        /// It responds with an error of OAuth, such as `invalid_grant`, as JSON with the status 400. At the
        /// authorization endpoint, it redirects with the error instead, such as `access_denied`.
        case error(String)
        /// It responds with JSON that is not complete.
        case garbled
        /// At the authorization endpoint: it redirects with another `state` than that of the request.
        case wrongState
        /// At the authorization endpoint: it redirects in the name of another issuer (RFC 9207).
        case wrongIssuer
    }

    /// The issuer identifier, such as `http://127.0.0.1:40123`.
    public var url: String { server.issuer.url }

    /// The client identifier that it knows.
    public static let clientID = "countersign-testing"

    private let server: IssuerServer
    private let state: State

    fileprivate final class State: Sendable {
        let content = Mutex((failures: [Endpoint: Failure](), requests: [String]()))
    }

    private init(_ server: IssuerServer, _ state: State) {
        self.server = server
        self.state = state
    }

    /// Starts an issuer on a free port. `account` is the name of the person who signs in. Throws if the system refuses
    /// a socket.
    public static func start(
        account: String = "jdoe@acme.example", scopes: [String] = ["openid", "profile", "offline_access", "api"],
        accessTokenLifetime: Duration = .seconds(300)
    ) async throws -> FakeIssuer {
        var settings = IssuerSettings(
            clientIdentifier: clientID, redirects: [try RedirectURI("http://127.0.0.1/")],
            account: .init(subject: "fake-\(account)", name: account, password: Secret(utf8: "unused")),
            interaction: .automatic)
        settings.scopes = scopes
        settings.accessTokenSeconds = accessTokenLifetime.components.seconds
        settings.pollSeconds = 1
        let state = State()
        let server = try await IssuerServer.start(
            settings, group: MultiThreadedEventLoopGroup.singleton, now: { Int64(time(nil)) }
        ) { request, respond in
            await state.response(to: request, respond)
        }
        return FakeIssuer(server, state)
    }

    /// Closes the listening socket, so that the provider is unreachable.
    public func stop() async { await server.stop() }

    /// A profile as the provider's organisation would hand it out. Its `description` is the JSON document, and its
    /// `source` no place: to test `SignIns.enrollment(again:addingScopes:)`, write the document to a file, and sign in
    /// with the profile that is read from there. Throws `ChallengeError` for values that a profile does not permit.
    public func profile(
        name: String = "test", sites: [String] = [], scopes: [String] = ["openid", "offline_access"]
    ) throws(ChallengeError) -> EnrollmentProfile {
        func texts(_ values: [String]) -> JSONValue.Content { .array(values.map { JSONValue(.string($0)) }) }
        let members: [(String, JSONValue.Content)] = [
            ("name", .string(name)), ("issuer", .string(url)), ("client_id", .string(Self.clientID)),
            ("scopes", texts(scopes)), ("sites", texts(sites)),
        ]
        let document = JSONValue(.object(members.map { JSONMember($0, JSONValue($1)) })).serialized
        return try EnrollmentProfile(document.utf8, source: "FakeIssuer")
    }

    // MARK: Failures

    /// Makes an endpoint fail from the next request on; nil makes it work again.
    public func fail(_ endpoint: Endpoint, with failure: Failure?) {
        state.content.withLock { $0.failures[endpoint] = failure }
    }

    // MARK: History

    /// The requests in the order of arrival, such as `POST /token`.
    public var requests: [String] { state.content.withLock { $0.requests } }

    /// Whether `token` is an access token that was issued, has not expired and was not revoked, with all of `scopes`.
    public func accepts(_ token: String, scopes: [String] = []) -> Bool {
        guard let grant = server.issuer.grant(of: Secret(utf8: token), now: Int64(time(nil))) else { return false }
        return scopes.allSatisfy(grant.scopes.contains)
    }

    /// Revokes an access or refresh token, as the provider's operator can.
    public func revoke(_ token: String) {
        let form = "token=\(FormEncoding.encode(Array(token.utf8)))&client_id=\(Self.clientID)"
        _ = server.issuer.respond(
            to: IssuerRequest(method: "POST", path: Endpoint.revocation.rawValue, body: Array(form.utf8)),
            now: Int64(time(nil)))
    }
}

extension FakeIssuer.State {
    fileprivate func response(
        to request: IssuerRequest, _ respond: @Sendable () -> IssuerResponse
    ) async -> IssuerResponse? {
        // RFC 8414 §3 has another path for the same document.
        let isMetadata = request.path == "/.well-known/oauth-authorization-server"
        let endpoint = isMetadata ? .metadata : FakeIssuer.Endpoint(rawValue: request.path)
        let failure = content.withLock { content in
            content.requests.append("\(request.method) \(request.path)")
            return endpoint.flatMap { content.failures[$0] }
        }
        switch failure {
        case nil: return respond()
        case .down: return nil
        case .slow(let time):
            do { try await Task.sleep(for: time) } catch { return nil }
            return respond()
        case .status(let status): return IssuerResponse(status: status)
        case .error(let code):
            guard endpoint == .authorization else { return IssuerResponse.error(code, "as the test wants") }
            return respond().redirected { name, value in
                name == "code" ? ("error", code) : (name, value)
            }
        case .garbled: return IssuerResponse(status: 200, contentType: "application/json", body: Array("{\"".utf8))
        case .wrongState: return respond().redirected { ($0, $0 == "state" ? "another" : $1) }
        case .wrongIssuer: return respond().redirected { ($0, $0 == "iss" ? "https://another.example" : $1) }
        }
    }
}

extension IssuerResponse {
    /// With other parameters in the query of its redirect, if it is one.
    fileprivate func redirected(_ change: (String, String) -> (String, String)) -> IssuerResponse {
        guard let location, let mark = location.firstIndex(of: "?") else { return self }
        let pairs = FormEncoding.decode(Array(location[location.index(after: mark)...].utf8)) ?? []
        let query = pairs.map { pair in
            let (name, value) = change(pair.name, pair.value)
            return "\(name)=\(FormEncoding.encode(Array(value.utf8)))"
        }
        var response = self
        response.location = String(location[...mark]) + query.joined(separator: "&")
        return response
    }
}
