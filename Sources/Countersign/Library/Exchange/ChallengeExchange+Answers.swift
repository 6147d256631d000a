// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignChallenges
import CountersignSitePolicy
import Dispatch

/// The answers to challenges, and the consequences of their outcome.
extension ChallengeExchange {
    /// Uses an enrolled credential only if the breaker permits it, even if the program stored it since it was given
    /// out. Credentials that the program created are not restricted.
    func answer(with credential: Credential?) -> CredentialDecision {
        guard let credential else {
            return .performDefaultHandling(
                reason: Refusal(.noCredential, "the answer came without a credential"))
        }
        if let reference = credential.reference, let space {
            let key = Breaker.Key(space: space, credential: reference)
            if case .refused(let reason) = permit.requestAtOnce(key, of: controller.breaker) {
                permit.refusal = controller.nothing(
                    reason, for: key, at: rule, under: controller.keeper.policy.current)
                return .performDefaultHandling(reason: reason)
            }
        } else {
            permit.end(.inconclusive)
        }
        let reference = credential.reference ?? CredentialReference(name: "of the program", source: .program)
        switch credential {
        case .password(let user, let password):
            return .useCredential(
                .password(
                    PasswordCredential(
                        name: reference.name, user: user, password: password.secret, source: reference.source,
                        tag: reference.tag)))
        case .token(let token):
            return .useCredential(
                .token(
                    TokenCredential(
                        name: reference.name, token: token.stored, source: reference.source, tag: reference.tag)))
        case .identity(let identity):
            return .useCredential(.identity(named: identity.name))
        }
    }

    /// The answer that needs no question to a delegate: a device certificate or a ticket. Otherwise nil.
    func ownDecision(_ question: CredentialRequest) -> CredentialDecision? {
        let policy = controller.keeper.policy.current
        let scheme = question.offer.authenticator
        let decision = scheme.proof(for: question, from: OwnProofs(policy: policy, rule: rule))
        guard case .useCredential(let credential)? = decision, let reference = credential.reference else {
            return decision
        }
        func request() -> BreakerPermit.Permission? {
            scheme.permitKey(of: reference, in: question.space).map {
                permit.requestAtOnce($0, of: controller.breaker)
            }
        }
        guard case .refused? = request() else { return decision }
        if let look = scheme.secondLook(for: reference) {
            let isKnown = DispatchSemaphore(value: 0)
            look.start { isKnown.signal() }
            _ = isKnown.wait(timeout: .now() + Self.tokenLimit)
        }
        guard case .refused(let reason)? = request() else { return decision }
        permit.refusal = ChallengeError(
            .nothingToAnswerWith, reason, of: UnansweredRequest(question.space.origin, rule, question.space.scheme),
            under: policy)
        return .performDefaultHandling(reason: reason)
    }

    func conclude(_ outcome: ExchangeMachine.Outcome) -> Outcome {
        switch outcome {
        case .notChallenged:
            permit.end(.inconclusive)
            return .notChallenged
        case .accepted:
            permit.end(machine.context.source.acceptsAnswer(status: status) ? .accepted : .unknown)
            return .accepted
        case .handedBack(let checks):
            permit.end(.inconclusive)
            return .handedBack(
                permit.refusal
                    ?? ChallengeError(
                        checks, of: UnansweredRequest(origin, rule, space?.scheme),
                        under: controller.keeper.policy.current, isEnabled: isEnabled))
        case .rejected(let space, let credential, _):
            guard credential.source != .program else {
                permit.end(.inconclusive)
                return .rejected
            }
            if let ticket = permit.key, ticket.credential.isTicket {
                permit.end(.rejected)
                return .rejected
            }
            // An enrolled credential is reported to the breaker even if the permit has expired.
            let rejected = Breaker.Key(space: space, credential: credential)
            let key = permit.key.flatMap { $0 == rejected ? $0 : nil } ?? rejected
            permit.hasBeenReported()
            let isInvalid = machine.hasInvalidCredential || permit.invalidToken == credential
            let error = controller.rejected(
                key, for: permit.request, isInvalid ? .invalid : .rejected,
                at: ProtectionSpace(space), line: rule)
            guard controller.breaker.isRejected(key) else {
                controller.listeners.tell(.handedBack(ProtectionSpace(space), error))
                return .handedBack(error)
            }
            return .rejected
        }
    }
}

/// The proofs for a challenge at a site with this line that need no question to a delegate.
private struct OwnProofs: ProofSource {
    let policy: Policy
    let rule: SiteRule?

    func enrolled(in space: AuthenticationSpace) -> CredentialDecision? { nil }

    var ticket: CredentialDecision? {
        rule.map { policy.ticketDecision(for: $0) } ?? .performDefaultHandling(reason: .unlisted)
    }

    func device(for challenge: Challenge) -> CredentialDecision? {
        rule.map { policy.deviceDecision(for: challenge, $0, now: ChallengeController.now()) }
            ?? .performDefaultHandling(reason: .unlisted)
    }
}
