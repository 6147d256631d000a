// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

@testable import CountersignOAuth

/// A client and a scripted provider, from the registration to the refreshed tokens.
struct ScriptedRun {
    enum End: Equatable {
        case accepted
        case refused(OAuthError)
        /// The redirect had no effect, and the client waits for another one.
        case ignored(OAuthError)
    }

    private(set) var end = End.accepted
    private(set) var requests: [ProviderRequest] = []
    /// The address of the provider's page.
    private(set) var page: EndpointURL?
    /// The last tokens, even if they were refused afterwards.
    private(set) var tokens: TokenSet?
    private(set) var account: String?
    /// The refresh tokens that were stored, in order.
    private(set) var stored: [String] = []
    private(set) var client: String
    private let script: ScriptedProvider
    private var now = Provider.now
    private var polls = 0
    private var isRefreshing = false

    init(_ script: ScriptedProvider) throws {
        self.script = script
        client = script.client
        do {
            try run()
        } catch let error as OAuthError {
            end = .refused(error)
        }
    }

    /// The parameters of the requests of one kind.
    func sent(_ purpose: ProviderRequest.Purpose) -> [[String: [String]]] {
        requests.filter { $0.purpose == purpose }.map(\.parameters)
    }

    private mutating func run() throws {
        let issuer = try Issuer(script.issuer)
        if script.registration != nil || script.registrationReply != nil { try register(issuer) }
        var wanted = try SignInRequest(
            client: Client(client, script.authentication), scopes: script.scopes, resources: script.resources,
            usesFormPost: script.usesFormPost)
        if !script.acrValues.isEmpty || script.maxAge != nil {
            wanted = try wanted.requiring(acrValues: script.acrValues, maxAge: script.maxAge)
        }
        wanted.proofKey = script.proofKey
        let keys = try script.known.map { try KeySet(parsing: Array(try $0().utf8)) }
        var signIn = SignIn(
            issuer: issuer, wanted, by: script.isOnDevice ? .device : .browser(try Provider.redirect()),
            secrets: Provider.secrets, keys: keys, algorithms: script.algorithms)
        let result = try finish(&signIn)
        guard let result else { return }
        (tokens, account) = (result.tokens, result.idToken?.subject)
        guard script.refreshes else { return }
        isRefreshing = true
        var refresh = TokenRefresh(
            result.tokens, issuer: issuer, wanted, subject: account, metadata: signIn.metadata, keys: signIn.keys,
            algorithms: script.algorithms)
        try finish(&refresh)
    }

    /// Nil if the sign-in did not end.
    private mutating func finish(_ signIn: inout SignIn) throws -> SignInResult? {
        var action = signIn.start()
        for _ in 0..<50 {
            switch action {
            case .send(let request): action = signIn.received(try answer(request), now: now)
            case .open(let url):
                page = url
                switch signIn.redirected(redirect) {
                case .accepted(let next): action = next
                case .ignored(let error):
                    end = .ignored(error)
                    return nil
                }
            case .show(_, let seconds), .wait(let seconds):
                now += seconds
                action = signIn.waited(now: now)
            case .authorized: throw Unexpected(action)
            case .finish(let result): return result
            case .fail(let error): throw error
            }
        }
        throw Unexpected("no end")
    }

    private mutating func finish(_ refresh: inout TokenRefresh) throws {
        now += 3000
        var action = refresh.start()
        for _ in 0..<10 {
            switch action {
            case .send(let request): action = refresh.received(try answer(request), now: now)
            case .store(let new):
                stored.append(new.refreshToken?.utf8Text ?? "")
                action = refresh.stored()
            case .finish(let new, _):
                tokens = new
                return
            case .fail(let error, _): throw error
            }
        }
        throw Unexpected("no end")
    }

    private mutating func register(_ issuer: Issuer) throws {
        var fetch = MetadataFetch(issuer, .secure)
        var request = fetch.start()
        while true {
            switch try fetch.received(try answer(request)) {
            case .send(let next): request = next
            case .done(let metadata):
                let registration = ClientRegistration(
                    name: "Countersign", redirect: try RedirectURI("http://127.0.0.1/callback"), scopes: script.scopes)
                client = try registration.identifier(try answer(try registration.request(at: metadata)))
                return
            }
        }
    }

    private var redirect: RedirectMessage {
        if let query = script.query { return .query(query) }
        var parameters: [String: String?] = ["code": "code-1", "state": Provider.secrets.state]
        parameters.merge(script.answer.values) { $1 }
        var form = FormParameters()
        for (name, value) in parameters.sorted(by: { $0.key < $1.key }) { form.append(name, ifPresent: value) }
        return script.usesFormPost ? .formPost(Array(form.text.utf8)) : .query(form.text)
    }
}

// MARK: The provider's answers

extension ScriptedRun {
    /// Sends the request as the program does: once more with the nonce that the provider has asked for.
    private mutating func answer(_ request: ProviderRequest) throws -> ProviderOutcome {
        let completed = try request.completed(at: now, random: { [UInt8](repeating: 7, count: $0) })
        let first = try reply(to: completed)
        guard request.proofKey != nil, case .response(let response) = first, response.asksForNonce,
            let nonce = response.nonce
        else { return first }
        return try reply(
            to: try request.completed(at: now, nonce: nonce, random: { [UInt8](repeating: 8, count: $0) }))
    }

    private mutating func reply(to request: ProviderRequest) throws -> ProviderOutcome {
        requests.append(request)
        let reply: ScriptedProvider.Reply
        switch request.purpose {
        case .metadata:
            let locations = try Issuer(script.issuer).metadataLocations
            let isThere = locations.indices.contains(script.place) && request.url == locations[script.place]
            let document = String(decoding: Provider.document(script.metadata.values), as: UTF8.self)
            reply = isThere ? script.metadataReply ?? .init(body: document) : script.elsewhere
        case .keys: reply = .init(body: try (isRefreshing ? script.laterKeys ?? script.keys : script.keys)())
        case .pushedAuthorization: reply = script.push
        case .registration: reply = script.registrationReply ?? .init(status: 201, body: registered)
        case .deviceAuthorization:
            let members: [String: String?] = [
                "device_code": #""device-1""#, "user_code": #""WDJB""#, "expires_in": "600",
                "verification_uri": #""https://id.example/device""#,
            ]
            reply = .init(body: ScriptedProvider.Tokens.object(members, script.device))
        case .token: reply = try tokenReply(to: request)
        case .revocation, .installation, .clientDocument: throw Unexpected(request.purpose)
        }
        return .response(
            ProviderResponse(
                status: reply.status, contentType: reply.type, nonce: reply.nonce, body: Array(reply.body.utf8)))
    }

    private var registered: String {
        let members: [String: String?] = [
            "client_id": #""registered-1""#, "token_endpoint_auth_method": #""none""#,
            "redirect_uris": #"["http://127.0.0.1/callback"]"#,
        ]
        return ScriptedProvider.Tokens.object(members, script.registration ?? .init())
    }

    private mutating func tokenReply(to request: ProviderRequest) throws -> ScriptedProvider.Reply {
        if let nonce = script.nonce, !Self.claims(of: request.proof ?? "").contains("\"nonce\":\"\(nonce)\"") {
            return .init(status: 400, body: #"{"error":"use_dpop_nonce"}"#, nonce: nonce)
        }
        if script.isOnDevice, !isRefreshing, polls < script.polls.count {
            polls += 1
            return script.polls[polls - 1]
        }
        let tokens = isRefreshing ? script.refreshed : script.tokens
        if let reply = tokens.reply { return reply }
        let nonce = isRefreshing || script.isOnDevice ? nil : "\"\(Provider.secrets.nonce)\""
        let claims: [String: String?] = [
            "iss": "\"\(script.issuer)\"", "sub": #""person-1""#, "aud": "\"\(client)\"", "exp": "\(now + 300)",
            "iat": "\(now)", "nonce": nonce,
        ]
        var members: [String: String?] = [
            "access_token": isRefreshing ? #""access-2""# : #""access-1""#, "expires_in": "3600",
            "token_type": script.proofKey == nil ? #""Bearer""# : #""DPoP""#,
            "refresh_token": isRefreshing ? nil : #""refresh-1""#,
        ]
        if script.scopes.contains("openid") { members["id_token"] = "\"\(try tokens.idToken(claims))\"" }
        return .init(type: tokens.type, body: ScriptedProvider.Tokens.object(members, tokens.members))
    }

    /// Those of a compact JSON Web Token.
    static func claims(of token: String) -> String {
        let parts = token.split(separator: ".")
        guard parts.count == 3, let bytes = Base64URL.decode(String(parts[1])) else { return "" }
        return String(decoding: bytes, as: UTF8.self)
    }
}
