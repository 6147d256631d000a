// SPDX-License-Identifier: Apache-2.0

// One function for each event; each names every state. An answer that comes after the end, as the driver gave up over the
// body meanwhile, is not wanted any more: `wait`.
extension ExchangeMachine {
    mutating func decideStarted() -> Action? {
        switch state {
        case .ready:
            return start()
        case .untouched, .awaitingChallenge, .awaitingLearned, .asked, .computingOpening, .awaitingToken,
            .computingAnswer, .abandoningAnswer, .awaitingVerdict, .awaitingOpen, .finished:
            return nil
        }
    }

    func decideInterim() -> Action? {
        switch state {
        case .untouched, .awaitingChallenge, .awaitingLearned, .awaitingToken, .awaitingVerdict, .awaitingOpen:
            return .wait
        case .ready, .asked, .computingOpening, .computingAnswer, .abandoningAnswer, .finished:
            return nil
        }
    }

    /// `fields` are the challenges of a 401, nil for any other status.
    mutating func decideResponse(_ fields: [String]?, status: Int) -> Action? {
        switch state {
        case .untouched:
            holdsChallenge = fields != nil
            return fields == nil ? finish(.notChallenged) : handBack()
        case .awaitingChallenge:
            guard let fields else { return finish(.notChallenged) }
            return challenged(fields)
        case .awaitingLearned(let realm, let credential):
            guard let fields else { return accepted(.basic, credential, realm: realm, status: status) }
            return challengedAgain(fields, realm: realm, credential: credential)
        case .awaitingToken(let attempt):
            guard let fields else { return openingUnchallenged() }
            return tokenReceived(fields, attempt)
        case .awaitingVerdict(let attempt, _):
            let credential = attempt.credential.reference
            guard fields == nil else { return rejected(attempt.offer.kind, credential) }
            let realm = attempt.offer.kind == .basic ? attempt.offer.challenge.realm : nil
            return accepted(attempt.offer.kind, credential, realm: realm, status: status)
        case .awaitingOpen:
            holdsChallenge = fields != nil
            return fields == nil ? finish(.notChallenged) : handBack(challenge: Self.notContinued)
        case .ready, .asked, .computingOpening, .computingAnswer, .abandoningAnswer, .finished:
            return nil
        }
    }

    mutating func decideDecision(_ disposition: CredentialDecision) -> Action? {
        switch state {
        case .asked(let question):
            return answered(question, disposition)
        case .finished:
            return .wait
        case .ready, .untouched, .awaitingChallenge, .awaitingLearned, .computingOpening, .awaitingToken,
            .computingAnswer, .abandoningAnswer, .awaitingVerdict, .awaitingOpen:
            return nil
        }
    }

    mutating func decideToken(_ token: [UInt8]) -> Action? {
        switch state {
        case .computingOpening(let attempt):
            return sendAnswer(attempt, authorization(attempt, token), isOpening: true)
        case .computingAnswer(let attempt):
            return sendAnswer(attempt, authorization(attempt, token), isOpening: false)
        case .abandoningAnswer(let attempt):
            return openDialogue(attempt)
        case .finished:
            return .wait
        case .ready, .untouched, .awaitingChallenge, .awaitingLearned, .asked, .awaitingToken, .awaitingVerdict,
            .awaitingOpen:
            return nil
        }
    }

    mutating func decideTokenFailure(_ reason: String) -> Action? {
        switch state {
        case .computingOpening(let attempt) where attempt.isLearned && roundsAnswered == 0:
            return sendAsItCame()
        case .computingOpening, .computingAnswer, .abandoningAnswer:
            return giveUp(credential: .no(reason))
        case .finished:
            return .wait
        case .ready, .untouched, .awaitingChallenge, .awaitingLearned, .asked, .awaitingToken, .awaitingVerdict,
            .awaitingOpen:
            return nil
        }
    }

    mutating func decideConnectionLoss(mayRepeat: Bool) -> Action? {
        switch state {
        case .untouched, .awaitingChallenge, .awaitingLearned, .awaitingOpen:
            return fail("the origin closed the connection before a response")
        case .awaitingToken(let attempt):
            return restart(attempt)
        case .awaitingVerdict(let attempt, let authorization):
            guard mayRepeat else { return fail("the origin closed the connection before a response") }
            return restart(attempt, sending: authorization)
        case .computingAnswer(let attempt):
            guard !hasRestarted else { return giveUp(challenge: .no("the origin closed the connection twice")) }
            hasRestarted = true
            requiresSameConnection = false
            state = .abandoningAnswer(attempt)
            return .wait
        case .asked, .computingOpening, .abandoningAnswer, .finished:
            return .wait
        case .ready:
            return nil
        }
    }

    mutating func decideReplayImpossible(_ reason: String) -> Action? {
        switch state {
        case .asked, .computingOpening, .awaitingToken, .computingAnswer, .abandoningAnswer, .awaitingVerdict:
            return giveUp(challenge: .no(reason))
        case .awaitingOpen:
            return fail(reason)
        case .ready, .untouched, .awaitingChallenge, .awaitingLearned, .finished:
            return nil
        }
    }
}
