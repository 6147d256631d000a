// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignChallenges
import NIOCore

/// An access token that has expired is renewed before it is sent. One that the origin calls invalid is renewed once.
extension ExchangeDriver {
    /// Whether `credential`, with which `challenge` is about to be answered, is renewed first. If so, the decision
    /// about the challenge follows later.
    func renewsToken(_ credential: CredentialReference, for challenge: CredentialRequest) -> Bool {
        guard dialogue?.hasRenewedToken != true,
            policy.hasExpired(credential, now: services.shared.wallClock)
        else { return false }
        return renews(credential, .expired) { [self] outcome in
            if case .unavailable(let reason) = outcome {
                return run(
                    exchange.decisionReceived(.performDefaultHandling(reason: Refusal(.noCredential, reason))))
            }
            decide(challenge)
        }
    }

    /// Whether `credential`, which the breaker refuses for `reason`, is renewed: the origin has called it invalid when
    /// it could not be renewed.
    func renewsToken(
        _ credential: CredentialReference, for challenge: CredentialRequest, refusedFor reason: Refusal
    ) -> Bool {
        guard dialogue?.hasRenewedToken != true, policy.isAccessToken(credential) else { return false }
        return renews(credential, .invalid) { [self] outcome in
            if case .renewed = outcome { return decide(challenge) }
            run(exchange.decisionReceived(.performDefaultHandling(reason: reason)))
        }
    }

    /// Whether the exchange is repeated with a new token, because the origin has called the present one invalid. The
    /// breaker does not count the old one then: it has expired early, or was revoked.
    func renewsToken(after outcome: ExchangeMachine.Outcome) -> Bool {
        guard case .rejected(let space, let credential, let checks) = outcome, exchange.hasInvalidCredential,
            dialogue?.hasRenewedToken != true, case .deciding = mode, !body.hasLostItsStart,
            policy.isAccessToken(credential)
        else { return false }
        return renews(credential, .invalid) { [self] result in
            guard case .renewed = result, !body.hasLostItsStart else {
                // A copy here: a variable of the function would be allocated for every outcome.
                var checks = checks
                if case .unavailable(let reason) = result { checks.credential = .no(Refusal(.noCredential, reason)) }
                return run(.deliver(.rejected(space, credential: credential, checks)))
            }
            sentField = nil
            record.explain(nil)
            var context = exchange.context
            context.accepted = nil
            exchange = ExchangeMachine(context)
            run(exchange.started())
        }
    }

    /// Returns whether the renewal was requested. If so, `done` is called on the loop after this call has returned,
    /// unless the exchange has ended by then.
    private func renews(
        _ credential: CredentialReference, _ reason: TokenRenewer.Reason,
        done: @escaping (TokenRenewer.Outcome) -> Void
    ) -> Bool {
        guard let renewer = services.shared.tokenRenewer else { return false }
        let dialogue = beginDialogue()
        dialogue.hasRenewedToken = true
        connection?.pauseReading()
        // Others need not wait for the provider. Without a new token, the rejection is reported after all.
        endPermit(.inconclusive)
        // The provider's time must not count as the origin's.
        dialogue.since = nil
        let gate = services.gate
        let driver = NIOLoopBound(self, eventLoop: services.loop)
        let tell = NIOLoopBound(done, eventLoop: services.loop)
        Task {
            let outcome = await renewer.renew(credential, reason)
            gate.execute {
                guard case .deciding = driver.value.mode else { return }
                driver.value.take(outcome)
                tell.value(outcome)
            }
        }
        return true
    }

    private func take(_ outcome: TokenRenewer.Outcome) {
        let dialogue = beginDialogue()
        dialogue.since = services.now
        guard case .renewed(let token) = outcome else { return }
        dialogue.renewedToken = token
        useConnections(of: token.reference)
    }
}
