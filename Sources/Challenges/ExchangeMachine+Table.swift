// SPDX-License-Identifier: Apache-2.0

// One function per event, which names every state, so that a new state or event does not compile until every pair is
// decided. If the driver ended the exchange (because the request's content was no longer available), the event of its
// last action returns `wait`.
extension ExchangeMachine {
    mutating func decideStarted() -> Action? {
        switch state {
        case .ready:
            return start()
        case .untouched, .awaitingChallenge, .awaitingReuse, .asked, .computingOpening, .awaitingToken,
            .computingReply, .abandoningReply, .awaitingVerdict, .verifyingAcceptance, .awaitingOpen, .finished:
            return nil
        }
    }

    func decideInterim() -> Action? {
        switch state {
        case .untouched, .awaitingChallenge, .awaitingReuse, .awaitingToken, .awaitingVerdict, .awaitingOpen:
            return .wait
        case .ready, .asked, .computingOpening, .computingReply, .abandoningReply, .verifyingAcceptance, .finished:
            return nil
        }
    }

    /// A response with a challenge.
    mutating func decideChallenge(_ fields: [ChallengeField], _ status: Int) -> Action? {
        switch state {
        case .untouched:
            return handedBack(fields)
        case .awaitingChallenge:
            return challenged(fields, status)
        case .awaitingReuse(let accepted):
            return challengedAgain(fields, accepted)
        case .awaitingToken(let pending, let answer):
            return challengedAgain(fields, pending, answer, expectsToken: true)
        case .awaitingVerdict(let pending, let answer):
            return challengedAgain(fields, pending, answer, expectsToken: false)
        case .awaitingOpen(let offer):
            return handedBack(fields, credential: notContinued(offer))
        case .ready, .asked, .computingOpening, .computingReply, .abandoningReply, .verifyingAcceptance, .finished:
            return nil
        }
    }

    /// Any other final response.
    mutating func decideResponse(_ status: Int, _ fields: [ChallengeField], _ information: [String]) -> Action? {
        switch state {
        case .untouched, .awaitingChallenge, .awaitingOpen:
            return finish(.notChallenged)
        case .awaitingReuse(let accepted):
            return reused(accepted, status, fields, information)
        case .awaitingToken(let pending, _):
            return openingUnchallenged(pending.offer)
        case .awaitingVerdict(let pending, let answer):
            return accepted(pending, answer, status, fields, information)
        case .ready, .asked, .computingOpening, .computingReply, .abandoningReply, .verifyingAcceptance, .finished:
            return nil
        }
    }

    mutating func decideDecision(_ decision: CredentialDecision) -> Action? {
        switch state {
        case .asked(let pending):
            return decided(pending, decision)
        case .finished:
            return .wait
        case .ready, .untouched, .awaitingChallenge, .awaitingReuse, .computingOpening, .awaitingToken,
            .computingReply, .abandoningReply, .awaitingVerdict, .verifyingAcceptance, .awaitingOpen:
            return nil
        }
    }

    mutating func decideToken(_ token: DialogueToken) -> Action? {
        switch state {
        case .computingOpening(let pending), .computingReply(let pending):
            return sendToken(pending, token)
        case .abandoningReply(let pending):
            return openDialogue(pending)
        case .verifyingAcceptance(let pending, let answer):
            unprovedReason = token.unprovedReason.map(unproved)
            return finish(accepting: pending, answer)
        case .finished:
            return .wait
        case .ready, .untouched, .awaitingChallenge, .awaitingReuse, .asked, .awaitingToken, .awaitingVerdict,
            .awaitingOpen:
            return nil
        }
    }

    mutating func decideTokenFailure(_ reason: Refusal, isUnavailable: Bool) -> Action? {
        switch state {
        case .computingOpening(let pending) where pending.isPreemptive && roundsAnswered == 0:
            failedSpace = pending.offer.space(at: context.origin)
            failureBarsWeaker = !isUnavailable
            localFailures.append(reason)
            return sendUnanswered()
        case .computingOpening(let pending) where roundsAnswered == 0 && isUnavailable:
            return useWeaker(pending, reason)
        case .computingOpening, .computingReply, .abandoningReply:
            return giveUp(credential: .no(reason))
        case .verifyingAcceptance:
            return forged(reason.text)
        case .finished:
            return .wait
        case .ready, .untouched, .awaitingChallenge, .awaitingReuse, .asked, .awaitingToken, .awaitingVerdict,
            .awaitingOpen:
            return nil
        }
    }

    mutating func decideConnectionLoss(mayRepeat: Bool) -> Action? {
        switch state {
        case .untouched, .awaitingChallenge, .awaitingReuse:
            return lost()
        case .awaitingOpen:
            return mayRepeat && requiresSameConnection ? resend() : lost()
        case .awaitingToken(let pending, _):
            return restart(pending)
        case .awaitingVerdict(let pending, let answer):
            return mayRepeat ? restart(pending, sending: answer) : lost()
        case .computingReply(let pending):
            return abandon(pending)
        case .asked, .computingOpening, .abandoningReply, .verifyingAcceptance, .finished:
            return .wait
        case .ready:
            return nil
        }
    }

    mutating func decideReplayImpossible(_ reason: Refusal) -> Action? {
        switch state {
        case .asked, .computingOpening, .awaitingToken, .computingReply, .abandoningReply, .awaitingVerdict:
            return giveUp(challenge: .no(reason))
        case .awaitingReuse where hasRenewed:
            return giveUp(challenge: .no(reason))
        case .awaitingChallenge where holdsChallenge:
            return handBack(challenge: .no(reason))
        case .awaitingOpen:
            return fail(.connectionLost, reason.text)
        case .ready, .untouched, .awaitingChallenge, .awaitingReuse, .verifyingAcceptance, .finished:
            return nil
        }
    }
}
