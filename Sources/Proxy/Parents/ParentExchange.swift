// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignChallenges
import CountersignCryptography
import CountersignHTTP1
import CountersignNegotiate
import CountersignParents
import CountersignSitePolicy
import CountersignTLS
import CountersignUpstream
import NIOCore

/// The client's own Proxy-Authorization, for a parent that the proxy does not answer.
struct ClientField: SecretFieldValue {
    private let value: Secret

    init(_ text: String) { value = Secret(utf8: text) }

    var byteCount: Int { value.count }

    func forEachPart(_ write: (UnsafeRawBufferPointer) -> Void) { value.withBytes { write($0) } }
}

/// The exchange of the CONNECT requests of one tunnel with a parent that may challenge them: like an
/// ``ExchangeDriver``, it reports events to an ``ExchangeMachine`` and runs the one action that the machine returns.
final class ParentExchange: ParentAnswering {
    private let paths: ParentPaths
    private let services: LoopServices
    private let policy: Policy
    private let site: Origin
    private let rule: SiteRule?
    private let authority: String
    /// The client's own field, if the proxy does not answer the parent.
    private let clientField: ClientField?
    private var machine: ExchangeMachine
    /// Of the connection in use, if it has TLS.
    private var binding: ChannelBinding?
    private var tokens: (any TokenDialogue)?
    /// Waits for the connection of its dialogue.
    private var opening: TokenRequest?
    private var permit: BreakerAttempt?
    /// The client has left, and the parent's verdict is awaited for the breaker alone.
    private var isLate = false
    private var sent: AuthorizationField?
    /// Waits for the next action that the tunnel performs.
    private var completion: ((ParentAnswer) -> Void)?
    /// Waits for the verification of the parent's last token.
    private var verified: ((String?) -> Void)?

    /// `authority` is the target of the CONNECT.
    init(
        _ parent: ParentProxy, authority: String, clientAuthorization: String?, _ paths: ParentPaths,
        _ services: LoopServices
    ) {
        self.paths = paths
        self.services = services
        self.authority = authority
        site = parent.site
        policy = services.shared.policy.current
        let verdict = policy.sites.verdict(for: site)
        rule = if case .answer(let rule) = verdict { rule } else { nil }
        clientField = rule == nil ? clientAuthorization.map(ClientField.init) : nil
        var context = ParentPaths.context(at: site, policy, hasTLS: parent.kind == .https, services.shared)
        if rule?.preempts == true, let accepted = paths.acceptedAnswer(at: site),
            accepted.offer.authenticator.usesTicket
                || services.shared.breaker.mayPreempt(
                    Breaker.Key(space: accepted.space, credential: accepted.credential))
        {
            context.accepted = accepted
        }
        machine = ExchangeMachine(context)
    }

    private var tag: Breaker.RequestTag { Breaker.RequestTag(method: method, target: authority) }

    // MARK: Events of the tunnel

    func secured(by tls: TLSSummary) { binding = tls.channelBinding }

    func begin(completion: @escaping (ParentAnswer) -> Void) {
        self.completion = completion
        run(machine.started())
    }

    func openDialogue(completion: @escaping (ParentAnswer) -> Void) {
        guard let request = opening else { return completion(.giveUp(reason: nil)) }
        opening = nil
        self.completion = completion
        compute(request)
    }

    func received(_ response: ConnectResponse, completion: @escaping (ParentAnswer) -> Void) {
        self.completion = completion
        permit?.awaitsVerdict = false
        run(
            machine.responseReceived(
                status: response.status, challengeFields: response.challengeFields,
                informationFields: response.fields.values(of: .proxyAuthenticationInfo), sent: sent))
    }

    func opened(_ head: FieldLines, completion: @escaping (String?) -> Void) {
        verified = completion
        permit?.awaitsVerdict = false
        run(
            machine.responseReceived(
                status: 200, challengeFields: head.challengeFields(of: .parentProxy),
                informationFields: head.values(of: .proxyAuthenticationInfo), sent: sent))
    }

    func connectionLost() -> Bool { connectionLost(.unanswered) }

    func connectionLost(afterStatus status: Int) -> Bool {
        connectionLost(.unusableResponse(status: status, otherwise: .unanswered))
    }

    /// Returns whether another parent may be tried.
    private func connectionLost(_ result: Breaker.Result) -> Bool {
        guard let permit else {
            loseUnaskedAnswer(result)
            return true
        }
        guard permit.awaitsVerdict else { return true }
        endPermit(result)
        return false
    }

    /// An answer that was sent before a challenge got no response. The parent may have counted it all the same, so the
    /// breaker decides whether it is sent ahead again.
    private func loseUnaskedAnswer(_ result: Breaker.Result) {
        guard sent != nil, let answer = machine.unaskedAnswer else { return }
        sent = nil
        services.shared.breaker.ended(
            Breaker.Key(space: answer.space, credential: answer.credential).used(by: Breaker.Key.free), for: tag,
            result)
    }

    func clientLeft() -> Bool {
        guard let permit, permit.awaitsVerdict, !permit.key.credential.isTicket, !isLate, !services.isStopped,
            services.lateVerdicts < LateVerdict.maximumCount
        else { return false }
        isLate = true
        services.lateVerdicts += 1
        return true
    }

    func ended() {
        if isLate { services.lateVerdicts -= 1 }
        isLate = false
        completion = nil
        verified = nil
        loseUnaskedAnswer(.unknown)
        sent = nil
        tokens = nil
        // It ends as it is.
        permit = nil
    }

    // MARK: Actions of the machine

    private func run(_ action: ExchangeMachine.Action) {
        switch action {
        case .send(let answer): send(answer, isOpening: false)
        case .sendOpening(let answer): send(answer, isOpening: true)
        case .ask(let request):
            if let refused = request.refused {
                services.shared.breaker.ended(
                    Breaker.Key(space: refused.space, credential: refused.credential), for: tag, .challengedUnasked)
            }
            decide(request)
        case .computeToken(let request) where request.step == .open:
            opening = request
            take(.openDialogue)
        case .computeToken(let request): compute(request)
        case .deliver(let outcome): conclude(outcome)
        case .fail(let failure): give(failure.reason)
        case .wait: break
        }
    }

    private func send(_ answer: Answer?, isOpening: Bool) {
        guard !isLate else { return give(nil) }
        sent = answer?.field(
            for: self, AnswerInputs(fileTime: WallClock.fileTime(), random: { Randomness.bytes($0) }))
        guard answer == nil || sent != nil else {
            return run(machine.replayImpossible(reason: "the answer depends on content"))
        }
        // An opening contains nothing of the credential.
        permit?.awaitsVerdict = answer != nil && !isOpening
        let field: (any SecretFieldValue)? = if let sent { sent } else { clientField }
        take(.send(field, onSameConnection: machine.requiresSameConnection))
    }

    private func take(_ answer: ParentAnswer) {
        let completion = self.completion
        self.completion = nil
        completion?(answer)
    }

    /// The exchange ends with the parent's last response, or with none that can be used.
    private func give(_ reason: String?) {
        endPermit(.inconclusive)
        if let verified {
            self.verified = nil
            return verified(reason)
        }
        take(.giveUp(reason: reason))
    }

    /// The third check, and the breaker's permission.
    private func decide(_ request: CredentialRequest) {
        guard let rule else {
            return run(
                machine.decisionReceived(
                    .performDefaultHandling(reason: Refusal(.notListed, "the parent is not on the list"))))
        }
        let usesTicket = request.offer.authenticator.usesTicket
        let decision =
            usesTicket
            ? policy.ticketDecision(for: rule)
            : policy.credentialDecision(for: rule, in: request.space) { [services] credential in
                services.shared.breaker.isRejected(Breaker.Key(space: request.space, credential: credential))
            }
        guard case .useCredential(let credential) = decision, let reference = credential.reference else {
            return run(machine.decisionReceived(decision))
        }
        let key = Breaker.Key(
            space: request.space,
            credential: usesTicket
                ? reference.ticket(version: KerberosTickets.shared.version(of: reference), at: site) : reference)
        if permit?.key == key { return run(machine.decisionReceived(decision)) }
        endPermit(.inconclusive)
        let exchange = NIOLoopBound(self, eventLoop: services.loop)
        let permission = services.shared.breaker.request(key, for: tag, inAnswerTo: request.offered) {
            [gate = services.gate] in
            gate.execute { if exchange.value.completion != nil { exchange.value.decide(request) } }
        }
        switch permission {
        case .wait: break
        case .refused(let reason), .unsuitable(let reason):
            run(machine.decisionReceived(.performDefaultHandling(reason: reason)))
        case .permitted(let attempt):
            permit = BreakerAttempt(key.used(by: attempt), for: tag, permittedBy: services.shared.breaker)
            run(machine.decisionReceived(decision))
        }
    }

    private func compute(_ request: TokenRequest) {
        if request.step == .open {
            do throws(AuthenticationError) {
                tokens = try request.offer.authenticator.makeDialogue(request.credential, machine.context)
            } catch {
                return failed(error)
            }
        }
        let inputs = AnswerInputs(fileTime: WallClock.fileTime(), random: { Randomness.bytes($0) })
        switch tokens?.take(request.step, binding: binding, inputs) {
        case .computed(let token): run(machine.tokenComputed(token))
        case .failed(let error): failed(error)
        case .elsewhere(let start):
            let exchange = NIOLoopBound(self, eventLoop: services.loop)
            start { [gate = services.gate] result in
                gate.execute {
                    let exchange = exchange.value
                    // The tunnel may have been abandoned in the meantime.
                    guard exchange.completion != nil || exchange.verified != nil else { return }
                    switch result {
                    case .success(let token): exchange.run(exchange.machine.tokenComputed(token))
                    case .failure(let error): exchange.failed(error)
                    }
                }
            }
        case nil: failed(AuthenticationError(.tokenFailed, "a token came before the dialogue began"))
        }
    }

    private func failed(_ error: AuthenticationError) {
        tokens = nil
        if machine.roundsAnswered == 0, machine.context.accepted != nil { paths.forget(site) }
        run(machine.tokenFailed(error))
    }

    // MARK: Outcomes

    private func conclude(_ outcome: ExchangeMachine.Outcome) {
        let breaker = services.shared.breaker
        switch outcome {
        case .notChallenged: give(nil)
        case .accepted(let answer):
            if answer !== machine.context.accepted { paths.remember(answer, at: site) }
            if permit == nil {
                breaker.acceptedUnasked(Breaker.Key(space: answer.space, credential: answer.credential), for: tag)
            }
            endPermit(.accepted)
            give(nil)
        case .handedBack(let checks): give(checks.failure)
        case .rejected(let space, let credential, let checks):
            let result: Breaker.Result = machine.hasInvalidCredential ? .invalid : .rejected
            if permit == nil {
                breaker.ended(
                    Breaker.Key(space: space, credential: credential).used(by: Breaker.Key.free), for: tag, result)
            }
            endPermit(result)
            paths.forget(site)
            give(checks.failure)
        }
    }

    private func endPermit(_ result: Breaker.Result) {
        permit?.end(result)
        permit = nil
    }
}

extension ParentExchange: RequestDescription {
    var method: String { "CONNECT" }
    var target: String { authority }

    func readContent(_ read: (UnsafeRawBufferPointer) -> Void) -> Bool { true }
}
