// SPDX-License-Identifier: Apache-2.0

// Answers that are sent before a challenge, because one was accepted here before.
extension ExchangeMachine {
    mutating func start() -> Action {
        guard !context.isRefused else {
            state = .untouched
            return .send(nil)
        }
        guard let accepted = context.usableAnswer else { return sendUnanswered() }
        switch accepted.preemption {
        case .dialogue where context.hasBody:
            return sendUnanswered()
        case .answer(let answer):
            checks.challenge = .yes("\(accepted.space.scheme.rawValue) was accepted here before")
            checks.credential = .yes("credential \"\(accepted.credential.name)\"")
            roundsAnswered += 1
            state = .awaitingReuse(accepted)
            return .send(answer)
        case .dialogue, .token:
            return ask(accepted.offer, weaker: [], isPreemptive: true)
        case .none:
            return sendUnanswered()
        }
    }

    /// Sends the request as the client sent it, as if no answer had been accepted before. A challenge may be held whose
    /// response has to make way for it.
    mutating func sendUnanswered() -> Action {
        requiresSameConnection = false
        checks = ThreeChecks(site: context.site)
        state = .awaitingChallenge
        return .send(nil)
    }

    // MARK: A challenge to such an answer

    /// Handles a challenge to a request that carried a previously accepted answer.
    mutating func challengedAgain(_ fields: [ChallengeField], _ accepted: AcceptedAnswer) -> Action {
        guard case .answer(let answer) = accepted.preemption else {
            return challenged(fields, context.source.status)
        }
        do throws(AuthenticationError) {
            let challenges = try parse(fields)
            let offer = accepted.offer
            // Another realm or scheme asks for credentials of its own, so this is its first challenge.
            guard offer.authenticator.isAsked(again: offer.challenge, by: challenges) else {
                let isAskedClearly = challenges.contains { $0.isOf(offer.authenticator.schemeName) && !$0.isCut }
                if !isAskedClearly, fields.contains(where: { ChallengeParser.read($0).fault != nil }) {
                    // An unreadable challenge may be about the answer.
                    return rejected(accepted.space, accepted.credential)
                }
                return challengedInstead(of: offer, by: challenges)
            }
            // The renewed answer is one to the previous challenge.
            switch verdict(on: challenges, offer, answer, expectsToken: false, isUnasked: !hasRenewed) {
            case .rejected, .nextToken: return rejected(accepted.space, accepted.credential)
            case .invalid: return invalid(accepted.space, accepted.credential)
            case .insufficient(let reason): return handBack(credential: .no(reason))
            case .handBack(let reason): return handBack(challenge: .no(reason))
            case .stale(let renewed): return reuse(accepted, renewed)
            case .asksAnew(let isStale):
                if isStale { hasRenewed = true }
                return choose(among: challenges, context.source.status, after: isStale ? nil : accepted)
            }
        } catch {
            // The challenge cannot be parsed, but the server has certainly not accepted the answer.
            return rejected(accepted.space, accepted.credential)
        }
    }

    /// Handles challenges that are not about the answer to `offer`, which was sent before any challenge. They may be
    /// the server's reply to that answer. So if one is weaker, none is answered: the request is sent once more as the
    /// client sent it, and the server's challenge to that is its first.
    mutating func challengedInstead(of offer: Offer, by challenges: [Challenge]) -> Action {
        let table = context.authenticators
        let offers = table.offers(in: challenges, permitted: context.permitted)
        let hasWeaker = offers.contains { table.isWeaker($0.authenticator, than: offer.authenticator) }
        return hasWeaker ? sendUnanswered() : choose(among: challenges, context.source.status)
    }

    /// Sends the renewed answer in place of one that was accepted before.
    private mutating func reuse(_ accepted: AcceptedAnswer, _ renewed: Answer) -> Action {
        guard !hasRenewed else { return handBack(challenge: staleAgain) }
        hasRenewed = true
        if let end = countRound() { return end }
        state = .awaitingReuse(
            AcceptedAnswer(
                accepted.offer, at: context.origin, credential: accepted.credential, preemption: .answer(renewed)))
        return .send(renewed)
    }

    // MARK: Acceptance

    /// Handles a response to a previously accepted answer that is not a challenge.
    mutating func reused(
        _ accepted: AcceptedAnswer, _ status: Int, _ fields: [ChallengeField], _ information: [String]
    ) -> Action {
        guard context.source.hasSeenAnswer(status: status) else { return finish(.notChallenged) }
        if case .answer(.perRequest(let signer)) = accepted.preemption { signer.served() }
        guard accepted.offer.authenticator.verifiesAcceptance(ofStatus: status, hasInformation: !information.isEmpty),
            case .answer(let answer) = accepted.preemption
        else {
            return finish(.accepted(accepted))
        }
        switch acceptance(accepted.offer, answer, fields, information) {
        case .accepted: return finish(.accepted(accepted))
        case .unproved(let reason):
            unprovedReason = unproved(reason)
            return finish(.accepted(accepted))
        case .finalToken: return forged("no dialogue expects one")
        case .forged(let reason): return forged(reason)
        case .invalid: return invalid(accepted.space, accepted.credential)
        case .insufficient(let reason): return handBack(credential: .no(reason))
        case .handBack(let reason): return handBack(challenge: .no(reason))
        }
    }

    // MARK: The next answer before a challenge

    /// The answer that may be sent before a challenge once `answer` was accepted. A server that refused the first
    /// answer sent before a challenge wants to challenge every request. So no answer is sent before a challenge until
    /// the server itself announces the nonce that it will accept next (`nextnonce`, RFC 7616 §3.5).
    func preemption(after answer: Answer, _ pending: PendingAnswer) -> Preemption {
        let preemption = pending.offer.authenticator.preemption(after: answer)
        guard case .answer(.perRequest(let signer)) = preemption, !signer.isRenewed else { return preemption }
        return refusesWhatIsUnasked(pending) ? .none : preemption
    }

    private func refusesWhatIsUnasked(_ pending: PendingAnswer) -> Bool {
        if case .answer(.perRequest(let signer))? = pending.refused?.preemption { return !signer.hasServed }
        guard let accepted = context.accepted, accepted.preemption == .none else { return false }
        return accepted.space == pending.offer.space(at: context.origin)
    }
}

extension ExchangeMachine.PendingAnswer {
    /// The answer that was sent before the challenge, if it answers the challenge as well: its next field differs, as
    /// it has another count.
    var continuedAnswer: Answer? {
        guard let refused, refused.credential == reference, refused.offer.authenticator === offer.authenticator,
            case .answer(let answer) = refused.preemption, case .perRequest(let signer) = answer,
            signer.answers(offer.challenge)
        else { return nil }
        return answer
    }
}
