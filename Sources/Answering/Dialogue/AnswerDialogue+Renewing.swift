// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges

/// Access tokens that have expired or are invalid, and passwords that are replaced.
extension AnswerDialogue {
    /// An answer that the server has rejected.
    struct Rejection {
        let space: AuthenticationSpace
        let credential: CredentialReference
        var checks: ThreeChecks

        var outcome: ExchangeMachine.Outcome { .rejected(space, credential: credential, checks) }
    }

    /// How often one exchange may ask for another password.
    private static let maximumQuestions = 3

    // MARK: Access tokens

    /// Renews `credential`, with which `challenge` is about to be answered, if it has expired.
    mutating func renewsExpired(
        _ credential: CredentialReference, for challenge: CredentialRequest, _ request: some AnsweredRequest
    ) -> Action? {
        guard held?.hasRenewedToken != true, request.policy.hasExpired(credential, now: request.answerServices.now)
        else { return nil }
        return renews(credential, .expired, for: .tokenBefore(challenge, nil), request)
    }

    /// Renews `credential`, which the breaker refuses for `reason`: the server has called it invalid when it could not
    /// be renewed.
    mutating func renewsRefused(
        _ credential: CredentialReference, for challenge: CredentialRequest, _ reason: Refusal,
        _ request: some AnsweredRequest
    ) -> Action? {
        guard held?.hasRenewedToken != true, request.policy.isAccessToken(credential) else { return nil }
        return renews(credential, .invalid, for: .tokenBefore(challenge, reason), request)
    }

    mutating func renewed(
        _ outcome: TokenRenewer.Outcome, before challenge: CredentialRequest, refusedFor refusal: Refusal?,
        for request: some AnsweredRequest
    ) -> Action {
        switch outcome {
        case .renewed(let token): uses(token, for: request)
        case .unchanged: if let refusal { return handBack(because: refusal, for: request) }
        case .unavailable(let reason):
            return handBack(because: refusal ?? Refusal(.noCredential, reason), for: request)
        }
        return decide(challenge, for: request)
    }

    /// Renews a token that the server has called invalid, if the request can be repeated with another one. The breaker
    /// does not count it then: it has expired early, or was revoked. Also one that lacks claims: providers issue a
    /// token with other claims without a question to the person, if nothing else is in the way.
    mutating func renews(after outcome: ExchangeMachine.Outcome, _ request: some AnsweredRequest) -> Action? {
        if case .handedBack(let checks) = outcome, case .no(let refusal) = checks.credential,
            let stepUp = refusal.stepUp, stepUp.claims != nil
        {
            return stepsUp(stepUp, after: outcome, request)
        }
        guard case .rejected(let space, let credential, let checks) = outcome, machine.hasInvalidCredential,
            held?.hasRenewedToken != true, request.mayBegin, request.policy.isAccessToken(credential)
        else { return nil }
        let rejection = Rejection(space: space, credential: credential, checks: checks)
        return renews(credential, .invalid, for: .tokenAfter(rejection), request)
    }

    mutating func renewed(
        _ outcome: TokenRenewer.Outcome, after rejection: Rejection, for request: some AnsweredRequest
    ) -> Action {
        if case .renewed(let token) = outcome {
            uses(token, for: request)
            if request.mayBegin { return beginAnew(for: request) }
        }
        var rejection = rejection
        if case .unavailable(let reason) = outcome { rejection.checks.credential = .no(Refusal(.noCredential, reason)) }
        return finish(rejection.outcome, for: request)
    }

    private mutating func stepsUp(
        _ stepUp: StepUp, after outcome: ExchangeMachine.Outcome, _ request: some AnsweredRequest
    ) -> Action? {
        let origin = machine.context.origin
        guard held?.hasRenewedToken != true, request.mayBegin, let name = request.rule?.credential,
            let token = request.policy.credential(named: name, at: origin)?.reference,
            request.policy.isAccessToken(token)
        else { return nil }
        return renews(token, .lacks(stepUp, origin), for: .tokenLacking(outcome), request)
    }

    mutating func renewed(
        _ renewal: TokenRenewer.Outcome, lackingAfter outcome: ExchangeMachine.Outcome,
        for request: some AnsweredRequest
    ) -> Action {
        if case .renewed(let token) = renewal {
            uses(token, for: request)
            if request.mayBegin { return beginAnew(for: request) }
        }
        return finish(outcome, for: request)
    }

    private mutating func uses(_ token: TokenCredential, for request: some AnsweredRequest) {
        hold().renewedToken = token
        request.uses(token.reference)
    }

    private mutating func renews(
        _ credential: CredentialReference, _ reason: TokenRenewer.Reason, for purpose: HeldAnswer.Purpose,
        _ request: some AnsweredRequest
    ) -> Action? {
        guard let renewer = request.answerServices.renewer else { return nil }
        hold().hasRenewedToken = true
        // Others need not wait for the provider. Without a new token, the rejection is reported after all.
        end(.inconclusive)
        return wait(.renewal, for: purpose) { done in
            Task { done(.renewed(await renewer.renew(credential, reason))) }
        }
    }

    // MARK: Passwords

    /// Asks for another password than `credential`, which the breaker refuses for `reason`. Only passwords are
    /// replaced.
    mutating func asks(
        insteadOf credential: EnrolledCredential, for challenge: CredentialRequest, _ reason: Refusal,
        _ request: some AnsweredRequest
    ) -> Action? {
        guard case .password(let refused) = credential else { return nil }
        return asks(insteadOf: refused, in: challenge.space, for: .passwordBefore(challenge, reason), nil, request)
    }

    mutating func supplied(
        _ password: PasswordCredential?, before challenge: CredentialRequest, refusedFor refusal: Refusal,
        for request: some AnsweredRequest
    ) -> Action {
        guard let password else { return handBack(because: refusal, for: request) }
        uses(password, for: request)
        return decide(challenge, for: request)
    }

    /// Asks for another password than the one that the server has rejected with `outcome`, whose response is held.
    mutating func asks(after outcome: ExchangeMachine.Outcome, _ request: some AnsweredRequest) -> Action? {
        guard case .rejected(let space, let credential, _) = outcome, request.mayBegin,
            case .useCredential(.password(let refused)) =
                RequestProofs(request: request, held: held).enrolled(in: space),
            refused.reference == credential
        else { return nil }
        return asks(insteadOf: refused, in: space, for: .passwordAfter(outcome), outcome, request)
    }

    mutating func supplied(
        _ password: PasswordCredential?, after outcome: ExchangeMachine.Outcome, for request: some AnsweredRequest
    ) -> Action {
        guard let password else { return .deliver(outcome) }
        uses(password, for: request)
        return request.mayBegin ? beginAnew(for: request) : .deliver(outcome)
    }

    private mutating func uses(_ password: PasswordCredential, for request: some AnsweredRequest) {
        hold().replacement = password
        request.uses(password.reference)
    }

    private mutating func asks(
        insteadOf refused: PasswordCredential, in space: AuthenticationSpace, for purpose: HeldAnswer.Purpose,
        _ outcome: ExchangeMachine.Outcome?, _ request: some AnsweredRequest
    ) -> Action? {
        guard let question = request.question(insteadOf: refused, in: space) else { return nil }
        let held = hold()
        guard held.questions < Self.maximumQuestions else { return nil }
        held.questions += 1
        return wait(.question, for: purpose, outcome: outcome) { done in question { done(.supplied($0)) } }
    }
}
