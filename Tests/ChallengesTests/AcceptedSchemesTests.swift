// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import Testing

@testable import CountersignChallenges

/// No downgrade by an attacker on the network path.
@Suite struct AcceptedSchemesTests {
    private static let schemes = AuthenticationScheme.allCases
    private static let tag = Breaker.RequestTag(method: "GET", target: "/")

    private static func key(
        _ scheme: AuthenticationScheme, _ origin: Origin = .printer, realm: String? = "r", name: String = "enrollment"
    ) -> Breaker.Key {
        Breaker.Key(
            space: AuthenticationSpace(origin: origin, realm: realm, scheme: scheme),
            credential: CredentialReference(name: name, source: .vault(generation: 1)))
    }

    private static func accepting(_ schemes: [AuthenticationScheme], _ origin: Origin = .printer) -> Breaker {
        var breaker = Breaker()
        for scheme in schemes {
            _ = breaker.attemptEnded(key(scheme, origin), for: tag, .accepted, owner: 1, at: 0)
        }
        return breaker
    }

    private static func offered(
        _ strongest: AuthenticationScheme, _ permitted: [AuthenticationScheme] = schemes
    ) -> OfferedSchemes { OfferedSchemes(strongest: strongest, permitted: permitted) }

    @Test(arguments: schemes, schemes)
    func onlyAWeakerOfferIsRefused(accepted: AuthenticationScheme, strongest: AuthenticationScheme) throws {
        let breaker = Self.accepting([accepted])
        let isWeaker =
            try #require(Self.schemes.firstIndex(of: strongest))
            > (try #require(Self.schemes.firstIndex(of: accepted)))
        // The server still offers the strong scheme, for which there is no ticket today.
        let refusal = breaker.refusal(of: Self.key(.basic, realm: "new"), inAnswerTo: Self.offered(strongest))
        #expect((refusal != nil) == isWeaker)
        guard let refusal else { return }
        #expect(
            refusal.text == "http://printer.corp.example:80 has accepted \(accepted.rawValue) before, and now offers "
                + "nothing stronger than \(strongest.rawValue); `countersign credential retry enrollment` permits an attempt"
        )
    }

    /// The person's word, and no downgrade.
    @Test func whatTheLineForbidsDoesNotCount() {
        let breaker = Self.accepting([.ntlm, .digest])
        let key = Self.key(.basic)
        #expect(breaker.refusal(of: key, inAnswerTo: Self.offered(.basic, [.basic])) == nil)
        #expect(breaker.refusal(of: key, inAnswerTo: Self.offered(.digest, [.digest, .basic])) == nil)
        let refusal = breaker.refusal(of: key, inAnswerTo: Self.offered(.basic, [.digest, .basic]))
        #expect(refusal?.text.contains("has accepted digest before") == true)
    }

    @Test func otherOriginsAreNotConcerned() {
        let breaker = Self.accepting([.ntlm])
        #expect(breaker.refusal(of: Self.key(.basic, .wiki), inAnswerTo: Self.offered(.basic)) == nil)
        #expect(Breaker().refusal(of: Self.key(.basic), inAnswerTo: Self.offered(.basic)) == nil)
    }

    /// A server has several areas. Without TLS, the origin of the offer is unknown.
    @Test(arguments: [(Origin.wiki, true), (.printer, false)])
    func overTLSASpaceKeepsItsScheme(origin: Origin, isPermitted: Bool) {
        let breaker = Self.accepting([.basic, .ntlm], origin)
        let refusal = breaker.refusal(of: Self.key(.basic, origin), inAnswerTo: Self.offered(.basic))
        #expect((refusal == nil) == isPermitted)
        #expect(breaker.refusal(of: Self.key(.basic, origin, realm: "s"), inAnswerTo: Self.offered(.basic)) != nil)
    }

    @Test func aKDCIsNoOrigin() {
        var breaker = Breaker()
        let key = Breaker.Key(
            space: .kdc(of: "CORP.TEST"), credential: CredentialReference(name: "k", source: .vault(generation: 1)))
        _ = breaker.attemptEnded(key, for: Self.tag, .accepted, owner: 1, at: 0)
        #expect(breaker.schemes.entries.isEmpty)
    }

    // MARK: The person permits it

    @Test(arguments: [nil, "enrollment"]) func aRetryPermitsWeakerOffers(name: String?) {
        var breaker = Self.accepting([.ntlm])
        let key = Self.key(.basic)
        // Nothing was withheld yet.
        #expect(breaker.permitRetry(of: name, at: 1) == [])
        #expect(breaker.refusal(of: key, inAnswerTo: Self.offered(.basic)) != nil)
        _ = breaker.attemptEnded(key, for: Self.tag, .withheld, owner: 1, at: 1)
        var other = breaker
        #expect(other.permitRetry(of: "other", at: 1) == [])
        #expect(other.refusal(of: key, inAnswerTo: Self.offered(.basic)) != nil)
        #expect(breaker.permitRetry(of: name, at: 1) == ["enrollment"])
        #expect(breaker.refusal(of: key, inAnswerTo: Self.offered(.basic)) == nil)
        // From now on, accepted schemes count again.
        _ = breaker.attemptEnded(Self.key(.digest), for: Self.tag, .accepted, owner: 1, at: 2)
        #expect(breaker.refusal(of: key, inAnswerTo: Self.offered(.basic)) != nil)
    }

    @Test func whatIsWithheldIsNoFailure() {
        var breaker = Self.accepting([.ntlm])
        _ = breaker.attemptEnded(Self.key(.basic), for: Self.tag, .withheld, owner: 1, at: 1)
        #expect(!breaker.hasFailures)
        #expect(breaker.decide(Self.key(.basic), for: Self.tag, at: 1) == .mayTry)
    }

    // MARK: Limits

    @Test func theOriginThatAcceptedNothingForTheLongestTimeIsForgotten() {
        var schemes = AcceptedSchemes()
        func origin(_ number: Int) -> Origin { Origin(scheme: .http, host: "h\(number)", port: 80) }
        for number in 0...AcceptedSchemes.capacity { schemes.accepted(.ntlm, at: origin(number), now: Int64(number)) }
        #expect(schemes.entries.count == AcceptedSchemes.capacity)
        #expect(schemes.entries[origin(0)] == nil && schemes.entries[origin(1)] != nil)
        schemes.removeOld(at: 400 * 86_400 + 100)
        #expect(schemes.entries[origin(99)] == nil && schemes.entries[origin(100)] != nil)
    }

    /// The records are not written for each acceptance.
    @Test func anAcceptanceIsNewsOnceADay() {
        var schemes = AcceptedSchemes()
        schemes.accepted(.ntlm, at: .wiki, now: 0)
        let first = schemes
        schemes.accepted(.ntlm, at: .wiki, now: 86_400)
        #expect(schemes == first)
        schemes.accepted(.ntlm, at: .wiki, now: 86_401)
        #expect(schemes != first)
    }

    // MARK: The machine's question

    private static func asked(_ context: RequestContext, _ fields: [String]) -> CredentialRequest? {
        var machine = ExchangeMachine(context)
        _ = machine.started()
        guard
            case .ask(let request) = machine.responseReceived(
                status: 401, challengeFields: fields.map { ChallengeField($0) })
        else {
            return nil
        }
        return request
    }

    @Test(arguments: [
        (["Basic realm=\"r\""], AuthenticationScheme.basic), (["NTLM", "Basic realm=\"r\""], .ntlm),
        (["Negotiate, Basic realm=\"r\""], .ntlm),
    ])
    func aQuestionSaysWhatIsOffered(fields: [String], strongest: AuthenticationScheme) {
        let context = RequestContext.site()
        #expect(
            Self.asked(context, fields)?.offered == OfferedSchemes(strongest: strongest, permitted: context.permitted))
    }

    @Test func theWeakerQuestionSaysThatTheStrongerSchemeIsOffered() {
        var machine = ExchangeMachine(.site())
        _ = machine.started()
        _ = machine.responseReceived(status: 401, challengeFields: ["NTLM", "Basic realm=\"r\""])
        let action = machine.decisionReceived(.rejectProtectionSpace(reason: "no"))
        guard case .ask(let request) = action else {
            Issue.record("nothing is asked: \(action)")
            return
        }
        #expect(request.space.scheme == .basic)
        #expect(request.offered?.strongest == .ntlm)
    }

    /// A challenge that cannot be answered is not an offer: anyone can add it.
    @Test func anOfferThatCannotBeAnsweredDoesNotCount() {
        let context = RequestContext.site(permitted: [.digest, .basic]).with {
            $0.authenticators = AuthenticatorTable(DigestAuthenticator.strongestFirst + [BasicAuthenticator.shared])
        }
        let fields = ["Digest realm=\"r\", nonce=\"n\", algorithm=SHA-1", "Basic realm=\"r\""]
        #expect(Self.asked(context, fields)?.offered?.strongest == .basic)
    }

    // MARK: Without TLS

    private static let basic = ["Basic realm=\"r\""]

    @Test(arguments: [true, false]) func overHTTPBasicReplacesAStrongerSchemeIfItIsNamed(isNamed: Bool) {
        let context = RequestContext.site(.printer).with {
            $0.plaintextPermitted = true
            $0.namesSchemes = isNamed
        }
        var machine = ExchangeMachine(context)
        _ = machine.started()
        _ = machine.responseReceived(status: 401, challengeFields: ["NTLM"] + Self.basic.map { ChallengeField($0) })
        let action = machine.decisionReceived(.rejectProtectionSpace(reason: "no password"))
        guard isNamed else {
            #expect(action == .deliver(.handedBack(machine.checks)))
            #expect(machine.checks.failure == "no password")
            return
        }
        guard case .ask(let request) = action else {
            Issue.record("nothing is asked: \(action)")
            return
        }
        #expect(request.space.scheme == .basic)
    }

    /// The line need not name it over TLS, or if it is the only scheme. A proof of the password never has to be named.
    @Test(arguments: [
        (Origin.wiki, ["Basic realm=\"r\""]), (.printer, ["Basic realm=\"r\""]), (.printer, ["NTLM"]),
    ])
    func nothingElseMustBeNamed(origin: Origin, fields: [String]) {
        let context = RequestContext.site(origin).with {
            $0.plaintextPermitted = true
            $0.namesSchemes = false
        }
        #expect(Self.asked(context, fields) != nil)
    }

    @Test(arguments: [
        (["NTLM"], "NTLM"), (["Basic realm=\"r\""], "Basic"), (["Negotiate"], "NTLM"),
    ])
    func aParentWithoutTLSNeedsPermission(fields: [String], name: String) {
        let place = Origin(scheme: .proxy, host: "proxy.corp.example", port: 3128)
        var context = RequestContext.site(place)
        context.source = .parentProxy
        context.isPlaintextParent = true
        var machine = ExchangeMachine(context)
        _ = machine.started()
        let action = machine.responseReceived(status: 407, challengeFields: fields.map { ChallengeField($0) })
        #expect(action == .deliver(.handedBack(machine.checks)))
        #expect(
            machine.checks.failure
                == "\(name) is sent to a parent without TLS only if its line says plaintext=yes")
        context.plaintextPermitted = true
        machine = ExchangeMachine(context)
        _ = machine.started()
        guard case .ask = machine.responseReceived(status: 407, challengeFields: fields.map { ChallengeField($0) })
        else {
            Issue.record("nothing is asked")
            return
        }
    }
}
