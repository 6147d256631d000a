// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignCertificates
import CountersignChallenges
import CountersignCryptography
import CountersignNegotiate
import NIOCore
import CountersignTLS
import CountersignUpstream

extension ExchangeDriver {
    /// Performs the third check and requests the breaker's permission. Reports the decision to the machine now, or when
    /// another attempt with the same credential has ended. `hasLooked`: whether there is another ticket is known.
    func decide(_ challenge: CredentialRequest, hasLooked: Bool = false) {
        guard case .deciding = mode else { return }
        guard trustIsInForce else {
            return run(
                exchange.decisionReceived(
                    .performDefaultHandling(reason: "the decision about the origin's certificate has ended")))
        }
        let usesTicket = challenge.offer.authenticator.usesTicket
        if challenge.offer.authenticator.usesDevice { return decideDevice(challenge) }
        let decision = usesTicket ? route.ticketDecision : credentialDecision(in: challenge.space)
        guard case .useCredential(let credential) = decision, let reference = credential.reference else {
            return run(exchange.decisionReceived(decision))
        }
        guard session.isStillSameUser() else {
            return run(exchange.decisionReceived(.performDefaultHandling(reason: "the client is no longer there")))
        }
        if renewsToken(reference, for: challenge) { return }
        let permit = Breaker.Key(
            space: challenge.space, credential: usesTicket ? ticket(of: reference, at: challenge) : reference)
        switch permission(for: permit, challenge, hasLooked: hasLooked) {
        case .wait:
            connection?.pauseReading()
        case .refused(let reason):
            if usesTicket {
                ticketRefused(reference, challenge, hasLooked: hasLooked)
            } else if !renewsToken(reference, for: challenge, refusedFor: reason) {
                refused(credential, challenge, reason: reason)
            }
        case .unsuitable(let reason):
            run(exchange.decisionReceived(.performDefaultHandling(reason: reason)))
        case .permitted(let attempt):
            if dialogue?.permit?.key != permit {
                beginDialogue().permit = BreakerAttempt(
                    permit.used(by: attempt), for: requestTag, permittedBy: services.shared.breaker)
            }
            useConnections(of: reference)
            run(exchange.decisionReceived(.useCredential(credential)))
        }
    }

    /// Proves the device. The breaker is not asked: no failure with a certificate locks an account.
    private func decideDevice(_ challenge: CredentialRequest) {
        guard session.isStillSameUser(), let rule else {
            return run(exchange.decisionReceived(.performDefaultHandling(reason: "the client is no longer there")))
        }
        run(
            exchange.decisionReceived(
                policy.deviceDecision(for: challenge.offer.challenge, rule, now: services.shared.wallClock())))
    }

    /// The breaker's permission to use `permit`, which the exchange may have already. After `wait`, ``decide`` is
    /// called again.
    private func permission(
        for permit: Breaker.Key, _ challenge: CredentialRequest, hasLooked: Bool
    ) -> Breaker.Permission {
        if dialogue?.permit?.key == permit { return .go }
        endPermit(.inconclusive)
        let driver = NIOLoopBound(self, eventLoop: services.loop)
        return services.shared.breaker.request(permit, for: requestTag, inAnswerTo: challenge.offered) {
            [gate = services.gate] in
            gate.execute { driver.value.decide(challenge, hasLooked: hasLooked) }
        }
    }

    /// The reference under which the breaker knows the ticket that is used for `reference` now.
    private func ticket(of reference: CredentialReference, at challenge: CredentialRequest) -> CredentialReference {
        reference.ticket(version: KerberosTickets.shared.version(of: reference), at: challenge.space.origin)
    }

    /// The site has rejected the ticket. Looks for another one, once.
    private func ticketRefused(_ reference: CredentialReference, _ challenge: CredentialRequest, hasLooked: Bool) {
        guard !hasLooked else {
            let reason = Refusal(
                .rejected, "the site has rejected the Kerberos ticket, which has not changed since")
            return run(exchange.decisionReceived(.performDefaultHandling(reason: reason)))
        }
        connection?.pauseReading()
        let driver = NIOLoopBound(self, eventLoop: services.loop)
        KerberosTickets.shared.look(for: reference) { [gate = services.gate] in
            gate.execute { driver.value.decide(challenge, hasLooked: true) }
        }
    }

    /// Ends the attempt that the breaker has permitted, if there is one. Its answer was not sent, or the origin has
    /// responded.
    func endPermit(_ result: Breaker.Result) {
        guard let dialogue, let permit = dialogue.permit else { return }
        dialogue.permit = nil
        permit.end(result)
    }

    /// The exchange ends before the origin has responded. An answer that was sent is reported with `result`, even one
    /// for which no permit was requested.
    func loseAnswer(_ result: Breaker.Result) {
        if let permit = dialogue?.permit { return endPermit(permit.awaitsVerdict ? result : .inconclusive) }
        guard sentField != nil, let answer = exchange.unaskedAnswer else { return }
        sentField = nil
        services.shared.breaker.ended(
            Breaker.Key(space: answer.space, credential: answer.credential).used(by: Breaker.Key.free),
            for: requestTag, result)
    }

    /// An answer that was sent before a challenge was challenged, and the challenge is about to be answered.
    func noteChallenge(to refused: AcceptedAnswer) {
        services.shared.breaker.ended(
            Breaker.Key(space: refused.space, credential: refused.credential).used(by: Breaker.Key.free),
            for: requestTag, .challengedUnasked)
    }

    /// The connection was lost. Whether the answer that was sent, if there was one, may be sent again.
    func mayAnswerAgain() -> Bool {
        guard let dialogue, let permit = dialogue.permit, permit.awaitsVerdict else { return true }
        if permit.wasUnanswered() { return true }
        dialogue.permit = nil
        return false
    }

    /// The password that an answer sends before a challenge may not be sent any more: while the request waited for its
    /// connection, too much time has passed since a site has accepted it, or one has not.
    func mustWithdraw(_ answer: Answer?) -> Bool {
        guard answer != nil, services.now > waitingSince, dialogue?.permit == nil,
            let accepted = exchange.unaskedAnswer
        else { return false }
        let key = Breaker.Key(space: accepted.space, credential: accepted.credential)
        return key.locksAccount && !services.shared.breaker.mayPreempt(key)
    }

    /// The request has sent a password before a challenge.
    var hasSentUnaskedPassword: Bool {
        guard sentField != nil, dialogue?.permit == nil, let accepted = exchange.unaskedAnswer else { return false }
        return Breaker.Key(space: accepted.space, credential: accepted.credential).locksAccount
    }

    /// Identifies the request to the breaker.
    private var requestTag: Breaker.RequestTag { Breaker.RequestTag(method: head.methodText, target: target) }

    // MARK: Tokens

    /// The token may be bound to the connection that will carry it, so a connection is acquired before the opening.
    func computeToken(_ request: TokenRequest) {
        guard request.step == .open else { return take(request.step) }
        // Without a ticket, the challenge is handed back, however long it is. So the rest of it is not read before.
        if request.offer.authenticator.usesTicket, case .deciding = mode, delivery.buffered != nil, let connection,
            connection.repair == nil
        {
            connection.pauseReading()
            return openDialogue(request)
        }
        prepare(.openDialogue(request))
    }

    /// Starts a dialogue on ``connection``.
    func openDialogue(_ request: TokenRequest) {
        do throws(AuthenticationError) {
            beginDialogue().tokens = try request.offer.authenticator.makeDialogue(
                request.credential, exchange.context)
            take(.open)
        } catch {
            tokenFailed(error)
        }
    }

    /// If the machine hands back the challenge, it is the one that was read to its end before the dialogue began.
    private func tokenFailed(_ error: AuthenticationError) {
        if case .preparing = mode, delivery.buffered == nil { delivery.restore(dialogue?.lastChallenge) }
        // What was accepted before is of no use without a token, and would hide what can be answered.
        if exchange.roundsAnswered == 0, exchange.context.accepted != nil { forgetAcceptedAnswers() }
        run(exchange.tokenFailed(error))
    }

    private func take(_ step: TokenStep) {
        let tls = route.challenger == nil ? connection?.tls : connection?.forwarderTLS
        let binding = tls?.channelBinding
        switch dialogue?.tokens?.take(step, binding: binding, answerInputs) {
        case .computed(let token):
            tokenComputed(.success(token))
        case .failed(let error):
            tokenComputed(.failure(error))
        case .elsewhere(let start):
            let gate = services.gate
            let driver = NIOLoopBound(self, eventLoop: services.loop)
            start { result in
                gate.execute {
                    // The exchange may have ended in the meantime.
                    switch driver.value.mode {
                    case .preparing, .deciding: driver.value.tokenComputed(result)
                    case .waiting, .draining, .delivering, .done: break
                    }
                }
            }
        case nil:
            run(exchange.tokenFailed(AuthenticationError(.tokenFailed, "a token came before the dialogue began")))
        }
    }

    private func tokenComputed(_ result: Result<DialogueToken, AuthenticationError>) {
        switch result {
        case .success(let token):
            run(exchange.tokenComputed(token))
        case .failure(let error):
            dialogue?.tokens = nil
            tokenFailed(error)
        }
    }

    var answerInputs: AnswerInputs {
        AnswerInputs(fileTime: WallClock.fileTime(), random: { Randomness.bytes($0) })
    }

    // MARK: Outcomes

    /// A 101 response ends an exchange like any other.
    func conclude(_ action: ExchangeMachine.Action) {
        if case .deliver(let outcome) = action { conclude(outcome) }
    }

    /// Records the outcome of the exchange: for the breaker, for later requests, and for the log. Returns the outcome
    /// in view of what the breaker knows.
    @discardableResult
    func conclude(_ outcome: ExchangeMachine.Outcome) -> ExchangeMachine.Outcome {
        let outcome = known(outcome)
        observe(outcome)
        switch outcome {
        case .notChallenged:
            endPermit(.inconclusive)
        case .accepted(let accepted) where GatewayResponse.includes(status: record.status):
            wasAccepted = true
            explainWeaker(accepted)
            record.answered(accepted.space.scheme.rawValue, with: accepted.credential.name)
            gatewayResponded(to: accepted)
        case .accepted(let accepted):
            wasAccepted = true
            explainMissingProof(accepted)
            // Otherwise it was sent before a challenge, and nothing is new. That is tested first, because reading the
            // machine copies it, which costs 400 instructions each time.
            if !isReused(accepted) {
                explainWeaker(accepted)
                if accepted != exchange.context.accepted {
                    remember(accepted)
                    services.shared.delegateCredentials?.accepted(accepted.credential, in: accepted.space)
                }
            }
            record.answered(accepted.space.scheme.rawValue, with: accepted.credential.name)
            noteAuthentication(by: accepted)
            if dialogue?.permit == nil {
                services.shared.breaker.acceptedUnasked(
                    Breaker.Key(space: accepted.space, credential: accepted.credential), for: requestTag)
            }
            endPermit(.accepted)
        case .handedBack(let checks):
            record.explain(remedied(checks.refusal))
            endPermit(.inconclusive)
        case .rejected(let space, let credential, let checks):
            record.explain(checks.failure)
            record.answered(space.scheme.rawValue, with: credential.name)
            forgetAcceptedAnswers()
        }
        noteCertificate()
        return outcome
    }

    /// Only the response to an answer whose scheme examines such responses may lack a proof.
    private func explainMissingProof(_ accepted: AcceptedAnswer) {
        guard accepted.offer.authenticator.verifiesAcceptance(ofStatus: record.status, hasInformation: true),
            let reason = exchange.unprovedReason
        else { return }
        record.explain(reason)
    }

    private func explainWeaker(_ accepted: AcceptedAnswer) {
        guard let reason = exchange.reasonForWeaker else { return }
        record.explain("answered with \(accepted.offer.authenticator.name), because \(reason)")
    }

    /// With what helps, if the site requires a scope that the access token of a sign-in does not have: the person is
    /// asked for it, or has to give a command.
    private func remedied(_ refusal: Refusal?) -> String? {
        guard let refusal, let scopes = refusal.missingScopes, let name = rule?.credential,
            let token = policy.credential(named: name)?.reference, policy.isAccessToken(token)
        else { return refusal?.text }
        let reason = refusal.text
        if let asker = services.shared.scopeAsker {
            let fields = delivery.buffered?.head.fields.values(of: .wwwAuthenticate) ?? []
            let lack = ScopeAsker.Lack(
                origin: origin, target: String(decoding: path, as: UTF8.self), token: token, scopes: scopes,
                metadata: BearerError.resourceMetadata(in: fields), reason: reason)
            if let text = asker.ask(lack) { return "\(reason); \(text)" }
        }
        return "\(reason); `countersign enroll \(name) --scope SCOPE` asks for it"
    }

    /// A server says whether a ticket has authenticated the connection for its further requests, too (MS-N2HT §2.2.3).
    /// If it says nothing, each request carries a token.
    private func noteAuthentication(by answer: AcceptedAnswer) {
        guard answer.offer.authenticator.answersEachRequest, let connection else { return }
        let values = delivery.buffered?.head.fields.values(named: "persistent-auth") ?? []
        connection.isPersistentlyAuthenticated = values.count == 1 && values.first?.lowercased() == "true"
    }

    /// A ``GatewayResponse`` does not accept an answer. If the space has accepted it before, and nothing is in doubt,
    /// it means nothing.
    private func gatewayResponded(to answer: AcceptedAnswer) {
        let breaker = services.shared.breaker
        let key = Breaker.Key(space: answer.space, credential: answer.credential)
        let isReused = exchange.context.accepted.map { $0.space == answer.space && $0.credential == answer.credential }
        let result: Breaker.Result = isReused == true && !breaker.isInDoubt(key) ? .inconclusive : .unknown
        if dialogue?.permit != nil { return endPermit(result) }
        if result == .unknown { breaker.ended(key.used(by: Breaker.Key.free), for: requestTag, result) }
    }

    /// Reports a rejection to the breaker. If the space has accepted the credential before, and this request may need a
    /// permission that the user does not have, the challenge is only handed back. No permit was requested for an answer
    /// sent before a challenge, but its rejection counts, too.
    private func known(_ outcome: ExchangeMachine.Outcome) -> ExchangeMachine.Outcome {
        guard case .rejected(let space, let credential, var checks) = outcome else { return outcome }
        let permit = dialogue?.permit
        dialogue?.permit = nil
        let rejected = Breaker.Key(space: space, credential: credential)
        // The breaker knows a ticket by another reference, and each was sent with a permit.
        let ticket = permit.flatMap { $0.key.credential.isTicket ? $0.key : nil }
        let key = ticket ?? rejected
        let result: Breaker.Result = exchange.hasInvalidCredential ? .invalid : .rejected
        let finding =
            permit?.end(result, of: key)
            ?? services.shared.breaker.ended(key.used(by: Breaker.Key.free), for: requestTag, result)
        guard finding == .handedBack else { return outcome }
        record.answered(space.scheme.rawValue, with: credential.name)
        checks.credential = .no("credential \"\(credential.name)\" is accepted here, but not for this request")
        return .handedBack(checks)
    }

    /// Reports the outcome of the exchange, if it involved an answer or a challenge.
    func observe(_ outcome: ExchangeMachine.Outcome) {
        guard let observer = services.shared.observer else { return }
        switch outcome {
        case .notChallenged:
            break
        case .accepted(let accepted):
            // A ticket is sent with each request, also without a challenge.
            let wasChallenged = !accepted.offer.authenticator.usesTicket || !exchange.challenges.isEmpty
            guard dialogue?.permit != nil, wasChallenged else {
                guard !GatewayResponse.includes(status: record.status) else { return }
                return observer.tell(.answeredUnasked(accepted.space, path: pathWithoutQuery))
            }
            observer.tell(.answered(accepted.space, with: accepted.credential.name, path: pathWithoutQuery))
        case .rejected(let space, let credential, _):
            observer.tell(.rejected(space, credential: credential.name, path: pathWithoutQuery))
        case .handedBack(let checks):
            observer.tell(
                .handedBack(origin, challenge: foremostChallenge, checks, rule, path: pathWithoutQuery))
        }
    }

    private var pathWithoutQuery: String {
        String(decoding: path.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self)
    }

    /// The challenge that would have been answered, or else the first.
    private var foremostChallenge: Challenge {
        let context = exchange.context
        let offers = context.authenticators.offers(in: exchange.challenges, permitted: context.permitted)
        return offers.first?.challenge ?? exchange.challenges.first ?? Challenge(scheme: "unknown")
    }

    private var cacheKey: ProtectionSpaceCache.Key? {
        acquisition.slot.key.credential.map { ProtectionSpaceCache.Key(acquisition.slot.key, $0) }
    }

    private func remember(_ accepted: AcceptedAnswer) {
        // That nothing may be sent ahead is news only if something was.
        let isNews = accepted.preemption != .none || exchange.context.accepted.map { $0.preemption != .none } ?? false
        // The vault may have been locked since the answer was sent.
        guard let cacheKey, isNews, services.shared.policy.current.mayKeep(cacheKey.credential)
        else { return }
        let scopes = accepted.offer.authenticator.scopes(
            of: accepted.offer.challenge, at: origin, challengedTarget: String(decoding: path, as: UTF8.self))
        for scope in scopes { services.shared.acceptedAnswers.add(.init(accepted, scope: scope), key: cacheKey) }
    }

    private func forgetAcceptedAnswers() {
        if let cacheKey { services.shared.acceptedAnswers.removeAll(of: cacheKey) }
    }

    private func noteCertificate() {
        guard let connection, let checks = connection.certificateChecks else { return }
        if let identity = connection.showedIdentity {
            record.showed(certificate: identity)
        } else if record.reason == nil {
            record.explain(checks.failure.map { "client certificate not sent: \($0)" })
        }
    }
}

extension ExchangeDriver: RequestDescription {
    var method: String { head.methodText }
    var target: String { String(decoding: path, as: UTF8.self) }

    func readContent(_ read: (UnsafeRawBufferPointer) -> Void) -> Bool {
        guard body.hasEnded, !body.hasLostItsStart, !body.hasSpooledContent else { return false }
        for piece in body.buffered { piece.withUnsafeReadableBytes(read) }
        return true
    }
}

extension ExchangeMachine.Failure.Cause {
    /// The error type in `Proxy-Status` (RFC 9209 §2.3).
    var proxyError: String {
        switch self {
        case .connectionLost: "connection_terminated"
        case .forgedResponse: "http_protocol_error"
        }
    }
}
