// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges

// The rules of answering
//
// An `ExchangeMachine` knows the protocol: which challenge is answered, and the meaning of a response. An
// `AnswerDialogue` owns one and adds the decisions that depend on everything else: which credential answers, whether
// the breaker permits it, which events come before the answer, and which reports the breaker, later requests and the
// observer get at the end. A driver reports events to the dialogue and performs the one action that each returns. It
// does the I/O, and keeps no rule of its own.
//
//   AnswerDialogue.swift            events in, actions out
//   AnswerDialogue+Deciding.swift   from a challenge to the permitted credential, and the tokens of a scheme
//   AnswerDialogue+Renewing.swift   access tokens that have expired or are invalid, and passwords that are replaced
//   AnswerDialogue+Ends.swift       the consequences of an outcome, or of the end without one
//   AnsweredRequest.swift           the demands of the dialogue on its driver
//   Later.swift                     an operation that it waits for
//
// Rules:
//   1. An answer that the breaker counts has its permission before it is sent, and a result after it: the verdict of
//      the server, or its absence. Only an answer that was sent before a challenge needs no permission.
//   2. A proof that is not enrolled, such as a ticket, is looked up once more before the challenge is handed back.
//   3. An access token that has expired is renewed before it is sent. One that the server calls invalid is renewed, and
//      the request sent again. One exchange renews once, and the breaker does not count the old token then.
//   4. While a question to a person or a provider is open, others do not wait for the permission.
//   5. If the client leaves, the verdict on a password in transit is still awaited. Nothing is sent after it.
//   6. A server that has accepted the credential, and does not for this request, rejects nothing: the challenge is
//      handed back.

/// The answers to the challenges of one request. Pure but for the breaker, which all dialogues share: an operation that
/// takes time is a ``Later`` that the driver hands back.
///
/// A value that a request without a challenge keeps in place; ``HeldAnswer`` is made when there is something to keep.
/// Members that every request uses are mutating or stored, because any other call first copies the machine. The
/// driver's methods that ``AnsweredRequest`` names may be called during each event, and must not call back.
package struct AnswerDialogue {
    /// The driver's next action. The cases with much content are indirect, for the reason given at
    /// ``ExchangeMachine/Action``.
    package enum Action {
        /// As in ``ExchangeMachine/Action``. Followed by ``AnswerDialogue/sends(_:isOpening:)`` and
        /// `responseReceived`.
        case send(Answer?)
        case sendOpening(Answer)
        /// Acquire the connection that will carry the answer. Followed by `connected`.
        indirect case openDialogue(TokenRequest)
        /// Start it. Followed by `resumed`.
        indirect case later(Later)
        /// Deliver the held response. Breaker and observer know the outcome already.
        case deliver(ExchangeMachine.Outcome)
        /// There is no response to deliver.
        indirect case fail(ExchangeMachine.Failure)
        /// Do nothing: another event is still due.
        case wait
    }

    package internal(set) var machine: ExchangeMachine
    /// The field that was sent last.
    package internal(set) var sent: AuthorizationField?
    /// Of the last response; 0 before there is one.
    var status = 0
    /// Nil until there is something to keep in it.
    package internal(set) var held: HeldAnswer?

    package init(_ machine: ExchangeMachine) { self.machine = machine }

    /// Continues with another machine: nothing of the present one's was sent, or it must not be sent again.
    package mutating func restart(as machine: ExchangeMachine) { self.machine = machine }

    // MARK: Events

    /// The request is about to go out; `first` is the machine's first action.
    package mutating func began(
        with first: ExchangeMachine.Action, for request: some AnsweredRequest
    ) -> Action { perform(first, for: request) }

    /// The request is about to go out.
    package mutating func started(for request: some AnsweredRequest) -> Action {
        perform(machine.started(), for: request)
    }

    /// The request goes out with `field`. `isOpening`: without its content, to open a dialogue of tokens. Returns the
    /// attempt that the breaker has permitted, if one is sent.
    @discardableResult
    package mutating func sends(_ field: AuthorizationField?, isOpening: Bool) -> Breaker.Key? {
        sent = field
        guard let permit = held?.permit else { return nil }
        // An opening contains nothing of the credential.
        permit.awaitsVerdict = field != nil && !isOpening
        return permit.awaitsVerdict ? permit.key : nil
    }

    /// As ``ExchangeMachine/responseReceived(status:challengeFields:informationFields:sent:)``.
    package mutating func responseReceived(
        status: Int, challengeFields: @autoclosure () -> [ChallengeField],
        informationFields: @autoclosure () -> [String] = [], for request: some AnsweredRequest
    ) -> Action {
        self.status = status
        held?.permit?.awaitsVerdict = false
        let action = machine.responseReceived(
            status: status, challengeFields: challengeFields(), informationFields: informationFields(), sent: sent)
        return perform(action, for: request)
    }

    /// The same after the client has left, for the breaker and later requests alone. Returns the outcome; nil if the
    /// server has challenged further, which is not answered.
    package mutating func lateResponseReceived(
        status: Int, challengeFields: @autoclosure () -> [ChallengeField],
        informationFields: @autoclosure () -> [String] = [], for request: some AnsweredRequest
    ) -> ExchangeMachine.Outcome? {
        self.status = status
        let action = machine.responseReceived(
            status: status, challengeFields: challengeFields(), informationFields: informationFields(), sent: sent)
        if case .ask(let question) = action, let refused = question.refused { wasChallenged(refused, for: request) }
        guard case .deliver(let outcome) = action else {
            lost(.inconclusive, for: request)
            return nil
        }
        let known = concluded(outcome, for: request)
        end(.inconclusive)
        return known
    }

    /// There is a connection for the opening of a dialogue.
    package mutating func connected(for opening: TokenRequest, _ request: some AnsweredRequest) -> Action {
        do throws(AuthenticationError) {
            let tokens = try opening.offer.authenticator.makeDialogue(opening.credential, machine.context)
            hold().tokens = tokens
        } catch {
            return tokenFailed(error, for: request)
        }
        return take(.open, for: request)
    }

    /// The connection was lost before a response, or while the next round was being prepared. `requestMayRepeat`: as in
    /// ``ExchangeMachine/connectionLost(requestMayRepeat:)``.
    package mutating func connectionLost(requestMayRepeat: Bool, for request: some AnsweredRequest) -> Action {
        perform(machine.connectionLost(requestMayRepeat: requestMayRepeat && mayAnswerAgain()), for: request)
    }

    /// The last action cannot be performed, because the request's content is no longer available.
    package mutating func replayImpossible(reason: Refusal, for request: some AnsweredRequest) -> Action {
        perform(machine.replayImpossible(reason: reason), for: request)
    }

    /// The operation that the driver was asked to start has ended.
    package mutating func resumed(
        _ later: Later, with result: Later.Result, for request: some AnsweredRequest
    ) -> Action {
        guard let held, let awaited = held.awaited, awaited.number == later.number else { return .wait }
        held.awaited = nil
        switch (awaited.purpose, result) {
        case (.decision(let challenge, let hasLooked), .over):
            return decide(challenge, hasLooked: hasLooked, for: request)
        case (.token, .token(.success(let token))):
            return perform(machine.tokenComputed(token), for: request)
        case (.token, .token(.failure(let error))):
            return tokenFailed(error, for: request)
        case (.tokenBefore(let challenge, let refusal), .renewed(let outcome)):
            return renewed(outcome, before: challenge, refusedFor: refusal, for: request)
        case (.tokenAfter(let rejection), .renewed(let outcome)):
            return renewed(outcome, after: rejection, for: request)
        case (.tokenLacking(let outcome), .renewed(let renewal)):
            return renewed(renewal, lackingAfter: outcome, for: request)
        case (.passwordBefore(let challenge, let refusal), .supplied(let password)):
            return supplied(password, before: challenge, refusedFor: refusal, for: request)
        case (.passwordAfter(let outcome), .supplied(let password)):
            return supplied(password, after: outcome, for: request)
        case (.decision, _), (.token, _), (.tokenBefore, _), (.tokenAfter, _), (.tokenLacking, _),
            (.passwordBefore, _), (.passwordAfter, _):
            // Not reached by any message of a server: ``wait(_:for:outcome:work:)`` makes each `Later` together with
            // its purpose, its work ends with a result for that purpose, and the number has shown that the two belong
            // together.
            preconditionFailure("the driver handed back the result of something else")
        }
    }

    // MARK: The machine

    /// Goes on until the driver has something to do.
    mutating func perform(_ action: ExchangeMachine.Action, for request: some AnsweredRequest) -> Action {
        switch action {
        case .send(let answer): return .send(answer)
        case .sendOpening(let answer): return .sendOpening(answer)
        case .ask(let question):
            request.decisionBegins()
            if let refused = question.refused { wasChallenged(refused, for: request) }
            return decide(question, for: request)
        case .computeToken(let step):
            return step.step == .open ? .openDialogue(step) : take(step.step, for: request)
        case .deliver(let outcome):
            // Nothing was answered: the case of nearly all requests.
            if case .notChallenged = outcome, held == nil { return .deliver(outcome) }
            return finish(outcome, for: request)
        case .fail(let failure):
            lost(.unanswered, for: request)
            return .fail(failure)
        case .wait: return .wait
        }
    }

    /// Sends the request as the client sent it, as if nothing had been answered.
    mutating func beginAnew(for request: some AnsweredRequest) -> Action {
        held?.tokens = nil
        sent = nil
        request.beginsAnew()
        var context = machine.context
        context.accepted = nil
        machine = ExchangeMachine(context)
        return started(for: request)
    }

    // MARK: The held answer

    /// Nothing follows.
    package mutating func forget() {
        held = nil
        sent = nil
    }

    mutating func hold() -> HeldAnswer {
        if let held { return held }
        let new = HeldAnswer()
        held = new
        return new
    }

    mutating func wait(
        _ kind: Later.Kind, for purpose: HeldAnswer.Purpose, outcome: ExchangeMachine.Outcome? = nil,
        work: @escaping @Sendable (@escaping @Sendable (Later.Result) -> Void) -> Void
    ) -> Action {
        let held = hold()
        held.waits &+= 1
        held.awaited = HeldAnswer.Awaited(number: held.waits, purpose: purpose)
        return .later(Later(kind, held.waits, outcome: outcome, work: work))
    }
}

/// The state of a dialogue that answers a challenge. An object, because most requests do without it.
package final class HeldAnswer {
    /// The operation that the dialogue waits for, and its purpose.
    struct Awaited {
        let number: UInt64
        let purpose: Purpose
    }

    enum Purpose {
        case decision(CredentialRequest, hasLooked: Bool)
        case token
        /// A new access token, before `challenge` is answered. The breaker refuses the present one for the reason, or
        /// it has expired.
        case tokenBefore(CredentialRequest, Refusal?)
        /// A new access token, after the server has rejected the present one.
        case tokenAfter(AnswerDialogue.Rejection)
        /// An access token with what the server requires, after it has handed back the challenge with this outcome.
        case tokenLacking(ExchangeMachine.Outcome)
        /// A password in place of the one that the breaker refuses.
        case passwordBefore(CredentialRequest, Refusal)
        /// A password in place of the one that the server has rejected with this outcome.
        case passwordAfter(ExchangeMachine.Outcome)
    }

    /// The attempt that the breaker has permitted, until its result is known.
    var permit: BreakerAttempt?
    /// Makes the tokens of a scheme that needs several rounds.
    var tokens: (any TokenDialogue)?
    /// The access token that was renewed for this exchange.
    var renewedToken: TokenCredential?
    /// The renewal was requested.
    var hasRenewedToken = false
    /// The password that replaces a rejected one.
    var replacement: PasswordCredential?
    /// How often a replacement was requested.
    var questions = 0
    var awaited: Awaited?
    var waits: UInt64 = 0

    /// The dialogue of tokens has begun.
    package var hasTokens: Bool { tokens != nil }
}
