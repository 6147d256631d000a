// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import Testing

@testable import CountersignChallenges

@Suite struct BearerTests {
    private static let token = TokenCredential(name: "api", token: Secret(utf8: "mF_9.B5f-4.1JqM"), generation: 4)
    private static let supplied = CredentialDecision.useCredential(.token(token))
    private static let authenticator = BearerAuthenticator.shared
    private static let answer = Answer.fixed(
        AuthorizationField(scheme: "Bearer", token68: Secret(utf8: "mF_9.B5f-4.1JqM")))
    private static let offered = ThreeChecks.Check.yes("bearer is offered and permitted")
    private static let enrolled = ThreeChecks.Check.yes("credential \"api\"")

    private static func context(_ origin: Origin = .wiki, accepted: AcceptedAnswer? = nil) -> RequestContext {
        RequestContext(
            origin: origin, authenticators: AuthenticatorTable([authenticator, BasicAuthenticator.shared]),
            site: .listed, permitted: [.bearer, .basic], plaintextPermitted: true, clientAuthorizes: false,
            originTrusted: true, hasBody: false, accepted: accepted)
    }

    private static func accepted(realm: String? = "r") -> AcceptedAnswer {
        let challenge = Challenge(scheme: "Bearer", parameters: realm.map { [AuthParameter("realm", $0)] } ?? [])
        return AcceptedAnswer(
            Offer(authenticator, challenge), at: .wiki, credential: token.reference, preemption: .answer(answer))
    }

    /// Reports `events` and returns the machine and its last action.
    private static func run(
        _ context: RequestContext, _ events: ExchangeMachine.Event...
    ) -> (machine: ExchangeMachine, action: ExchangeMachine.Action) {
        var machine = ExchangeMachine(context)
        var action = machine.started()
        for event in events { action = machine.report(event) }
        return (machine, action)
    }

    private static func response(_ status: Int, _ fields: String...) -> ExchangeMachine.Event {
        .responseReceived(status: status, challengeFields: fields.map { ChallengeField($0) })
    }

    // MARK: Tokens

    /// RFC 6750 §2.1, whose example is the first.
    @Test(arguments: [
        ("mF_9.B5f-4.1JqM", true), ("a", true), ("-._~+/0Az", true), ("YQ==", true), ("a=====", true), ("", false),
        ("=", false), ("a=b", false), ("Bearer abc", false), ("a b", false), ("a\n", false), ("a\r\nX: y", false),
        ("a\"", false), ("a,b", false), ("\u{E9}", false), ("a\u{0}", false),
    ])
    func onlyTheSyntaxOfTheStandardIsAToken(text: String, isToken: Bool) {
        let secret = Secret(utf8: text)
        #expect(TokenCredential.isToken(secret) == isToken)
        let credential = EnrolledCredential.token(TokenCredential(name: "api", token: secret, generation: 1))
        let obstacle = Self.authenticator.obstacle(to: credential, Self.context())
        #expect(obstacle == (isToken ? nil : "the token has a character that Bearer cannot send"))
    }

    @Test func theFieldIsTheTokenUnchanged() throws {
        let reply = try Self.authenticator.reply(
            to: Challenge(scheme: "Bearer"), with: .token(Self.token), Self.context())
        guard case .answer(.fixed(let field)) = reply else {
            Issue.record("not a fixed answer")
            return
        }
        // RFC 6750 §2.1.
        #expect(field.fieldValue == "Bearer mF_9.B5f-4.1JqM")
        var dumped = ""
        dump(EnrolledCredential.token(Self.token), to: &dumped)
        #expect(!dumped.contains("B5f") && !"\(Self.token) \(field)".contains("B5f"))
    }

    @Test func aPasswordIsNotATokenAndATokenIsNotAPassword() {
        #expect(Self.authenticator.obstacle(to: .password(.jdoe), Self.context()) == "Bearer needs a token")
        let obstacle = BasicAuthenticator.shared.obstacle(to: .token(Self.token), Self.context())
        #expect(obstacle == "Basic needs a user name and password")
        #expect(AuthenticationScheme.allCases.filter { $0.uses(.token(Self.token)) } == [.bearer])
        #expect(
            !AuthenticationScheme.bearer.uses(.password(.jdoe)) && AuthenticationScheme.basic.uses(.password(.jdoe)))
        #expect(!AuthenticationScheme.certificate.uses(.identity(named: "laptop")))
    }

    /// No password can have the tag of a token, because no user name is empty.
    @Test func tagsTellTokensApart() {
        let key = Secret(utf8: "key")
        func tag(_ text: String) -> CredentialTag? {
            TokenCredential(name: "a", token: Secret(utf8: text), generation: 1).tagged(with: key).tag
        }
        #expect(tag("t") == tag("t") && tag("t") != tag("T"))
        #expect(tag("t") != CredentialTag(user: "t", password: Secret(utf8: "t"), key: key))
    }

    // MARK: Challenges

    @Test(arguments: ["Bearer", "Bearer realm=\"r\"", "bearer scope=\"a b\"", "Bearer error=\"invalid_token\""])
    func aChallengeIsAnswered(field: String) {
        let (_, asked) = Self.run(Self.context(), Self.response(401, field))
        guard case .ask(let request) = asked else {
            Issue.record("nothing is asked: \(asked)")
            return
        }
        #expect(request.space.scheme == .bearer)
        #expect(request.space.realm == (field.contains("realm") ? "r" : nil))
        let (_, sent) = Self.run(Self.context(), Self.response(401, field), .decisionReceived(Self.supplied))
        #expect(sent == .send(Self.answer))
    }

    @Test func anAcceptedTokenIsSentAheadInItsSpace() {
        let (_, action) = Self.run(
            Self.context(), Self.response(401, "Bearer realm=\"r\""), .decisionReceived(Self.supplied),
            Self.response(200))
        #expect(action == .deliver(.accepted(Self.accepted())))
        #expect(Self.run(Self.context(accepted: Self.accepted())).action == .send(Self.answer))
    }

    @Test func overHTTPBearerIsNotAnsweredEvenWithPlaintextYes() {
        let (machine, alone) = Self.run(Self.context(.printer), Self.response(401, "Bearer realm=\"r\""))
        #expect(alone == .deliver(.handedBack(machine.checks)))
        #expect(machine.checks.failure == "Bearer is answered over https only")
        let (_, both) = Self.run(
            Self.context(.printer), Self.response(401, "Bearer realm=\"r\"", "Basic realm=\"Wiki\""))
        #expect(both == .ask(.basic("Wiki", at: .printer)))
    }

    /// RFC 6750 §3.1, for a request that carried the token, which was accepted before or not.
    @Test(arguments: [false, true])
    func onlyTheTokensFaultIsARejection(isReused: Bool) {
        func outcome(_ status: Int, _ field: String) -> (ExchangeMachine, ExchangeMachine.Action) {
            isReused
                ? Self.run(Self.context(accepted: Self.accepted()), Self.response(status, field))
                : Self.run(
                    Self.context(), Self.response(401, "Bearer realm=\"r\""), .decisionReceived(Self.supplied),
                    Self.response(status, field))
        }
        let space = AuthenticationSpace(origin: .wiki, realm: "r", scheme: .bearer)
        for (status, error, isDefinite) in [
            (401, ", error=\"invalid_token\"", true), (401, "", false),
            (403, ", error=\"invalid_token\"", true),
        ] {
            let (machine, action) = outcome(status, "Bearer realm=\"r\"\(error)")
            #expect(
                action == .deliver(.rejected(space, credential: Self.token.reference, machine.checks)), "\(error)")
            #expect(machine.hasInvalidCredential == isDefinite)
        }
        for status in [401, 403] {
            let (machine, action) = outcome(
                status, "Bearer realm=\"r\", error=\"insufficient_scope\", scope=\"admin audit\"")
            #expect(action == .deliver(.handedBack(machine.checks)))
            #expect(machine.checks.failure == "the token's scope is insufficient: the origin requires \"admin audit\"")
        }
        for status in [401, 403] {
            for (error, shown) in [
                ("insufficient_claims", "insufficient_claims"),
                ("insufficient_user_authentication", "insufficient_user_authentication"),
                ("unheard_of", "unheard_of"), ("", ""), ("a\\\"b\\\\\u{E9}", "a?b??"),
                (String(repeating: "x", count: 61), String(repeating: "x", count: 60)),
            ] {
                let (machine, action) = outcome(status, "Bearer realm=\"r\", error=\"\(error)\", claims=\"e30=\"")
                #expect(action == .deliver(.handedBack(machine.checks)))
                #expect(
                    machine.checks.failure == "the origin does not accept the token for this request (\(shown))")
            }
        }
        for status in [400, 401] {
            let (machine, action) = outcome(status, "Bearer realm=\"r\", error=\"invalid_request\"")
            #expect(action == .deliver(.handedBack(machine.checks)))
            #expect(machine.checks.failure == "the origin calls the request invalid (invalid_request)")
        }
        for (status, field) in [(403, "Bearer realm=\"r\""), (404, "Bearer realm=\""), (500, "Basic realm=\"r\"")] {
            guard case (_, .deliver(.accepted)) = outcome(status, field) else {
                Issue.record("\(status) \(field) does not accept the token")
                continue
            }
        }
    }

    /// Another realm has not seen the token.
    @Test func aChallengeOfAnotherRealmIsAFirstChallenge() {
        let (_, action) = Self.run(
            Self.context(accepted: Self.accepted()), Self.response(401, "Bearer realm=\"other\""))
        guard case .ask(let request) = action else {
            Issue.record("nothing is asked")
            return
        }
        #expect(request.space.realm == "other")
    }

    /// The reason goes into response fields and logs, so a scope beyond the grammar of RFC 6749 §3.3 is omitted.
    @Test(arguments: [
        ("admin", "admin"), ("a b", "a b"),
        (String(repeating: "x", count: 201), String(repeating: "x", count: 200) + "…"),
        ("", nil), ("\u{E9}", nil), ("a\tb", nil), ("a\\\\b", nil), ("a\\\"b", nil),
    ])
    func onlyAValidScopeIsNamed(written: String, named: String?) throws {
        let field = "Bearer error=insufficient_scope, scope=\"\(written)\""
        let challenge = try #require(try ChallengeParser.parse(fields: [field]).first)
        #expect(BearerError(challenge) == .insufficientScope(named))
    }

    private static let claims = #"{"access_token":{"acrs":{"essential":true,"value":"c1"}}}"#

    /// The first is what Microsoft's services send, the second what they send for a revoked session.
    @Test(arguments: [
        (
            "Bearer realm=\"\", authorization_uri=\"https://login.example/authorize\", error=\"insufficient_claims\", "
                + "claims=\"eyJhY2Nlc3NfdG9rZW4iOnsiYWNycyI6eyJlc3NlbnRpYWwiOnRydWUsInZhbHVlIjoiYzEifX19\"",
            StepUp(claims: claims)
        ),
        (
            "Bearer error=\"invalid_token\", error_description=\"User session has been revoked\", "
                + "claims=\"eyJhY2Nlc3NfdG9rZW4iOnsibmJmIjp7ImVzc2VudGlhbCI6dHJ1ZSwgInZhbHVlIjoiMTYwMzc0MjgwMCJ9fX0=\"",
            StepUp(claims: #"{"access_token":{"nbf":{"essential":true,"value":"1603742800"}}}"#)
        ),
        (
            #"Bearer error="insufficient_claims", claims="{\"access_token\":{\"acrs\":{\"essential\":true,\"value\":\"c1\"}}}""#,
            StepUp(claims: claims)
        ),
        (
            "Bearer error=\"insufficient_user_authentication\", acr_values=\"phr phrh\", max_age=\"5\", scope=\"pay\"",
            StepUp(scopes: ["pay"], acrValues: ["phr", "phrh"], maxAge: 5)
        ),
        ("Bearer error=insufficient_user_authentication, max_age=0", StepUp(maxAge: 0)),
    ])
    func aStepUpIsReadFromItsChallenge(field: String, expected: StepUp) throws {
        let challenge = try #require(try ChallengeParser.parse(fields: [field]).first)
        #expect(BearerError(challenge) == .stepUp(expected))
    }

    /// What cannot be asked for is not: the challenge goes back to the client.
    @Test(arguments: [
        ("error=insufficient_claims", BearerError.other("insufficient_claims")),
        ("error=insufficient_claims, claims=\"ey==\"", .other("insufficient_claims")),
        ("error=insufficient_claims, claims=\"W10=\"", .other("insufficient_claims")),
        ("error=insufficient_claims, claims=\"\(String(repeating: "a", count: 6000))\"", .other("insufficient_claims")),
        ("error=invalid_token, claims=\"nonsense\"", .invalidToken),
        ("error=insufficient_user_authentication", .other("insufficient_user_authentication")),
        ("error=insufficient_user_authentication, max_age=\"-1\"", .other("insufficient_user_authentication")),
        (
            "error=insufficient_user_authentication, acr_values=\"a\\\"b\"",
            .other("insufficient_user_authentication")
        ),
        ("acr_values=phr, error=insufficient_scope, scope=a", .insufficientScope("a")),
    ])
    func aStepUpThatCannotBeAskedForIsNone(parameters: String, expected: BearerError) throws {
        let challenge = try #require(try ChallengeParser.parse(fields: ["Bearer \(parameters)"]).first)
        #expect(BearerError(challenge) == expected)
    }

    @Test func withoutATokenTheNextSchemeIsAsked() {
        let fields: ExchangeMachine.Event = .responseReceived(
            status: 401, challengeFields: ["Bearer realm=\"r\"", "Basic realm=\"Wiki\""])
        let (_, next) = Self.run(Self.context(), fields, .decisionReceived(.rejectProtectionSpace(reason: "no token")))
        #expect(next == .ask(.basic("Wiki")))
        // The breaker's refusal is not such a reason.
        let (machine, end) = Self.run(
            Self.context(), fields, .decisionReceived(.performDefaultHandling(reason: "was rejected")))
        #expect(end == .deliver(.handedBack(machine.checks)))
    }

    /// Nothing has been sent, so this is not a rejection.
    @Test func aCredentialThatTheSchemeCannotUseLeadsToTheNextScheme() {
        let (_, next) = Self.run(
            Self.context(),
            .responseReceived(status: 401, challengeFields: ["Bearer realm=\"r\"", "Basic realm=\"Wiki\""]),
            .decisionReceived(.jdoe))
        #expect(next == .ask(.basic("Wiki")))
        let (machine, end) = Self.run(
            Self.context(), Self.response(401, "Bearer realm=\"r\""), .decisionReceived(.jdoe))
        #expect(end == .deliver(.handedBack(machine.checks)))
        #expect(machine.checks.failure == "Bearer needs a token")
    }

    // MARK: The breaker

    /// A request may need a permission; an invalid token is invalid for every request.
    @Test(arguments: [(Breaker.Result.rejected, false), (.invalid, true)])
    func anInvalidTokenIsRejectedWhateverTheRequest(result: Breaker.Result, isRejected: Bool) {
        let key = Breaker.Key(
            space: AuthenticationSpace(origin: .wiki, realm: "r", scheme: .bearer), credential: Self.token.reference)
        let (known, new) = (
            Breaker.RequestTag(method: "GET", target: "/a"), Breaker.RequestTag(method: "GET", target: "/b")
        )
        var breaker = Breaker()
        breaker.attemptBegan(key, for: known, owner: 1, at: 0)
        _ = breaker.attemptEnded(key, for: known, .accepted, owner: 1, at: 0)
        let finding = breaker.attemptEnded(key, for: new, result, owner: 1, at: 1)
        #expect(finding == (isRejected ? .rejected(.challenge, everywhere: false) : .handedBack))
        #expect(breaker.isRejected(key, at: 2) == isRejected)
    }

    /// `explain` reports a paused credential in any realm.
    @Test func aPauseAppliesToNewRequestsOfTheSite() {
        func key(_ realm: String?, _ scheme: AuthenticationScheme = .bearer) -> Breaker.Key {
            Breaker.Key(
                space: AuthenticationSpace(origin: .wiki, realm: realm, scheme: scheme),
                credential: Self.token.reference)
        }
        var breaker = Breaker()
        #expect(breaker.pause(of: key(nil), at: 0) == nil)
        for number in 0..<2 {
            let request = Breaker.RequestTag(method: "GET", target: "/\(number)")
            breaker.attemptBegan(key("r"), for: request, owner: 1, at: 0)
            _ = breaker.attemptEnded(key("r"), for: request, .unknown, owner: 1, at: 0)
        }
        #expect(breaker.pause(of: key(nil), at: 1)?.text.contains("is not sent for 30 minutes") == true)
        #expect(breaker.pause(of: key(nil), at: 1801) == nil)
    }

    /// RFC 9728 §5.1.
    @Test(arguments: [
        ([#"Bearer resource_metadata="https://r.example/m""#], "https://r.example/m"),
        ([#"Basic realm="a", Bearer realm="b", resource_metadata="https://r.example/m""#], "https://r.example/m"),
        (
            [
                #"Bearer resource_metadata="https://r.example/1""#,
                #"Bearer error="insufficient_scope", resource_metadata="https://r.example/2""#,
            ], "https://r.example/2"
        ),
        ([#"Basic realm="a", resource_metadata="https://r.example/m""#], nil), (["Bearer"], nil), ([], nil),
        ([#"Bearer, resource_metadata=https://r.example/m"#], "https://r.example/m"),
        ([#"Bearer oops resource_metadata="https://r.example/m""#], nil),
    ])
    func theMetadataOfAResourceIsThatOfABearerChallenge(fields: [String], location: String?) {
        #expect(BearerError.resourceMetadata(in: fields) == location)
    }
}
