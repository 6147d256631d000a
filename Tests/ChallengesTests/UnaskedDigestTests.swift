// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignChallenges

/// A challenge to a Digest answer that was sent before it, or that calls the answer stale, and the answer that may be
/// sent next.
@Suite struct UnaskedDigestTests {
    private static let usual = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""
    private static let password = PasswordCredential(
        name: "enrollment", user: "jörg", password: Secret(utf8: "geheimß"), generation: 7)
    private static let table = AuthenticatorTable(DigestAuthenticator.strongestFirst + [BasicAuthenticator.shared])

    /// A request of a site whose earlier answers are remembered as the drivers do it.
    private struct Site {
        var accepted: AcceptedAnswer?
        var charset = CredentialCharset.utf8
        var hasBody = false
        private(set) var machine = ExchangeMachine(.site())
        private(set) var action = ExchangeMachine.Action.wait
        private(set) var sent: AuthorizationField?
        /// The sent answers, in order; nil for a request without one.
        private(set) var fields: [Challenge?] = []
        private(set) var refusals = 0

        init(charset: CredentialCharset = .utf8) { self.charset = charset }

        mutating func start(_ target: String = "/a") {
            var context = RequestContext.site(permitted: [.digest, .basic], accepted: accepted)
            context.authenticators = table
            context.charset = charset
            machine = ExchangeMachine(context)
            fields = []
            refusals = 0
            perform(machine.started())
        }

        mutating func respond(_ status: Int, _ challenges: String..., information: String? = nil) {
            perform(
                machine.responseReceived(
                    status: status, challengeFields: challenges.map { ChallengeField($0) },
                    informationFields: information.map { [$0] } ?? [],
                    sent: sent))
        }

        private mutating func perform(_ next: ExchangeMachine.Action) {
            action = next
            switch next {
            case .ask(let request):
                if request.refused != nil { refusals += 1 }
                perform(machine.decisionReceived(.useCredential(.password(password))))
            case .send(let answer):
                let inputs = AnswerInputs(fileTime: 0, random: { [UInt8](repeating: 0x63, count: $0) })
                sent = answer?.field(for: SampleRequest(target: "/a"), inputs)
                fields.append(sent?.parsed)
            case .deliver(.accepted(let answer)):
                if answer.preemption != .none || accepted != nil { accepted = answer }
            default: break
            }
        }

        /// The first request of the site: challenged with `field`, and accepted.
        mutating func learn(_ field: String = usual) {
            start()
            respond(401, field)
            respond(200)
        }

        var isRejected: Bool { if case .deliver(.rejected) = action { true } else { false } }
        var isAccepted: Bool { if case .deliver(.accepted) = action { true } else { false } }
    }

    // MARK: A challenge and not a verdict (RFC 7616 §3.6)

    /// The parameters that differ between two challenges in one realm, and that an answer repeats or depends on.
    static let others = [
        "Digest realm=\"r\", nonce=\"m\", qop=\"auth\"",
        "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", opaque=\"o\"",
        "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256",
        "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-512-256",
        "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5-sess",
        "Digest realm=\"r\", nonce=\"n\", qop=\"auth-int\"",
        "Digest realm=\"r\", nonce=\"n\"",
        "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", charset=UTF-8",
        "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", userhash=true",
        "Digest realm=\"r\", nonce=\"m\", qop=\"auth\", stale=1",
        "Digest realm=\"r\", nonce=\"m\", qop=\"auth\", stale=false",
    ]

    private static let pairs = others.flatMap { [(usual, $0), ($0, usual)] }

    @Test(arguments: pairs)
    func anAnswerSentAheadIsChallengedAndAnsweredOnce(first: String, second: String) throws {
        var site = Site(charset: .latin1)
        site.learn(first)
        for status in [200, 401] {
            var site = site
            site.start()
            let isSentAhead = !first.contains("auth-int")
            #expect((site.fields == [nil]) != isSentAhead)
            site.respond(401, second)
            #expect(site.refusals == (isSentAhead ? 1 : 0))
            let answer = try #require(site.fields.last ?? nil)
            let asked = try #require(try ChallengeParser.parse(fields: [second]).first)
            for name in ["nonce", "opaque", "algorithm", "qop", "userhash"] {
                #expect(answer.parameter(name) == asked.parameter(name), "\(name)")
            }
            site.respond(status, second)
            #expect(status == 200 ? site.isAccepted : site.isRejected)
            #expect(site.machine.roundsAnswered == (isSentAhead ? 2 : 1))
        }
    }

    /// A challenge to the answer to the server's own challenge is a verdict, regardless of its content.
    @Test(arguments: others.filter { !$0.contains("stale") })
    func anAnswerToAChallengeIsRejectedByTheNext(second: String) {
        var site = Site()
        site.start()
        site.respond(401, Self.usual)
        site.respond(401, second)
        #expect(site.isRejected)
    }

    /// No server accepts a count twice.
    @Test func aNonceThatTheServerRepeatsKeepsItsCount() throws {
        var site = Site()
        site.learn()
        site.start()
        site.respond(401, Self.usual)
        #expect(site.fields.map { $0?.parameter("nc") } == ["00000002", "00000003"])
        site.respond(401, Self.usual)
        #expect(site.isRejected)
    }

    @Test func theStrongestOfTheNewOffersIsAnswered() throws {
        var site = Site()
        site.learn()
        site.start()
        site.respond(
            401, "Basic realm=\"r\"", Self.usual, "Digest realm=\"r\", nonce=\"n\", qop=auth, algorithm=SHA-256")
        #expect(site.fields.last??.parameter("algorithm") == "SHA-256")
    }

    @Test func whatCannotBeAnsweredIsHandedBack() {
        var site = Site()
        site.learn()
        site.start()
        site.respond(401, "Digest realm=\"r\", nonce=\"m\", qop=\"auth-conf\"")
        #expect(site.action == .deliver(.handedBack(site.machine.checks)))
        #expect(site.machine.checks.failure?.contains("with qop auth-conf") == true)
    }

    // MARK: Stale

    @Test(arguments: others, [false, true])
    func aStaleAnswerIsRenewedWhateverElseChanges(second: String, isUnasked: Bool) throws {
        let stale = second.replacing(", stale=1", with: "").replacing(", stale=false", with: "") + ", stale=true"
        var site = Site()
        if isUnasked {
            site.learn()
            site.start()
        } else {
            site.start()
            site.respond(401, Self.usual)
        }
        site.respond(401, stale)
        // The server has said that the password is right.
        #expect(site.refusals == 0)
        let answer = try #require(site.fields.last ?? nil)
        let asked = try #require(try ChallengeParser.parse(fields: [second]).first)
        for name in ["nonce", "opaque", "algorithm", "qop", "userhash"] {
            #expect(answer.parameter(name) == asked.parameter(name), "\(name)")
        }
        var twice = site
        twice.respond(401, stale)
        #expect(twice.action == .deliver(.handedBack(twice.machine.checks)))
        #expect(twice.machine.checks.failure == "origin called a new answer stale")
        site.respond(401, Self.usual)
        #expect(site.isRejected)
    }

    // MARK: The next answer ahead of a challenge

    @Test func aServerOfOneTimeNoncesIsAskedEachTime() {
        var site = Site()
        site.learn()
        site.start()
        #expect(site.fields.map { $0 == nil } == [false])
        site.respond(401, Self.others[0])
        site.respond(200)
        for number in 0..<3 {
            site.start()
            #expect(site.fields.map { $0 == nil } == [true], "\(number)")
            site.respond(401, Self.usual.replacing("\"n\"", with: "\"\(number)\""))
            site.respond(200)
            #expect(site.refusals == 0)
        }
    }

    /// The server itself announces the nonce that it will accept next.
    @Test func anAnnouncedNonceIsSentAhead() {
        var site = Site()
        site.learn()
        site.start()
        site.respond(401, Self.others[0])
        site.respond(200, information: "nextnonce=\"next\"")
        site.start()
        #expect(site.fields.map { $0?.parameter("nonce") } == ["next"])
    }

    /// Such as after a restart of the server.
    @Test func aNonceThatServedIsFollowedByOneThatIsSentAheadToo() {
        var site = Site()
        site.learn()
        site.start()
        site.respond(200)
        site.start()
        site.respond(401, Self.others[0])
        site.respond(200)
        site.start()
        #expect(site.fields.map { $0?.parameter("nonce") } == ["m"])
    }

    // MARK: Basic (RFC 7617)

    private static let basic = "Basic realm=\"r\""

    @Test(arguments: [(basic, basic + ", charset=UTF-8"), (basic + ", charset=\"UTF-8\"", basic)])
    func anotherCharsetMakesAnotherAnswer(first: String, second: String) {
        for status in [200, 401] {
            var site = Site(charset: .latin1)
            site.learn(first)
            site.start()
            let ahead = site.sent
            site.respond(401, second)
            #expect(ahead != nil && site.sent != nil && site.sent != ahead)
            site.respond(status, second)
            #expect(status == 200 ? site.isAccepted : site.isRejected)
        }
    }

    /// The same octets are not sent again.
    @Test(arguments: [(CredentialCharset.latin1, basic), (.utf8, basic + ", charset=UTF-8")])
    func theSameOctetsAreNotSentAgain(charset: CredentialCharset, second: String) {
        var site = Site(charset: charset)
        site.learn(Self.basic)
        site.start()
        site.respond(401, second)
        #expect(site.isRejected)
        #expect(site.machine.roundsAnswered == 1)
    }

    // MARK: The breaker

    private static let key = Breaker.Key(
        space: AuthenticationSpace(origin: .wiki, realm: "r", scheme: .digest), credential: password.reference)

    /// Stops when the account may no longer be sent. Returns how often it was sent.
    private static func wrongSends(_ requests: [String], inFlight: Int) -> Int {
        var breaker = Breaker()
        let known = Breaker.RequestTag(method: "GET", target: "/known")
        breaker.attemptBegan(key, for: known, owner: 1, at: 0)
        _ = breaker.attemptEnded(key, for: known, .accepted, owner: 1, at: 0)
        // The password changes.
        var count = 0
        for (number, request) in requests.enumerated() {
            let tag = Breaker.RequestTag(method: "GET", target: request)
            let isAhead = number < inFlight
            #expect(breaker.mayPreempt(key, at: 1) == (number == 0))
            if isAhead {
                count += 1
                _ = breaker.attemptEnded(key, for: tag, .challengedUnasked, owner: 1, at: 1)
            }
            guard breaker.decide(key, for: tag, at: 1) == .mayTry else { continue }
            breaker.attemptBegan(key, for: tag, owner: 1, at: 1)
            count += 1
            _ = breaker.attemptEnded(key, for: tag, .rejected, owner: 1, at: 1)
        }
        return count
    }

    @Test func anAnswerThatWasRefusedUnaskedCountsWithTheOneThatFollows() {
        #expect(Self.wrongSends(["/known", "/b", "/c"], inFlight: 1) == 2)
        #expect(Self.wrongSends(["/a", "/b", "/c", "/d"], inFlight: 1) == 2)
        // Answers in flight cannot be taken back.
        #expect(Self.wrongSends(["/a", "/b", "/c", "/d"], inFlight: 3) == 4)
    }

    @Test func requestsWithTheSameTargetDoNotEndEachOthersAttempts() {
        var breaker = Breaker()
        let tag = Breaker.RequestTag(method: "GET", target: "/a")
        breaker.attemptBegan(Self.key, for: tag, owner: 1, at: 0)
        _ = breaker.attemptEnded(Self.key, for: tag, .accepted, owner: 1, at: 0)
        _ = breaker.attemptEnded(Self.key, for: tag, .challengedUnasked, owner: 1, at: 1)
        breaker.attemptBegan(Self.key, for: tag, owner: 1, at: 1)
        _ = breaker.attemptEnded(Self.key, for: tag, .challengedUnasked, owner: 1, at: 1)
        #expect(breaker.record(of: Self.key)?.attempts.isEmpty == false)
        #expect(breaker.record(of: Self.key)?.unaccepted.count == 1)
        #expect(breaker.decide(Self.key, for: tag, at: 1) == .wait)
        _ = breaker.attemptEnded(Self.key, for: tag, .accepted, owner: 1, at: 1)
        #expect(!breaker.hasFailures)
        #expect(breaker.decide(Self.key, for: tag, at: 1) == .free)
    }
}
