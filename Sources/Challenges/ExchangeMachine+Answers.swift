// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

extension ExchangeMachine {
    // MARK: From the challenge to the credential request

    /// Handles the first challenge.
    mutating func challenged(_ fields: [ChallengeField], _ status: Int) -> Action {
        do throws(AuthenticationError) {
            return choose(among: try parse(fields), status)
        } catch {
            return handBack(unparsable: error)
        }
    }

    mutating func parse(_ fields: [ChallengeField]) throws(AuthenticationError) -> [Challenge] {
        holdsChallenge = true
        challenges = []
        challenges = try ChallengeParser.parse(fields: fields)
        return challenges
    }

    /// With a `status` that is not the source's, only schemes that challenge with it are answered. `refused` is the
    /// answer to which the server replied with these challenges.
    mutating func choose(
        among challenges: [Challenge], _ status: Int, after refused: AcceptedAnswer? = nil
    ) -> Action {
        checks = ThreeChecks(site: context.site)
        var offers = context.authenticators.offers(in: challenges, permitted: context.permitted)
        if status != context.source.status { offers.removeAll { !$0.authenticator.alsoChallenges(withStatus: status) } }
        guard !offers.isEmpty else { return handBack(challenge: .no(nothingToAnswer(challenges))) }
        if let refusal = context.plaintextRefusal { return handBack(challenge: refusal) }
        let refusals = offers.map { context.transportRefusal(of: $0.authenticator) }
        let usable = context.withoutFallback(zip(offers, refusals).filter { $1 == nil }.map(\.0), in: challenges)
        guard let first = usable.first else {
            let refusal = refusals.lazy.compactMap(\.self).first
            return handBack(challenge: refusal ?? .no("a stronger challenge has a fault, and http is not secure"))
        }
        let untried = usable.drop { $0.space(at: context.origin) == failedSpace }
        let hasFailed = untried.count < usable.count
        // The schemes that failed before may not be offered by this challenge.
        if !hasFailed { localFailures = [] }
        guard let strongest = untried.first, !(hasFailed && failureBarsWeaker) else {
            checks.challenge = isOffered(first)
            return handBack(credential: .no(.joined(localFailures)))
        }
        return ask(strongest, weaker: Array(untried.dropFirst()), isPreemptive: false, after: refused)
    }

    private func nothingToAnswer(_ challenges: [Challenge]) -> Refusal {
        let table = context.authenticators
        guard !challenges.isEmpty else { return "the \(context.source.status) has no challenge" }
        let offered = challenges.prefix(5).map { challenge in
            challenge.scheme.prefix(32) + (table.shortcoming(of: challenge).map { " \($0)" } ?? "")
        }
        let names = offered.joined(separator: ", ")
        guard challenges.contains(where: table.canAnswer) else {
            return "\(context.source.name) offers \(names), which this version cannot answer"
        }
        let answerable = table.schemes
        let permitted = context.permitted.filter { answerable.contains($0) }.map(\.rawValue)
        let permits =
            permitted.isEmpty
            ? "nothing to answer a \(context.source.status) with" : permitted.joined(separator: ", ")
        return Refusal(
            .notPermitted(table.schemes(answering: challenges)),
            "\(context.source.name) offers \(names); the site's line permits \(permits)")
    }

    private func isOffered(_ offer: Offer) -> ThreeChecks.Check {
        .yes("\(offer.authenticator.scheme.rawValue) is offered and permitted")
    }

    mutating func ask(
        _ offer: Offer, weaker: [Offer], isPreemptive: Bool, after refused: AcceptedAnswer? = nil
    ) -> Action {
        checks.challenge =
            isPreemptive ? .yes("\(offer.authenticator.scheme.rawValue) was accepted here before") : isOffered(offer)
        state = .asked(PendingDecision(offer: offer, weaker: weaker, isPreemptive: isPreemptive, refused: refused))
        return .ask(
            CredentialRequest(
                offer, at: context.origin, previousFailureCount: 0, after: refused,
                offered: isPreemptive
                    ? nil : context.authenticators.offered(in: challenges, permitted: context.permitted)))
    }

    // MARK: From the decision to the answer

    mutating func decided(_ pending: PendingDecision, _ decision: CredentialDecision) -> Action {
        switch decision {
        case .useCredential(let credential):
            if case .identity(let name) = credential {
                return declined(pending, reason: "identity \"\(name)\" answers TLS and not a \(context.source.status)")
            }
            guard let reference = credential.reference else {
                return declined(pending, reason: Refusal(.noCredential, "no credential"))
            }
            return answer(
                PendingAnswer(
                    offer: pending.offer, weaker: pending.weaker, credential: credential, reference: reference,
                    isPreemptive: pending.isPreemptive, refused: pending.refused))
        case .performDefaultHandling(let reason):
            return declined(pending, reason: reason)
        case .rejectProtectionSpace(let reason):
            // Raw NTLM and NTLM in Negotiate open the same space, so the decision would be the same.
            let asked = pending.offer.space(at: context.origin)
            let weaker = pending.weaker.drop { $0.space(at: context.origin) == asked }
            guard let next = weaker.first else { return declined(pending, reason: reason) }
            return ask(
                next, weaker: Array(weaker.dropFirst()), isPreemptive: pending.isPreemptive, after: pending.refused)
        }
    }

    private mutating func declined(_ pending: PendingDecision, reason: Refusal) -> Action {
        pending.isPreemptive ? sendUnanswered() : handBack(credential: .no(withLocalFailures(reason)))
    }

    /// There is nothing to answer with, and nothing has been sent: a weaker offer may be answered.
    mutating func useWeaker(_ pending: PendingAnswer, _ reason: Refusal) -> Action {
        let failed = pending.offer
        let space = failed.space(at: context.origin)
        let weaker = pending.weaker.drop {
            $0.space(at: context.origin) == space && failed.authenticator.usesSameCredential(as: $0.authenticator)
        }
        guard let next = weaker.first else { return giveUp(credential: .no(withLocalFailures(reason))) }
        localFailures.append(reason)
        return ask(next, weaker: Array(weaker.dropFirst()), isPreemptive: false, after: pending.refused)
    }

    private func withLocalFailures(_ reason: Refusal) -> Refusal {
        localFailures.isEmpty ? reason : .joined(localFailures + [reason])
    }

    private mutating func answer(_ pending: PendingAnswer) -> Action {
        checks.credential = .yes("credential \"\(pending.reference.name)\"")
        if let answer = pending.continuedAnswer { return send(pending, answer) }
        do throws(AuthenticationError) {
            let reply = try pending.offer.authenticator.reply(
                to: pending.offer.challenge, with: pending.credential, context)
            switch reply {
            case .answer(let answer):
                // The server has refused the same octets already.
                if let refused = pending.refused, refused.preemption == .answer(answer) {
                    return rejected(pending.offer.space(at: context.origin), pending.reference)
                }
                return send(pending, answer)
            case .dialogue: return openDialogue(pending)
            }
        } catch {
            guard roundsAnswered == 0 else { return handBack(credential: .no(error.refusal)) }
            return pending.isPreemptive ? sendUnanswered() : useWeaker(pending, error.refusal)
        }
    }

    mutating func openDialogue(_ pending: PendingAnswer) -> Action {
        state = .computingOpening(pending)
        return .computeToken(TokenRequest(pending.offer, pending.credential, .open))
    }

    mutating func sendToken(_ pending: PendingAnswer, _ token: DialogueToken) -> Action {
        let field = AuthorizationField(scheme: pending.offer.authenticator.schemeName, credentials: token.bytes)
        return send(pending, .fixed(field), expectsReply: token.expectsReply)
    }

    mutating func send(_ pending: PendingAnswer, _ answer: Answer, expectsReply: Bool = false) -> Action {
        if let end = countRound() { return end }
        if pending.offer.authenticator.bindsConnection { requiresSameConnection = true }
        state = expectsReply ? .awaitingToken(pending, answer) : .awaitingVerdict(pending, answer)
        return expectsReply ? .sendOpening(answer) : .send(answer)
    }

    /// Counts a send that carries our answer. If the limit is exceeded, returns the action that ends the exchange.
    mutating func countRound() -> Action? {
        guard roundsAnswered < Self.maximumRounds else {
            return giveUp(challenge: .no("more than \(Self.maximumRounds) rounds"))
        }
        roundsAnswered += 1
        return nil
    }

    // MARK: A challenge to our answer

    /// Handles a challenge to an answer that was computed in this exchange.
    mutating func challengedAgain(
        _ fields: [ChallengeField], _ pending: PendingAnswer, _ answer: Answer, expectsToken: Bool
    ) -> Action {
        let offer = pending.offer
        // A challenge that made way for a restart counts as none.
        let isFirst = pending.isPreemptive && !holdsChallenge
        var challenges: [Challenge] = []
        do throws(AuthenticationError) {
            challenges = try parse(fields)
        } catch {
            guard expectsToken else { return rejected(offer.space(at: context.origin), pending.reference) }
            return handBack(unparsable: error)
        }
        if isFirst, !challenges.contains(where: { $0.isOf(offer.authenticator.schemeName) }) {
            // The server no longer offers the scheme that it accepted before, or not for this path.
            requiresSameConnection = false
            return challengedInstead(of: offer, by: challenges)
        }
        switch verdict(on: challenges, offer, answer, expectsToken: expectsToken) {
        case .rejected:
            return rejected(offer.space(at: context.origin), pending.reference)
        case .invalid:
            return invalid(offer.space(at: context.origin), pending.reference)
        case .insufficient(let reason):
            return handBack(credential: .no(reason))
        case .stale(let renewed):
            guard !hasRenewed else { return handBack(challenge: staleAgain) }
            hasRenewed = true
            return send(pending, renewed)
        case .asksAnew:
            guard !hasRenewed else { return handBack(challenge: staleAgain) }
            hasRenewed = true
            return answerAnew(pending, challenges)
        case .nextToken(let token):
            state = .computingReply(pending)
            return .computeToken(TokenRequest(offer, pending.credential, .reply(to: token)))
        case .handBack(let reason):
            return handBack(challenge: .no(reason))
        }
    }

    func verdict(
        on challenges: [Challenge], _ offer: Offer, _ answer: Answer, expectsToken: Bool, isUnasked: Bool = false
    ) -> ChallengeVerdict {
        offer.authenticator.verdict(
            on: RepeatedChallenge(
                challenges: challenges, answered: offer.challenge, answer: answer, sent: sentField,
                expectsToken: expectsToken, isUnasked: isUnasked, source: context.source))
    }

    /// Answers the strongest of `challenges` that is for the same space, with the same credential.
    private mutating func answerAnew(_ pending: PendingAnswer, _ challenges: [Challenge]) -> Action {
        let space = pending.offer.space(at: context.origin)
        let offers = context.authenticators.offers(in: challenges, permitted: context.permitted)
        guard let offer = offers.first(where: { $0.space(at: context.origin) == space }) else {
            return handBack(challenge: .no(nothingToAnswer(challenges)))
        }
        let pending = PendingAnswer(
            offer: offer, weaker: [], credential: pending.credential, reference: pending.reference,
            isPreemptive: false)
        return answer(pending)
    }

    var staleAgain: ThreeChecks.Check { .no("\(context.source.name) called a new answer stale") }

    func notContinued(_ offer: Offer) -> ThreeChecks.Check {
        .no(context.source.notContinued(offer.authenticator.name))
    }

    mutating func rejected(_ space: AuthenticationSpace, _ credential: CredentialReference) -> Action {
        holdsChallenge = true
        checks.credential = .no(.rejected(credential.name, by: context.source))
        return finish(.rejected(space, credential: credential, checks))
    }

    mutating func invalid(_ space: AuthenticationSpace, _ credential: CredentialReference) -> Action {
        hasInvalidCredential = true
        return rejected(space, credential)
    }

    // MARK: Acceptance

    /// Whether the fields of a response that accepts our answer may have to be examined.
    func mayVerifyAcceptance(ofStatus status: Int) -> Bool {
        switch state {
        case .awaitingReuse(let accepted):
            accepted.offer.authenticator.verifiesAcceptance(ofStatus: status, hasInformation: true)
        case .awaitingVerdict(let pending, _):
            pending.offer.authenticator.verifiesAcceptance(ofStatus: status, hasInformation: true)
        case .ready, .untouched, .awaitingChallenge, .asked, .computingOpening, .awaitingToken, .computingReply,
            .abandoningReply, .verifyingAcceptance, .awaitingOpen, .finished:
            false
        }
    }

    /// Handles a response that is not a challenge, to an answer that was computed in this exchange.
    mutating func accepted(
        _ pending: PendingAnswer, _ answer: Answer, _ status: Int, _ fields: [ChallengeField], _ information: [String]
    ) -> Action {
        // A proxy in front of the origin has challenged, and our answer did not reach the origin.
        guard context.source.hasSeenAnswer(status: status) else { return finish(.notChallenged) }
        guard pending.offer.authenticator.verifiesAcceptance(ofStatus: status, hasInformation: !information.isEmpty)
        else { return finish(accepting: pending, answer) }
        switch acceptance(pending.offer, answer, fields, information) {
        case .accepted:
            return finish(accepting: pending, answer)
        case .unproved(let reason):
            unprovedReason = unproved(reason)
            return finish(accepting: pending, answer)
        case .finalToken(let token):
            state = .verifyingAcceptance(pending, answer)
            return .computeToken(TokenRequest(pending.offer, pending.credential, .conclude(token)))
        case .forged(let reason):
            return forged(reason)
        case .invalid:
            return invalid(pending.offer.space(at: context.origin), pending.reference)
        case .insufficient(let reason):
            return handBack(credential: .no(reason))
        case .handBack(let reason):
            return handBack(challenge: .no(reason))
        }
    }

    func acceptance(
        _ offer: Offer, _ answer: Answer, _ fields: [ChallengeField], _ information: [String]
    ) -> AcceptanceVerdict {
        offer.authenticator.acceptance(
            AcceptingResponse(
                challenge: offer.challenge, answer: answer, sent: sentField, challengeFields: fields,
                informationFields: information, source: context.source))
    }

    func unproved(_ reason: String) -> String {
        "the \(context.source.name) did not prove that it knows the secret, too: \(reason)"
    }

    mutating func finish(accepting pending: PendingAnswer, _ answer: Answer) -> Action {
        finish(
            .accepted(
                AcceptedAnswer(
                    pending.offer, at: context.origin, credential: pending.reference,
                    preemption: preemption(after: answer, pending))))
    }

    /// Handles a response to an opening that is not a challenge: the path requires no authentication, or the connection
    /// is authenticated already.
    mutating func openingUnchallenged(_ offer: Offer) -> Action {
        guard context.hasBody else { return finish(.notChallenged) }
        holdsChallenge = false
        state = .awaitingOpen(offer)
        return .send(nil)
    }
}
