// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

extension ExchangeMachine {
    static let notContinued = ThreeChecks.Check.no("origin did not continue NTLM")

    // MARK: From the request to the question

    mutating func start() -> Action {
        guard !context.isRefused else {
            state = .untouched
            return .send(nil)
        }
        switch context.usableLearned {
        case .basic(let authorization, let realm, let credential):
            checks.challenge = .yes("basic was accepted here before")
            checks.credential = .yes("credential \"\(credential.name)\"")
            roundsAnswered += 1
            state = .awaitingLearned(realm: realm, credential: credential)
            return .send(authorization)
        case .ntlm(let kind):
            let offer = Offer(kind: kind, challenge: Challenge(scheme: kind.schemeName))
            return ask(offer, weaker: [], isLearned: true)
        case nil:
            return sendAsItCame()
        }
    }

    /// As though nothing had been learned: the request goes out, and its 401 will be the first.
    mutating func sendAsItCame() -> Action {
        checks = ThreeChecks(site: context.site)
        state = .awaitingChallenge
        return .send(nil)
    }

    /// A first 401, or one that makes a fresh start.
    mutating func challenged(_ fields: [String]) -> Action {
        switch parse(fields) {
        case .failure(let error): return handBack(challenge: .no("unparsable challenge: \(error.detail)"))
        case .success(let challenges): return choose(among: challenges)
        }
    }

    /// A 401 to an answer that was accepted earlier in this run.
    mutating func challengedAgain(_ fields: [String], realm: String, credential: CredentialReference) -> Action {
        switch parse(fields) {
        case .failure(let error):
            return handBack(challenge: .no("unparsable challenge: \(error.detail)"))
        case .success(let challenges):
            let isSameRealm = challenges.contains { $0.isOf(OfferKind.basic.schemeName) && $0.realm == realm }
            return isSameRealm ? rejected(.basic, credential) : choose(among: challenges)
        }
    }

    private mutating func parse(_ fields: [String]) -> Result<[Challenge], AuthenticationError> {
        holdsChallenge = true
        do throws(AuthenticationError) { return .success(try ChallengeParser.parse(fields: fields)) } catch {
            return .failure(error)
        }
    }

    private mutating func choose(among challenges: [Challenge]) -> Action {
        checks = ThreeChecks(site: context.site)
        let offers = SchemeChooser.rank(challenges, permitted: context.permitted)
        guard let strongest = offers.first else { return handBack(challenge: .no(nothingToAnswer(challenges))) }
        if let refusal = context.plaintextRefusal { return handBack(challenge: refusal) }
        return ask(strongest, weaker: Array(offers.dropFirst()), isLearned: false)
    }

    private func nothingToAnswer(_ challenges: [Challenge]) -> String {
        guard !challenges.isEmpty else { return "the 401 has no challenge" }
        let offered = challenges.prefix(5).map { challenge in
            let hasNoRealm = challenge.isOf(OfferKind.basic.schemeName) && challenge.realm == nil
            return challenge.scheme.prefix(32) + (hasNoRealm ? " without a realm" : "")
        }
        let answerable = OfferKind.allCases.map { $0.method.scheme }
        let permitted = context.permitted.filter { answerable.contains($0) }.map(\.rawValue)
        let permits = permitted.isEmpty ? "nothing to answer a 401 with" : permitted.joined(separator: ", ")
        return "origin offers \(offered.joined(separator: ", ")); the site's line permits \(permits)"
    }

    private mutating func ask(_ offer: Offer, weaker: [Offer], isLearned: Bool) -> Action {
        let how = isLearned ? "was accepted here before" : "is offered and permitted"
        checks.challenge = .yes("\(offer.kind.method.rawValue) \(how)")
        state = .asked(Question(offer: offer, weaker: weaker, isLearned: isLearned))
        return .ask(CredentialRequest(space: offer.space(at: context.origin), previousFailureCount: 0))
    }

    // MARK: From the answer to the verdict

    mutating func answered(_ question: Question, _ disposition: CredentialDecision) -> Action {
        switch disposition {
        case .useCredential(.password(let credential)):
            return answer(PendingAnswer(offer: question.offer, credential: credential, isLearned: question.isLearned))
        case .useCredential(.identity(let name)):
            return declined(question, reason: "identity \"\(name)\" answers TLS and not a 401")
        case .performDefaultHandling(let reason):
            return declined(question, reason: reason)
        case .rejectProtectionSpace(let reason):
            // The same space would get the same answer: raw NTLM and NTLM in Negotiate are one.
            let asked = question.offer.space(at: context.origin)
            let weaker = question.weaker.drop { $0.space(at: context.origin) == asked }
            guard let next = weaker.first else { return declined(question, reason: reason) }
            return ask(next, weaker: Array(weaker.dropFirst()), isLearned: question.isLearned)
        }
    }

    private mutating func declined(_ question: Question, reason: String) -> Action {
        question.isLearned ? sendAsItCame() : handBack(credential: .no(reason))
    }

    private mutating func answer(_ attempt: PendingAnswer) -> Action {
        checks.credential = .yes("credential \"\(attempt.credential.name)\"")
        guard attempt.offer.kind == .basic else { return openDialogue(attempt) }
        do throws(AuthenticationError) {
            let authorization = try BasicAuthorization.authorization(
                for: attempt.credential, domain: context.domain, challenge: attempt.offer.challenge)
            return sendAnswer(attempt, authorization, isOpening: false)
        } catch {
            return handBack(credential: .no(error.detail))
        }
    }

    mutating func openDialogue(_ attempt: PendingAnswer) -> Action {
        state = .computingOpening(attempt)
        return .computeToken(attempt.offer.kind, attempt.credential, serverToken: nil)
    }

    func authorization(_ attempt: PendingAnswer, _ token: [UInt8]) -> AuthorizationField {
        AuthorizationField(scheme: attempt.offer.kind.schemeName, credentials: token)
    }

    mutating func sendAnswer(_ attempt: PendingAnswer, _ authorization: AuthorizationField, isOpening: Bool) -> Action {
        guard roundsAnswered < Self.maximumRounds else {
            return giveUp(challenge: .no("more than \(Self.maximumRounds) rounds"))
        }
        roundsAnswered += 1
        if attempt.offer.kind.bindsConnection { requiresSameConnection = true }
        state = isOpening ? .awaitingToken(attempt) : .awaitingVerdict(attempt, authorization)
        return isOpening ? .sendOpening(authorization) : .send(authorization)
    }

    /// A 401 to the opening.
    mutating func tokenReceived(_ fields: [String], _ attempt: PendingAnswer) -> Action {
        switch parse(fields) {
        case .failure(let error):
            return handBack(challenge: .no("unparsable challenge: \(error.detail)"))
        case .success(let challenges):
            let ours = challenges.filter { $0.isOf(attempt.offer.kind.schemeName) }
            let tokens = ours.compactMap(\.token68)
            if ours.isEmpty, attempt.isLearned { return startAfresh(challenges) }
            guard let first = tokens.first else { return handBack(challenge: Self.notContinued) }
            guard tokens.count == 1 else {
                return handBack(challenge: .no("origin sent \(tokens.count) NTLM tokens at once"))
            }
            guard let token = Base64.decode(first) else { return handBack(challenge: .no("NTLM token is not Base64")) }
            state = .computingAnswer(attempt)
            return .computeToken(attempt.offer.kind, attempt.credential, serverToken: token)
        }
    }

    /// The origin no longer speaks of what had been learned.
    private mutating func startAfresh(_ challenges: [Challenge]) -> Action {
        requiresSameConnection = false
        return choose(among: challenges)
    }

    /// Anything but a 401 to the opening: the path asks for nothing, or the connection has been authenticated before.
    mutating func openingUnchallenged() -> Action {
        guard context.hasBody else { return finish(.notChallenged) }
        holdsChallenge = false
        state = .awaitingOpen
        return .send(nil)
    }

    mutating func accepted(_ kind: OfferKind, _ credential: CredentialReference, realm: String?, status: Int) -> Action
    {
        // A proxy beyond the origin asks for itself: nothing was said of our answer.
        guard status != 407 else { return finish(.notChallenged) }
        return finish(.accepted(kind, credential: credential, realm: realm))
    }

    mutating func rejected(_ kind: OfferKind, _ credential: CredentialReference) -> Action {
        holdsChallenge = true
        checks.credential = .no("credential \"\(credential.name)\" was rejected by the origin")
        return finish(.rejected(kind, credential: credential, checks))
    }

    // MARK: Ends

    /// Once, on a new connection. Without `sending`, or where the dialogue binds its connection, from the opening.
    mutating func restart(_ attempt: PendingAnswer, sending authorization: AuthorizationField? = nil) -> Action {
        holdsChallenge = false
        requiresSameConnection = false
        guard !hasRestarted else { return fail("the origin closed the connection twice before a response") }
        hasRestarted = true
        guard let authorization, !attempt.offer.kind.bindsConnection else { return openDialogue(attempt) }
        return sendAnswer(attempt, authorization, isOpening: false)
    }

    mutating func handBack(challenge: ThreeChecks.Check? = nil, credential: ThreeChecks.Check? = nil) -> Action {
        if let challenge {
            checks.challenge = challenge
            checks.credential = nil
        }
        if let credential { checks.credential = credential }
        return finish(.handedBack(checks))
    }

    /// Hands back the 401 in hand; without one there is nothing to deliver.
    mutating func giveUp(challenge: ThreeChecks.Check? = nil, credential: ThreeChecks.Check? = nil) -> Action {
        guard holdsChallenge else { return fail(challenge?.reason ?? credential?.reason ?? "not answered") }
        return handBack(challenge: challenge, credential: credential)
    }

    mutating func fail(_ reason: String) -> Action {
        state = .finished
        return .fail(reason: reason)
    }

    mutating func finish(_ outcome: Outcome) -> Action {
        state = .finished
        return .deliver(outcome)
    }
}
