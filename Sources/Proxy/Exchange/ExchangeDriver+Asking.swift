// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import NIOCore
import CountersignSitePolicy
import CountersignUpstream

/// Where an origin has refused the credential of its line, the caller may be asked for another one, which is for this
/// origin alone.
extension ExchangeDriver {
    /// How often one exchange asks.
    private static let maximumQuestions = 3

    /// What the site's line has for a password challenge, or what was supplied in its place.
    var passwordDecision: CredentialDecision {
        dialogue?.supplied.map { .useCredential(.password($0)) } ?? route.passwordDecision
    }

    /// The credential was refused, by the origin now or by the breaker: whether the caller is asked for another one.
    /// `answered` is called with what they say, on the loop and never from inside this call, unless the exchange is
    /// over by then.
    private func asks(
        insteadOf refused: PasswordCredential, for space: AuthenticationSpace,
        answered: @escaping (PasswordCredential?) -> Void
    ) -> Bool {
        guard let supplied = services.shared.suppliedCredentials else { return false }
        let dialogue = beginDialogue()
        guard dialogue.questionsAsked < Self.maximumQuestions else { return false }
        dialogue.questionsAsked += 1
        connection?.pauseReading()
        // A person's time is not the origin's.
        dialogue.since = nil
        let loop = services.loop
        let driver = NIOLoopBound(self, eventLoop: loop)
        let tell = NIOLoopBound(answered, eventLoop: loop)
        Task {
            let answer = await supplied.ask(insteadOf: refused, for: space)
            loop.execute {
                guard case .deciding = driver.value.mode else { return }
                driver.value.use(answer?.credential)
                tell.value(answer?.credential)
            }
        }
        return true
    }

    /// The breaker has refused `credential` for a question of the machine's.
    func refused(_ credential: PasswordCredential, _ challenge: CredentialRequest, reason: String) {
        let isAsked = asks(insteadOf: credential, for: challenge.space) { [self] answer in
            guard answer == nil else { return decide(challenge) }
            run(exchange.decisionReceived(.performDefaultHandling(reason: reason)))
        }
        if !isAsked { run(exchange.decisionReceived(.performDefaultHandling(reason: reason))) }
    }

    /// The origin has refused the credential of `reference`, and its 401 is held. Whether that waits for another
    /// credential, with which the request would go out again; without one, `otherwise` goes on with the 401.
    func asksAgain(
        after reference: CredentialReference, at scheme: AuthenticationScheme, otherwise: @escaping () -> Void
    ) -> Bool {
        guard case .deciding = mode, !body.hasLostItsStart,
            case .useCredential(.password(let refused)) = passwordDecision, refused.reference == reference
        else { return false }
        let space = AuthenticationSpace(origin: origin, realm: nil, scheme: scheme)
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

    /// From now on the exchange is about another credential.
    private func use(_ credential: PasswordCredential?) {
        let dialogue = beginDialogue()
        dialogue.since = services.now
        guard let credential else { return }
        dialogue.supplied = credential
        acquisition.use(
            route.slot(
                like: acquisition.slot.key,
                with: credential.reference))
    }
}
