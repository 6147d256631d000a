// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import NIOCore
import CountersignUpstream

/// If an origin rejects the credential of its line, the proxy's caller may supply another one, for this origin alone.
extension ExchangeDriver {
    /// How often one exchange may request a replacement.
    private static let maximumQuestions = 3

    /// The credential for a challenge of `space`, or its replacement.
    func credentialDecision(in space: AuthenticationSpace) -> CredentialDecision {
        if let replacement = dialogue?.delegateCredential, space.scheme.uses(.password(replacement)) {
            return .useCredential(.password(replacement))
        }
        let decision = route.credentialDecision(in: space)
        // The exchange keeps the policy with which it started.
        if let renewed = dialogue?.renewedToken, case .useCredential(.token(let token)) = decision,
            token.name == renewed.name
        {
            return .useCredential(.token(renewed))
        }
        return decision
    }

    /// Requests a replacement for a credential that the origin or the breaker refused. Returns whether it did. If so,
    /// `answered` is called with the result, on the loop and after this call has returned, unless the exchange has
    /// ended by then.
    private func asks(
        insteadOf refused: PasswordCredential, for space: AuthenticationSpace,
        answered: @escaping (PasswordCredential?) -> Void
    ) -> Bool {
        guard let supplied = services.shared.delegateCredentials else { return false }
        let dialogue = beginDialogue()
        guard dialogue.questionsAsked < Self.maximumQuestions else { return false }
        dialogue.questionsAsked += 1
        connection?.pauseReading()
        // The time a person needs must not count as the origin's.
        dialogue.since = nil
        let gate = services.gate
        let driver = NIOLoopBound(self, eventLoop: services.loop)
        let tell = NIOLoopBound(answered, eventLoop: services.loop)
        Task {
            let answer = await supplied.ask(insteadOf: refused, for: space)
            gate.execute {
                guard case .deciding = driver.value.mode else { return }
                driver.value.use(answer?.credential)
                tell.value(answer?.credential)
            }
        }
        return true
    }

    /// Handles the breaker's refusal of `credential`, which the machine requested for `challenge`. Only passwords are
    /// replaced.
    func refused(_ credential: EnrolledCredential, _ challenge: CredentialRequest, reason: Refusal) {
        if case .password(let password) = credential {
            let isAsked = asks(insteadOf: password, for: challenge.space) { [self] answer in
                guard answer == nil else { return decide(challenge) }
                run(exchange.decisionReceived(.performDefaultHandling(reason: reason)))
            }
            if isAsked { return }
        }
        run(exchange.decisionReceived(.performDefaultHandling(reason: reason)))
    }

    /// Requests a replacement for the credential of `reference`, which the origin has rejected, while its 401 is held.
    /// Returns whether it did. With a replacement, the request is sent again; without one, `otherwise` is called to
    /// deliver the 401.
    func asksAgain(
        after reference: CredentialReference, in space: AuthenticationSpace, otherwise: @escaping () -> Void
    ) -> Bool {
        guard case .deciding = mode, !body.hasLostItsStart,
            case .useCredential(.password(let refused)) = credentialDecision(in: space), refused.reference == reference
        else { return false }
        return asks(insteadOf: refused, for: space) { [self] answer in
            guard answer != nil, !body.hasLostItsStart else { return otherwise() }
            dialogue?.tokens = nil
            sentField = nil
            record.explain(nil)
            var context = exchange.context
            context.accepted = nil
            exchange = ExchangeMachine(context)
            run(exchange.started())
        }
    }

    /// Continues the exchange with the replacement, if there is one.
    private func use(_ credential: PasswordCredential?) {
        let dialogue = beginDialogue()
        dialogue.since = services.now
        guard let credential else { return }
        dialogue.delegateCredential = credential
        useConnections(of: credential.reference)
    }

    /// From now on, the exchange uses the connections and protection spaces of `credential`.
    func useConnections(of credential: CredentialReference) {
        guard acquisition.slot.key.credential != credential else { return }
        acquisition.use(route.slot(like: acquisition.slot.key, with: credential))
    }
}
