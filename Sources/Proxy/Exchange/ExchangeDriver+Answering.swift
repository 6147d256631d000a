// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignChallenges
import CountersignCryptography
import CountersignTLS
import CountersignUpstream
import NIOCore

/// The driver's services for the dialogue about challenges, besides sending.
extension ExchangeDriver {
    // MARK: Operations that take time

    /// Waits until `later` has ended.
    func wait(for later: Later) {
        if let outcome = later.outcome { note(outcome) }
        if later.kind != .token { connection?.pauseReading() }
        if later.isOthersTime { beginDialogue().since = nil }
        let gate = services.gate
        let driver = NIOLoopBound(self, eventLoop: services.loop)
        later.start { result in
            gate.execute { driver.value.resume(later, result) }
        }
    }

    /// The exchange may have ended in the meantime.
    private func resume(_ later: Later, _ result: Later.Result) {
        switch mode {
        case .deciding: break
        case .preparing: guard later.kind == .token else { return }
        case .waiting, .draining, .delivering, .done: return
        }
        if later.isOthersTime { beginDialogue().since = services.now }
        run(answers.resumed(later, with: result, for: self))
    }

    /// The token may be bound to the connection that will carry it, so a connection is acquired before the opening.
    func openDialogue(_ request: TokenRequest) {
        // Without a ticket, the challenge is handed back, however long it is. So the rest of it is not read before.
        if request.offer.authenticator.usesTicket, case .deciding = mode, delivery.buffered != nil, let connection,
            connection.repair == nil
        {
            connection.pauseReading()
            return run(answers.connected(for: request, self))
        }
        prepare(.openDialogue(request))
    }

    /// From now on, the exchange uses the connections and protection spaces of `credential`.
    private func useConnections(of credential: CredentialReference) {
        guard acquisition.slot.key.credential != credential else { return }
        acquisition.use(route.slot(like: acquisition.slot.key, with: credential))
    }

    /// The exchange ends before the origin has responded.
    func loseAnswer(_ result: Breaker.Result) { answers.lost(result, for: self) }

    // MARK: Outcomes

    /// Records the outcome of the exchange, for later requests and for the log.
    func note(_ outcome: ExchangeMachine.Outcome) {
        switch outcome {
        case .notChallenged:
            noteConnection()
        case .accepted(let accepted) where !answers.acceptsAnswer:
            wasAccepted = true
            explainWeaker(accepted)
        case .accepted(let accepted):
            wasAccepted = true
            record.accepted()
            noteChallenges()
            explainMissingProof(accepted)
            // Otherwise it was sent before a challenge, and nothing is new. That is tested first, because reading the
            // machine copies it, which costs 400 instructions each time.
            if !isReused(accepted) {
                explainWeaker(accepted)
                if accepted != answers.machine.context.accepted {
                    remember(accepted)
                    services.shared.delegateCredentials?.accepted(accepted.credential, in: accepted.space)
                }
            }
            noteAuthentication(by: accepted)
            noteParentAuthentication(by: accepted)
        case .handedBack(let checks):
            endParentSharing()
            noteChallenges()
            record.failed(checks)
            record.explain(
                answers.sentence(
                    for: checks.refusal, at: origin, delivery.buffered?.head.fields.values(of: .wwwAuthenticate) ?? [],
                    for: self))
        case .rejected(_, _, let checks):
            endParentSharing()
            noteChallenges()
            record.rejected()
            record.failed(checks)
            record.explain(checks.failure)
        }
        noteCertificate()
    }

    /// Reading the machine copies it, which an exchange without a challenge need not pay for.
    private func noteChallenges() {
        guard route.challenger == nil, dialogue != nil || delivery.buffered?.head.status == 401 else { return }
        record.challenged(with: answers.machine.challenges)
    }

    /// The request may be the person's without an answer of its own: its connection is authenticated.
    private func noteConnection() {
        guard let connection, connection.isAuthenticated, !clientBindsConnection,
            let credential = acquisition.slot.key.credential
        else { return }
        record.rode(on: credential)
    }

    /// Only the response to an answer whose scheme examines such responses may lack a proof.
    private func explainMissingProof(_ accepted: AcceptedAnswer) {
        guard accepted.offer.authenticator.verifiesAcceptance(ofStatus: record.status, hasInformation: true),
            let reason = answers.machine.unprovedReason
        else { return }
        record.explain(reason)
    }

    private func explainWeaker(_ accepted: AcceptedAnswer) {
        guard let reason = answers.machine.reasonForWeaker else { return }
        record.explain("answered with \(accepted.offer.authenticator.name), because \(reason)")
    }

    /// A server says whether a ticket has authenticated the connection for its further requests, too (MS-N2HT §2.2.3).
    /// If it says nothing, each request carries a token.
    private func noteAuthentication(by answer: AcceptedAnswer) {
        guard answer.offer.authenticator.answersEachRequest, let connection else { return }
        let values = delivery.buffered?.head.fields.values(named: "persistent-auth") ?? []
        connection.isPersistentlyAuthenticated = values.count == 1 && values.first?.lowercased() == "true"
    }

    private var cacheKey: ProtectionSpaceCache.Key? {
        acquisition.slot.key.credential.map { ProtectionSpaceCache.Key(acquisition.slot.key, $0) }
    }

    private func remember(_ accepted: AcceptedAnswer) {
        // That nothing may be sent ahead is news only if something was.
        let isNews =
            accepted.preemption != .none
            || answers.machine.context.accepted.map { $0.preemption != .none } ?? false
        // The vault may have been locked since the answer was sent.
        guard let cacheKey, isNews, services.shared.policy.current.mayKeep(cacheKey.credential)
        else { return }
        let scopes = accepted.offer.authenticator.scopes(
            of: accepted.offer.challenge, at: origin, challengedTarget: String(decoding: path, as: UTF8.self))
        for scope in scopes { services.shared.acceptedAnswers.add(.init(accepted, scope: scope), key: cacheKey) }
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

extension ExchangeDriver: AnsweredRequest {
    var method: String { head.methodText }
    var target: String { String(decoding: path, as: UTF8.self) }

    func readContent(_ read: (UnsafeRawBufferPointer) -> Void) -> Bool {
        guard body.hasEnded, !body.hasLostItsStart, !body.hasSpooledContent else { return false }
        for piece in body.buffered { piece.withUnsafeReadableBytes(read) }
        return true
    }

    var answerServices: AnswerServices { services.shared.answers }

    var answerInputs: AnswerInputs {
        AnswerInputs(
            fileTime: WallClock.fileTime(), random: { Randomness.bytes($0) }, nonces: answerServices.nonces,
            nonceToAnswer: dialogue?.nonce)
    }

    var channelBinding: ChannelBinding? {
        let tls = route.challenger == nil ? connection?.tls : connection?.forwarderTLS
        return tls?.channelBinding
    }

    var trustObstacle: Refusal? {
        trustIsInForce ? nil : "the decision about the origin's certificate has ended"
    }

    var clientObstacle: Refusal? { session.isStillSameUser() ? nil : "the client is no longer there" }

    var mayBegin: Bool { !body.hasLostItsStart }

    var observedPath: String? { String(decoding: path.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self) }

    func credentialDecision(in space: AuthenticationSpace) -> CredentialDecision {
        route.credentialDecision(in: space)
    }

    /// If an origin rejects the credential of its line, the proxy's caller may supply another one, for this origin
    /// alone.
    func question(insteadOf refused: PasswordCredential, in space: AuthenticationSpace) -> Later.Question? {
        guard let supplied = services.shared.delegateCredentials else { return nil }
        return { done in
            Task { done(await supplied.ask(insteadOf: refused, for: space)?.credential) }
        }
    }

    func decisionBegins() {
        mode = .deciding
        if delivery.buffered != nil, dialogue?.since == nil { beginDialogue().since = services.now }
    }

    func uses(_ credential: CredentialReference) { useConnections(of: credential) }

    func wasAnswered(in space: AuthenticationSpace, with credential: CredentialReference) {
        record.answered(space.scheme.rawValue, with: credential)
    }

    func tokenFailed() {
        if case .preparing = mode, delivery.buffered == nil { delivery.restore(dialogue?.lastChallenge) }
    }

    func forgetAccepted() {
        if let cacheKey { services.shared.acceptedAnswers.removeAll(of: cacheKey) }
    }

    func beginsAnew() { record.explain(nil) }
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
