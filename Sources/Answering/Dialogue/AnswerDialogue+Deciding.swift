// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges

/// From a challenge to the permitted credential, and the tokens of a scheme.
extension AnswerDialogue {
    /// Performs the third check and requests the breaker's permission. `hasLooked`: whether there is another proof is
    /// known.
    mutating func decide(
        _ challenge: CredentialRequest, hasLooked: Bool = false, for request: some AnsweredRequest
    ) -> Action {
        if let obstacle = request.trustObstacle { return handBack(because: obstacle, for: request) }
        let scheme = challenge.offer.authenticator
        let decision = scheme.proof(for: challenge, from: RequestProofs(request: request, held: held))
        guard case .useCredential(let credential) = decision, let reference = credential.reference else {
            return decided(decision, for: request)
        }
        if let obstacle = request.clientObstacle { return handBack(because: obstacle, for: request) }
        guard let key = scheme.permitKey(of: reference, in: challenge.space) else {
            return decided(decision, for: request)
        }
        if let later = renewsExpired(reference, for: challenge, request) { return later }
        let turn = Turn()
        switch permission(for: key, challenge, turn, request) {
        case .wait:
            return wait(.turn, for: .decision(challenge, hasLooked: hasLooked)) { done in
                turn.whenCome { done(.over) }
            }
        case .refused(let reason):
            if let look = scheme.secondLook(for: reference) {
                guard !hasLooked else { return handBack(because: look.unchanged, for: request) }
                return wait(.look, for: .decision(challenge, hasLooked: true)) { done in look.start { done(.over) } }
            }
            return renewsRefused(reference, for: challenge, reason, request)
                ?? asks(insteadOf: credential, for: challenge, reason, request)
                ?? handBack(because: reason, for: request)
        case .unsuitable(let reason):
            return handBack(because: reason, for: request)
        case .permitted(let attempt):
            if held?.permit?.key != key {
                hold().permit = BreakerAttempt(
                    key.used(by: attempt), for: request.tag, permittedBy: request.answerServices.breaker)
            }
            request.uses(reference)
            return decided(decision, for: request)
        }
    }

    /// The breaker's permission to use `key`, which the exchange may have already.
    private mutating func permission(
        for key: Breaker.Key, _ challenge: CredentialRequest, _ turn: Turn, _ request: some AnsweredRequest
    ) -> Breaker.Permission {
        if held?.permit?.key == key { return .go }
        end(.inconclusive)
        return request.answerServices.breaker.request(key, for: request.tag, inAnswerTo: challenge.offered) {
            turn.come()
        }
    }

    mutating func handBack(because reason: Refusal, for request: some AnsweredRequest) -> Action {
        decided(.performDefaultHandling(reason: reason), for: request)
    }

    private mutating func decided(_ decision: CredentialDecision, for request: some AnsweredRequest) -> Action {
        perform(machine.decisionReceived(decision), for: request)
    }

    // MARK: Tokens

    /// Takes a step of the scheme's dialogue.
    mutating func take(_ step: TokenStep, for request: some AnsweredRequest) -> Action {
        switch held?.tokens?.take(step, binding: request.channelBinding, request.answerInputs) {
        case .computed(let token):
            return perform(machine.tokenComputed(token), for: request)
        case .failed(let error):
            return tokenFailed(error, for: request)
        case .elsewhere(let start):
            return wait(.token, for: .token) { done in start { done(.token($0)) } }
        case nil:
            let error = AuthenticationError(.tokenFailed, "a token came before the dialogue began")
            return perform(machine.tokenFailed(error), for: request)
        }
    }

    mutating func tokenFailed(_ error: AuthenticationError, for request: some AnsweredRequest) -> Action {
        held?.tokens = nil
        request.tokenFailed()
        // The previously accepted answer is useless without a token, and would hide challenges that can be answered.
        if machine.roundsAnswered == 0, machine.context.accepted != nil { request.forgetAccepted() }
        return perform(machine.tokenFailed(error), for: request)
    }
}
