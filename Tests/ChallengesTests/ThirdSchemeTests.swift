// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import Synchronization
import Testing

@testable import CountersignChallenges

// A scheme that the product does not have, defined only in this file. It has the requirements of Digest: a field
// computed from the method and target of each request, a nonce with a count, answers that become stale, and responses
// that are verified.

/// `Token realm="r", nonce="n"` is answered with `Token nonce="n", count=1, request="GET /", user="jdoe"`. The server
/// confirms with `Authentication-Info: proof=1`, optionally with `nextnonce=m`.
private final class TokenAuthenticator: Authenticator {
    var schemeName: String { "Token" }
    var scheme: AuthenticationScheme { .bearer }
    var verifiesAcceptance: Bool { true }

    func canAnswer(_ challenge: Challenge) -> Bool { challenge.parameter("nonce") != nil }

    func scopes(of challenge: Challenge, at origin: Origin, challengedTarget: String) -> [PathScope] {
        PathScope(challengedPath: "/").map { [$0] } ?? []
    }

    func obstacle(to credential: EnrolledCredential, _ context: RequestContext) -> String? { nil }

    func reply(
        to challenge: Challenge, with credential: EnrolledCredential, _ context: RequestContext
    ) throws(AuthenticationError) -> Reply {
        guard let nonce = challenge.parameter("nonce") else {
            throw AuthenticationError(.unsupportedChallenge, "Token needs a nonce")
        }
        let user = try credential.password(for: name).user
        return .answer(.perRequest(TokenSigner(nonce: nonce, user: user)))
    }

    func verdict(on repeated: RepeatedChallenge) -> ChallengeVerdict {
        let challenge = repeated.challenges.first { $0.isOf(schemeName) && $0.realm == repeated.answered.realm }
        guard let challenge else { return .rejected }
        if challenge.parameter("error") == "insufficient_scope" { return .handBack("the token's scope is too small") }
        guard challenge.parameter("stale") == "true", let nonce = challenge.parameter("nonce"),
            case .perRequest(let signer as TokenSigner) = repeated.answer
        else { return .rejected }
        return .stale(.perRequest(TokenSigner(nonce: nonce, user: signer.user)))
    }

    func acceptance(_ response: AcceptingResponse) -> AcceptanceVerdict {
        guard let information = response.informationFields.first else { return .accepted }
        let parts = information.split(separator: ",")
        guard parts[0] == "proof=\(response.sent?.parameter("count") ?? "")" else { return .forged("wrong proof") }
        if parts.count > 1, case .perRequest(let signer as TokenSigner) = response.answer {
            signer.roll(to: String(parts[1].dropFirst("nextnonce=".count)))
        }
        return .accepted
    }

    func preemption(after answer: Answer) -> Preemption { .answer(answer) }
}

private final class TokenSigner: RequestSigner {
    let user: String
    private let state: Mutex<(nonce: String, count: Int)>

    init(nonce: String, user: String) {
        self.user = user
        state = Mutex((nonce, 0))
    }

    func roll(to nonce: String) { state.withLock { $0 = (nonce, 0) } }

    func field(for request: some RequestDescription, _ inputs: AnswerInputs) -> AuthorizationField? {
        let (nonce, count) = state.withLock { state in
            state.count += 1
            return state
        }
        let request = "\(request.method) \(request.target)"
        let text = "nonce=\"\(nonce)\", count=\(count), request=\"\(request)\", user=\"\(user)\""
        return AuthorizationField(scheme: "Token", parameterBytes: text.utf8.count) { $0.copyBytes(from: text.utf8) }
    }
}

/// A driver that sends one request for each action, with the action's field.
private struct Driver: RequestDescription {
    var machine: ExchangeMachine
    var method = "GET"
    var target: String
    var sent: AuthorizationField?

    init(_ context: RequestContext, target: String) {
        machine = ExchangeMachine(context)
        self.target = target
    }

    func readContent(_ body: (UnsafeRawBufferPointer) -> Void) -> Bool { true }

    /// The field of a send; nil for other actions, and for a request as the client sent it.
    mutating func field(of action: ExchangeMachine.Action) -> String? {
        guard case .send(let answer?) = action else { return nil }
        sent = answer.field(for: self, AnswerInputs(fileTime: 0, random: { [UInt8](repeating: 0, count: $0) }))
        return sent?.fieldValue
    }

    /// The field of a request that is sent before a challenge.
    mutating func start() -> String? {
        let action = machine.started()
        return field(of: action)
    }

    mutating func responded(
        _ status: Int, _ challenges: [String] = [], information: [String] = []
    ) -> ExchangeMachine.Action {
        machine.responseReceived(
            status: status, challengeFields: challenges.map { ChallengeField($0) }, informationFields: information,
            sent: sent)
    }

    /// Starts, receives a challenge, and supplies the credential. Returns the field that is sent.
    mutating func answerFirstChallenge(_ challenge: String) -> String? {
        guard machine.started() == .send(nil), case .ask = responded(machine.context.source.status, [challenge]) else {
            return nil
        }
        let action = machine.decisionReceived(.jdoe)
        return field(of: action)
    }
}

/// The machine supports a scheme that it does not know, for an origin's 401 and for a parent proxy's 407.
@Suite struct ThirdSchemeTests {
    private static let authenticator = TokenAuthenticator()
    private static let first = "Token realm=\"r\", nonce=\"n\""

    private static func context(_ source: ChallengeSource, _ accepted: AcceptedAnswer? = nil) -> RequestContext {
        RequestContext(
            origin: .wiki, source: source,
            authenticators: AuthenticatorTable([authenticator, BasicAuthenticator.shared]), site: .listed,
            permitted: [.bearer, .basic], plaintextPermitted: false, clientAuthorizes: false, originTrusted: true,
            hasBody: false, accepted: accepted)
    }

    private static func accepted(_ action: ExchangeMachine.Action) -> AcceptedAnswer? {
        if case .deliver(.accepted(let accepted)) = action { accepted } else { nil }
    }

    @Test(arguments: ChallengeSource.allCases)
    func itIsAnsweredReusedRenewedAndAccepted(source: ChallengeSource) throws {
        var driver = Driver(Self.context(source), target: "/a")
        #expect(
            driver.answerFirstChallenge(Self.first)
                == "Token nonce=\"n\", count=1, request=\"GET /a\", user=\"jdoe\"")
        let accepted = try #require(Self.accepted(driver.responded(200, information: ["proof=1"])))
        #expect(accepted.space == AuthenticationSpace(origin: .wiki, realm: "r", scheme: .bearer))
        #expect(accepted.credential == PasswordCredential.jdoe.reference)

        // The next request carries a new field before it is challenged.
        driver = Driver(Self.context(source, accepted), target: "/b")
        driver.method = "POST"
        #expect(
            driver.start()
                == "Token nonce=\"n\", count=2, request=\"POST /b\", user=\"jdoe\"")
        // Its nonce is out of date, which is not a rejection: the new nonce is used at once, and remembered.
        let stale = driver.responded(source.status, ["Token realm=\"r\", nonce=\"m\", stale=true"])
        #expect(
            driver.field(of: stale) == "Token nonce=\"m\", count=1, request=\"POST /b\", user=\"jdoe\"")
        let renewed = try #require(Self.accepted(driver.responded(204, information: ["proof=1"])))
        #expect(renewed !== accepted)
        #expect(renewed.space == accepted.space)

        driver = Driver(Self.context(source, renewed), target: "/c")
        #expect(
            driver.start()
                == "Token nonce=\"m\", count=2, request=\"GET /c\", user=\"jdoe\"")
        #expect(driver.responded(200) == .deliver(.accepted(renewed)))
    }

    @Test(arguments: ChallengeSource.allCases)
    func aFirstAnswerThatIsStaleIsRenewedOnce(source: ChallengeSource) {
        let stale = "Token realm=\"r\", nonce=\"m\", stale=true"
        var driver = Driver(Self.context(source), target: "/a")
        _ = driver.answerFirstChallenge(Self.first)
        let renewal = driver.responded(source.status, [stale])
        #expect(driver.field(of: renewal)?.contains("nonce=\"m\", count=1") == true)
        let reason: Refusal = "\(source.name) called a new answer stale"
        #expect(driver.responded(source.status, [stale]) == .deliver(.handedBack(.no(reason))))
    }

    @Test(arguments: ChallengeSource.allCases)
    func aRejectionIsARejection(source: ChallengeSource) throws {
        var driver = Driver(Self.context(source), target: "/a")
        _ = driver.answerFirstChallenge(Self.first)
        let space = AuthenticationSpace(origin: .wiki, realm: "r", scheme: .bearer)
        func rejection(_ driver: Driver) -> ExchangeMachine.Action {
            .deliver(.rejected(space, credential: PasswordCredential.jdoe.reference, driver.machine.checks))
        }
        let first = driver.responded(source.status, [Self.first])
        #expect(first == rejection(driver))
        #expect(driver.machine.checks.failure == "credential \"enrollment\" was rejected by the \(source.name)")

        driver = Driver(Self.context(source), target: "/a")
        _ = driver.answerFirstChallenge(Self.first)
        let accepted = try #require(Self.accepted(driver.responded(200)))
        driver = Driver(Self.context(source, accepted), target: "/b")
        _ = driver.start()
        let second = driver.responded(source.status, [Self.first])
        #expect(second == rejection(driver))
    }

    @Test func anErrorOtherThanTheCredentialIsHandedBack() {
        var driver = Driver(Self.context(.origin), target: "/a")
        _ = driver.answerFirstChallenge(Self.first)
        #expect(
            driver.responded(401, ["Token realm=\"r\", nonce=\"n\", error=insufficient_scope"])
                == .deliver(.handedBack(.no("the token's scope is too small"))))
    }

    @Test func theNextNonceOfAResponseIsUsed() throws {
        var driver = Driver(Self.context(.origin), target: "/a")
        _ = driver.answerFirstChallenge(Self.first)
        let accepted = try #require(Self.accepted(driver.responded(200, information: ["proof=1,nextnonce=o"])))
        driver = Driver(Self.context(.origin, accepted), target: "/b")
        #expect(
            driver.start()
                == "Token nonce=\"o\", count=1, request=\"GET /b\", user=\"jdoe\"")
    }

    @Test(arguments: [false, true])
    func aResponseWithAWrongProofIsNotDelivered(isReused: Bool) throws {
        var driver = Driver(Self.context(.origin), target: "/a")
        _ = driver.answerFirstChallenge(Self.first)
        if isReused {
            let accepted = try #require(Self.accepted(driver.responded(200)))
            driver = Driver(Self.context(.origin, accepted), target: "/a")
            _ = driver.start()
        }
        #expect(
            driver.responded(200, information: ["proof=9"])
                == .fail(.init(.forgedResponse, "the origin's last authentication token is wrong: wrong proof")))
    }

    @Test func aStrongerSchemeIsAskedAboutFirst() {
        var driver = Driver(Self.context(.origin), target: "/a")
        _ = driver.machine.started()
        guard case .ask(let request) = driver.responded(401, ["Basic realm=\"r\"", Self.first]) else {
            Issue.record("nothing is asked")
            return
        }
        #expect(request.space.scheme == .bearer)
    }
}

/// The same machine answers a parent proxy's 407 and an origin's 401.
@Suite struct ParentProxyTests {
    private static func context(hasBody: Bool = false, accepted: AcceptedAnswer? = nil) -> RequestContext {
        .site(hasBody: hasBody, accepted: accepted).with { $0.source = .parentProxy }
    }

    @Test func basicIsAnswered() {
        play(
            Self.context(),
            [
                .event(.started), .expect(.send(nil)),
                .response(407, "Basic realm=\"Wiki\""), .expect(.ask(.basic("Wiki"))),
                .decision(.jdoe), .expect(.send(.basic)),
                .response(200), .expect(.deliver(.accepted(.basic, realm: "Wiki"))),
            ])
    }

    /// The proxy has forwarded the request, so it accepted the answer. The 401 comes from the origin and is not for
    /// this machine.
    @Test func anOriginsChallengeMeansThatTheProxyAccepted() {
        for accepted in [nil, AcceptedAnswer.basic] {
            let start: [Line] =
                accepted == nil
                ? [
                    .event(.started), .expect(.send(nil)),
                    .response(407, "Basic realm=\"Wiki\""), .expect(.ask(.basic("Wiki"))),
                    .decision(.jdoe), .expect(.send(.basic)),
                ] : [.event(.started), .expect(.send(.basic))]
            play(
                Self.context(accepted: accepted),
                start + [
                    .response(401, "Basic realm=\"Wiki\""), .expect(.deliver(.accepted(.basic, realm: "Wiki"))),
                ])
        }
    }

    @Test func ntlmTakesThreeSendsOnOneConnection() {
        let exchange = play(
            Self.context(hasBody: true),
            [
                .event(.started), .expect(.send(nil)),
                .response(407, "NTLM"), .expect(.ask(.ntlm)),
                .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
                .token([1]), .expect(.sendOpening(.opening)), .sameConnection(true),
                .response(407, "NTLM Ag=="), .expect(.computeToken(.ntlm, .jdoe, serverToken: [2])),
                .token([3]), .expect(.send(.answer)),
                .response(200), .expect(.deliver(.accepted(.ntlm))), .sameConnection(true),
            ])
        #expect(exchange.roundsAnswered == 2)
    }

    @Test func messagesNameTheProxyAndItsFields() {
        play(
            Self.context(),
            [
                .event(.started), .expect(.send(nil)), .response(407),
                .expect(.deliver(.handedBack(.no("the 407 has no challenge")))),
            ])
        play(
            Self.context(),
            [
                .event(.started), .expect(.send(nil)), .response(407, "Digest realm=\"x\""),
                .expect(
                    .deliver(
                        .handedBack(.no("parent proxy offers Digest, which this version cannot answer")))),
            ])
        play(
            Self.context().with { $0.clientAuthorizes = true },
            [
                .event(.started), .expect(.send(nil)), .response(407, "Basic realm=\"Wiki\""),
                .expect(
                    .deliver(
                        .handedBack(.no(Refusal(.ownAuthorization, "the client sent its own Proxy-Authorization"))))),
            ])
        #expect(ChallengeSource.parentProxy.challengeField == "Proxy-Authenticate")
        #expect(ChallengeSource.parentProxy.informationField == "Proxy-Authentication-Info")
    }

    @Test func a401IsNoChallengeOfTheProxy() {
        play(
            Self.context(),
            [
                .event(.started), .expect(.send(nil)),
                .response(401, "Basic realm=\"Wiki\""), .expect(.deliver(.notChallenged)),
            ])
    }
}
