// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignChallenges
import CountersignCryptography
import CountersignHTTP1
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
/// ``ExchangeDriver``, it reports events to an `AnswerDialogue` and runs the one action that the dialogue returns.
final class ParentExchange: ParentAnswering {
    private let paths: ParentPaths
    private let services: LoopServices
    let policy: Policy
    private let site: Origin
    let rule: SiteRule?
    private let authority: String
    /// The client's own field, if the proxy does not answer the parent.
    private let clientField: ClientField?
    private var answers: AnswerDialogue
    /// Of the connection in use, if it has TLS.
    private(set) var channelBinding: ChannelBinding?
    /// Waits for the connection of its dialogue.
    private var opening: TokenRequest?
    /// The client has left, and the parent's verdict is awaited for the breaker alone.
    private var isLate = false
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
        // For a scheme with a token per request, the breaker decides before the token is computed.
        if rule?.preempts == true, let accepted = paths.acceptedAnswer(at: site),
            accepted.preemption == .token
                || services.shared.breaker.mayPreempt(
                    Breaker.Key(space: accepted.space, credential: accepted.credential))
        {
            context.accepted = accepted
        }
        answers = AnswerDialogue(ExchangeMachine(context))
    }

    // MARK: Events of the tunnel

    func secured(by tls: TLSSummary) { channelBinding = tls.channelBinding }

    func begin(completion: @escaping (ParentAnswer) -> Void) {
        self.completion = completion
        run(answers.started(for: self))
    }

    func openDialogue(completion: @escaping (ParentAnswer) -> Void) {
        guard let request = opening else { return completion(.giveUp(reason: nil)) }
        opening = nil
        self.completion = completion
        run(answers.connected(for: request, self))
    }

    func received(_ response: ConnectResponse, completion: @escaping (ParentAnswer) -> Void) {
        self.completion = completion
        received(
            response.status, response.challengeFields, response.fields.values(of: .proxyAuthenticationInfo))
    }

    func opened(_ head: FieldLines, completion: @escaping (String?) -> Void) {
        verified = completion
        received(200, head.challengeFields(of: .parentProxy), head.values(of: .proxyAuthenticationInfo))
    }

    private func received(_ status: Int, _ challenges: [ChallengeField], _ information: [String]) {
        guard isLate else {
            return run(
                answers.responseReceived(
                    status: status, challengeFields: challenges, informationFields: information, for: self))
        }
        let outcome = answers.lateResponseReceived(
            status: status, challengeFields: challenges, informationFields: information, for: self)
        if let outcome { note(outcome) }
        give(nil)
    }

    func connectionLost() -> Bool { answers.mayGoOn(withoutResponse: .unanswered, for: self) }

    func connectionLost(afterStatus status: Int) -> Bool {
        answers.mayGoOn(withoutResponse: .unusableResponse(status: status, otherwise: .unanswered), for: self)
    }

    func clientLeft() -> Bool {
        guard answers.awaitsVerdict, !isLate, !services.isStopped,
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
        answers.lost(.unknown, for: self)
        answers.forget()
    }

    // MARK: Actions of the dialogue

    private func run(_ action: AnswerDialogue.Action) {
        switch action {
        case .send(let answer): send(answer, isOpening: false)
        case .sendOpening(let answer): send(answer, isOpening: true)
        case .openDialogue(let request):
            opening = request
            take(.openDialogue)
        case .later(let later): wait(for: later)
        case .deliver(let outcome):
            note(outcome)
            give(outcome.failure)
        case .fail(let failure): give(failure.reason)
        case .wait: break
        }
    }

    private func send(_ answer: Answer?, isOpening: Bool) {
        let field = answer?.field(for: self, answerInputs)
        guard answer == nil || field != nil else {
            return run(answers.replayImpossible(reason: "the answer depends on content", for: self))
        }
        answers.sends(field, isOpening: isOpening)
        let sent: (any SecretFieldValue)? = if let field { field } else { clientField }
        take(.send(sent, onSameConnection: answers.machine.requiresSameConnection))
    }

    private func wait(for later: Later) {
        let exchange = NIOLoopBound(self, eventLoop: services.loop)
        later.start { [gate = services.gate] result in
            gate.execute {
                let exchange = exchange.value
                // The tunnel may have been abandoned in the meantime.
                guard exchange.completion != nil || exchange.verified != nil else { return }
                exchange.run(exchange.answers.resumed(later, with: result, for: exchange))
            }
        }
    }

    private func take(_ answer: ParentAnswer) {
        let completion = self.completion
        self.completion = nil
        completion?(answer)
    }

    /// The exchange ends with the parent's last response, or with none that can be used.
    private func give(_ reason: String?) {
        answers.end(.inconclusive)
        if let verified {
            self.verified = nil
            return verified(reason)
        }
        take(.giveUp(reason: reason))
    }

    /// Records the outcome for later tunnels.
    private func note(_ outcome: ExchangeMachine.Outcome) {
        if case .accepted(let answer) = outcome, answer !== answers.machine.context.accepted {
            paths.remember(answer, at: site)
        }
    }
}

extension ParentExchange: AnsweredRequest {
    var method: String { "CONNECT" }
    var target: String { authority }

    func readContent(_ read: (UnsafeRawBufferPointer) -> Void) -> Bool { true }

    var answerServices: AnswerServices { services.shared.answers }

    var answerInputs: AnswerInputs {
        AnswerInputs(fileTime: WallClock.fileTime(), random: { Randomness.bytes($0) })
    }

    /// A client that answers the parent itself wants no help.
    var isObserved: Bool { clientField == nil }

    var observedPath: String? { nil }

    func credentialDecision(in space: AuthenticationSpace) -> CredentialDecision {
        guard let rule else {
            return .performDefaultHandling(reason: Refusal(.notListed, "the parent is not on the list"))
        }
        return policy.credentialDecision(for: rule, in: space) { [services] credential in
            services.shared.breaker.isRejected(Breaker.Key(space: space, credential: credential))
        }
    }

    func forgetAccepted() { paths.forget(site) }
}

extension ExchangeMachine.Outcome {
    /// Why the response is delivered unanswered, or although it was answered.
    fileprivate var failure: String? {
        switch self {
        case .notChallenged, .accepted: nil
        case .handedBack(let checks), .rejected(_, _, let checks): checks.failure
        }
    }
}
