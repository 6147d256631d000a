// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges

/// The consequences of an outcome, or of the end without one.
extension AnswerDialogue {
    /// Ends the exchange with `outcome`, unless something better can be had.
    mutating func finish(_ outcome: ExchangeMachine.Outcome, for request: some AnsweredRequest) -> Action {
        if let later = renews(after: outcome, request) { return later }
        let outcome = concluded(outcome, for: request)
        return asks(after: outcome, request) ?? .deliver(outcome)
    }

    /// Reports the outcome to the breaker and to the observer. Returns it in view of the breaker's records.
    mutating func concluded(
        _ outcome: ExchangeMachine.Outcome, for request: some AnsweredRequest
    ) -> ExchangeMachine.Outcome {
        let outcome = known(outcome, request)
        observe(outcome, request)
        switch outcome {
        case .notChallenged, .handedBack:
            end(.inconclusive)
        case .accepted(let accepted):
            request.wasAnswered(in: accepted.space, with: accepted.credential)
            if !acceptsAnswer {
                gatewayResponded(to: accepted, request)
            } else {
                if held?.permit == nil {
                    request.answerServices.breaker.acceptedUnasked(
                        Breaker.Key(space: accepted.space, credential: accepted.credential), for: request.tag)
                }
                end(.accepted)
            }
        case .rejected(let space, let credential, _):
            request.wasAnswered(in: space, with: credential)
            request.forgetAccepted()
        }
        return outcome
    }

    /// Whether the last response, which did not challenge, accepts the answer that was sent.
    package var acceptsAnswer: Bool { machine.context.source.acceptsAnswer(status: status) }

    /// Reports a rejection to the breaker. If the space has accepted the credential before, and this request may need a
    /// permission that the user does not have, the challenge is only handed back. No permit was requested for an answer
    /// sent before a challenge, but its rejection counts, too.
    private mutating func known(
        _ outcome: ExchangeMachine.Outcome, _ request: some AnsweredRequest
    ) -> ExchangeMachine.Outcome {
        guard case .rejected(let space, let credential, var checks) = outcome else { return outcome }
        let permit = held?.permit
        held?.permit = nil
        let rejected = Breaker.Key(space: space, credential: credential)
        // The breaker knows a ticket by another reference, and each was sent with a permit.
        let ticket = permit.flatMap { $0.key.credential.isTicket ? $0.key : nil }
        let result: Breaker.Result = machine.hasInvalidCredential ? .invalid : .rejected
        let finding =
            permit?.end(result, of: ticket ?? rejected)
            ?? request.answerServices.breaker.ended(rejected.used(by: Breaker.Key.free), for: request.tag, result)
        guard finding == .handedBack else { return outcome }
        request.wasAnswered(in: space, with: credential)
        checks.credential = .no("credential \"\(credential.name)\" is accepted here, but not for this request")
        return .handedBack(checks)
    }

    /// A response that may be a gateway's own does not accept an answer. If the space has accepted it before, and
    /// nothing is in doubt, it means nothing.
    private mutating func gatewayResponded(to answer: AcceptedAnswer, _ request: some AnsweredRequest) {
        let breaker = request.answerServices.breaker
        let key = Breaker.Key(space: answer.space, credential: answer.credential)
        let isReused = machine.context.accepted.map { $0.space == answer.space && $0.credential == answer.credential }
        let result: Breaker.Result = isReused == true && !breaker.isInDoubt(key) ? .inconclusive : .unknown
        if held?.permit != nil { return end(result) }
        if result == .unknown { breaker.ended(key.used(by: Breaker.Key.free), for: request.tag, result) }
    }

    // MARK: The breaker

    /// Ends the attempt that the breaker has permitted, if there is one.
    package mutating func end(_ result: Breaker.Result) {
        guard let held, let permit = held.permit else { return }
        held.permit = nil
        permit.end(result)
    }

    /// The exchange ends before the server has responded. An answer that was sent is reported with `result`, even one
    /// for which no permit was requested.
    package mutating func lost(_ result: Breaker.Result, for request: some AnsweredRequest) {
        if let permit = held?.permit { return end(permit.awaitsVerdict ? result : .inconclusive) }
        guard sent != nil, let answer = machine.unaskedAnswer else { return }
        sent = nil
        let key = Breaker.Key(space: answer.space, credential: answer.credential)
        request.answerServices.breaker.ended(key.used(by: Breaker.Key.free), for: request.tag, result)
    }

    /// The connection ended before a response, and the driver decides whether the exchange goes on. Returns whether it
    /// may: no attempt was in progress. An answer that was sent is reported with `result`.
    package mutating func mayGoOn(withoutResponse result: Breaker.Result, for request: some AnsweredRequest) -> Bool {
        if let permit = held?.permit, !permit.awaitsVerdict { return true }
        let wasAttempt = held?.permit != nil
        lost(result, for: request)
        return !wasAttempt
    }

    /// The connection was lost. Whether the answer that was sent, if there was one, may be sent again. If not, its
    /// attempt has ended.
    package mutating func mayAnswerAgain() -> Bool {
        guard let held, let permit = held.permit, permit.awaitsVerdict else { return true }
        if permit.wasUnanswered() { return true }
        held.permit = nil
        return false
    }

    /// An answer that was sent before a challenge was challenged, and the challenge is about to be answered.
    mutating func wasChallenged(_ refused: AcceptedAnswer, for request: some AnsweredRequest) {
        let key = Breaker.Key(space: refused.space, credential: refused.credential)
        request.answerServices.breaker.ended(key.used(by: Breaker.Key.free), for: request.tag, .challengedUnasked)
    }

    // MARK: Answers that are sent before a challenge

    /// The password that the next request sends before a challenge; nil if it sends none.
    private var unaskedPassword: Breaker.Key? {
        guard held?.permit == nil, let accepted = machine.unaskedAnswer else { return nil }
        let key = Breaker.Key(space: accepted.space, credential: accepted.credential)
        return key.locksAccount ? key : nil
    }

    /// The password that is sent before a challenge may no longer be sent: while the request waited for its connection,
    /// the last acceptance by a site became too old, or a site did not accept it.
    package func mustWithdraw(_ breaker: BreakerBoard) -> Bool {
        unaskedPassword.map { !breaker.mayPreempt($0) } ?? false
    }

    /// The request has sent a password before a challenge.
    package var hasSentUnaskedPassword: Bool { sent != nil && unaskedPassword != nil }

    /// A credential was sent that may be wrong, and the server has not responded. The opening of a dialogue contains
    /// none, and no ticket locks an account.
    package var awaitsVerdict: Bool {
        if let permit = held?.permit { return permit.awaitsVerdict && !permit.key.credential.isTicket }
        guard sent != nil, let answer = machine.unaskedAnswer else { return false }
        return !answer.credential.isTicket
    }

    // MARK: Reports

    /// The exchange is given up for `reason`, and the last challenge is delivered.
    package mutating func givenUp(because reason: Refusal, for request: some AnsweredRequest) {
        end(.inconclusive)
        observe(.handedBack(ThreeChecks(site: machine.checks.site, challenge: .no(reason))), request)
    }

    /// Reports the outcome of the exchange, if it involved an answer or a challenge.
    private mutating func observe(_ outcome: ExchangeMachine.Outcome, _ request: some AnsweredRequest) {
        guard let observer = request.answerServices.observer, request.isObserved else { return }
        switch outcome {
        case .notChallenged:
            break
        case .accepted(let accepted):
            // A scheme may need a permission without a challenge, such as for a ticket with each request.
            guard held?.permit != nil, !machine.challenges.isEmpty else {
                guard acceptsAnswer, observer.hearsUnasked else { return }
                return observer.tell(.answeredUnasked(accepted.space, path: request.observedPath))
            }
            observer.tell(.answered(accepted.space, with: accepted.credential.name, path: request.observedPath))
        case .rejected(let space, let credential, _):
            observer.tell(.rejected(space, credential: credential.name, path: request.observedPath))
        case .handedBack(let checks):
            observer.tell(
                .handedBack(
                    machine.context.origin, challenge: foremostChallenge, checks, request.rule,
                    path: request.observedPath))
        }
    }

    /// The challenge that would have been answered, or else the first.
    private var foremostChallenge: Challenge {
        let context = machine.context
        let offers = context.authenticators.offers(in: machine.challenges, permitted: context.permitted)
        return offers.first?.challenge ?? machine.challenges.first ?? Challenge(scheme: "unknown")
    }

    /// The sentence for `refusal`, with the remedy if the server requires something that the access token of a sign-in
    /// does not have: a question to the person, or a command. `fields` are the challenge fields of the response.
    package func sentence(
        for refusal: Refusal?, at origin: Origin, _ fields: @autoclosure () -> [String],
        for request: some AnsweredRequest
    ) -> String? {
        guard let refusal, let stepUp = refusal.stepUp, let name = request.rule?.credential,
            let token = request.policy.credential(named: name, at: origin)?.reference,
            request.policy.isAccessToken(token)
        else { return refusal?.text }
        let reason = refusal.text
        if let asker = request.answerServices.scopeAsker {
            let lack = ScopeAsker.Lack(
                origin: origin, target: request.target, token: token, stepUp: stepUp,
                metadata: BearerError.resourceMetadata(in: fields()), reason: reason)
            if let text = asker.ask(lack) { return "\(reason); \(text)" }
        }
        let remedies = request.policy.remedies(for: refusal, of: UnansweredRequest(origin, request.rule, .bearer))
        return Remedy.sentence(remedies).map { "\(reason); \($0)" } ?? reason
    }
}
