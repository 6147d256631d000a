// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignCryptography
import NIOCore
import CountersignNTLM
import CountersignSitePolicy
import CountersignTLS
import CountersignUpstream

extension ExchangeDriver {
    /// The third check, and the breaker's word. Answers the machine now, or when another attempt with the same
    /// credential is over.
    func decide(_ challenge: CredentialRequest) {
        guard case .deciding = mode else { return }
        guard trustIsInForce else {
            return run(
                exchange.decisionReceived(
                    .performDefaultHandling(reason: "the decision about the origin's certificate has ended")))
        }
        guard case .useCredential(.password(let credential)) = passwordDecision else {
            return run(exchange.decisionReceived(passwordDecision))
        }
        guard session.isStillSameUser() else {
            return run(exchange.decisionReceived(.performDefaultHandling(reason: "the client is no longer there")))
        }
        let attempt = Breaker.Key(
            origin: challenge.space.origin, credential: credential.name, generation: credential.generation)
        let driver = NIOLoopBound(self, eventLoop: services.loop)
        let loop = services.loop
        let permission =
            dialogue?.attempt == attempt
            ? .go : services.shared.breaker.request(attempt) { loop.execute { driver.value.decide(challenge) } }
        switch permission {
        case .wait:
            connection?.pauseReading()
        case .refused(let reason):
            refused(credential, challenge, reason: reason)
        case .go:
            beginDialogue().attempt = attempt
            record.answered(challenge.space.method.scheme.rawValue, with: credential.name)
            run(exchange.decisionReceived(.useCredential(.password(credential))))
        }
    }

    func endAttempt(_ result: Breaker.Result) {
        guard let dialogue, let attempt = dialogue.attempt else { return }
        dialogue.attempt = nil
        services.shared.breaker.ended(attempt, result)
    }

    // MARK: NTLM

    /// Why no NTLM message can be made of the credential, or nil.
    func obstacle(to kind: OfferKind, _ credential: PasswordCredential) -> String? {
        do throws(NTLMError) {
            _ = try NTLMContext(
                credential: credential, domain: rule?.domain, servicePrincipalName: "HTTP/\(origin.host)",
                channelBinding: nil, workstation: "", framing: kind == .ntlm ? .raw : .spnego)
            return nil
        } catch {
            return error.detail
        }
    }

    /// The first token, bound to the connection that it is about to travel on.
    func negotiate(
        _ kind: OfferKind, _ credential: PasswordCredential, on connection: OriginConnection
    ) -> ExchangeMachine.Action {
        do throws(NTLMError) {
            var context = try NTLMContext(
                credential: credential, domain: rule?.domain,
                servicePrincipalName: rule?.servicePrincipalName ?? "HTTP/\(origin.host)",
                channelBinding: connection.tls?.peerCertificate.map {
                    .tlsServerEndPoint(certificateHash: $0.tlsServerEndPointHash)
                },
                workstation: "", framing: kind == .ntlm ? .raw : .spnego)
            let token = context.negotiate()
            beginDialogue().ntlm = context
            return exchange.tokenComputed(token)
        } catch {
            return exchange.tokenFailed(reason: error.detail)
        }
    }

    /// The last token, out of the origin's challenge.
    func authenticate(_ serverToken: [UInt8]) -> ExchangeMachine.Action {
        guard let dialogue, var ntlm = dialogue.ntlm else {
            return exchange.tokenFailed(reason: "a token came before the dialogue began")
        }
        do throws(NTLMError) {
            let token = try ntlm.authenticate(
                serverToken, now: WallClock.fileTime(), clientChallenge: Randomness.bytes(8),
                exportedSessionKey: Randomness.bytes(16))
            dialogue.ntlm = ntlm
            return exchange.tokenComputed(token)
        } catch {
            dialogue.ntlm = nil
            return exchange.tokenFailed(reason: error.detail)
        }
    }

    /// What the origin sends with its final response (RFC 4559 §5): it proves that the origin knows the password too.
    func finalTokenIsRight() -> Bool {
        guard wasAccepted, dialogue?.ntlm != nil, let fields = delivery.buffered?.head.fields else { return true }
        let tokens = fields.values(of: .wwwAuthenticate).filter { $0.lowercased().hasPrefix("negotiate ") }
        guard let token = tokens.first.flatMap({ Base64.decode($0.dropFirst("negotiate ".count).drop { $0 == " " }) })
        else {
            return tokens.isEmpty
        }
        do throws(NTLMError) {
            try dialogue?.ntlm?.conclude(token)
            return true
        } catch {
            return false
        }
    }

    // MARK: Outcomes

    /// A 101 ends an exchange like any other response.
    func conclude(_ action: ExchangeMachine.Action) {
        if case .deliver(let outcome) = action { conclude(outcome) }
    }

    /// Remembers how the dialogue ended: for the breaker, for the next request, and for the log.
    func conclude(_ outcome: ExchangeMachine.Outcome) {
        observe(outcome)
        switch outcome {
        case .notChallenged:
            endAttempt(.inconclusive)
        case .accepted(let kind, let credential, let realm):
            wasAccepted = true
            // What was sent unasked had been learned before.
            if dialogue?.attempt != nil { learn(kind, realm: realm, credential) }
            record.answered(kind.method.scheme.rawValue, with: credential.name)
            endAttempt(.accepted)
        case .handedBack(let checks):
            record.explain(checks.failure)
            endAttempt(.inconclusive)
        case .rejected(let kind, let credential, let checks):
            record.explain(checks.failure)
            record.answered(kind.method.scheme.rawValue, with: credential.name)
            forgetLearned()
            // What was sent unasked, out of what was learned, can be rejected as well.
            let dialogue = beginDialogue()
            dialogue.attempt =
                dialogue.attempt
                ?? .init(origin: origin, credential: credential.name, generation: credential.generation)
            endAttempt(.rejected)
        }
        noteCertificate()
    }

    private var learnedKey: ProtectionSpaceCache.Key? {
        acquisition.slot.key.credential.map { ProtectionSpaceCache.Key(acquisition.slot.key, $0) }
    }

    private func learn(_ kind: OfferKind, realm: String?, _ credential: CredentialReference) {
        guard let learnedKey, let scope = PathScope(challengedPath: String(decoding: path, as: UTF8.self)),
            let learned = kind.bindsConnection
                ? .ntlm(kind)
                : sentAuthorization.map({
                    ExchangeMachine.Learned.basic($0, realm: realm ?? "", credential: credential)
                })
        else { return }
        services.shared.learned.learn(.init(learned, scope: scope), key: learnedKey)
    }

    private func forgetLearned() {
        if let learnedKey { services.shared.learned.forget(learnedKey) }
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

/// Answers the certificate requests of one listed origin's connection, at the handshake or later, by the three checks.
enum CertificateRequestAnswerer {
    /// For connections whose origin is trusted, or stands under a decision that lets challenges be answered: TLS asks
    /// over no other. `trust` gives on whose word a connection in use is taken; nil while that is being found out.
    static func source(
        for rule: SiteRule, at origin: Origin, services: LoopServices, client: ClientSession,
        trust: @escaping () -> TrustOutcome? = { nil }
    ) -> OriginConnection.CertificateSource {
        { request, connection, answer in
            guard trust()?.isInForce(at: origin, services.shared.policy, now: services.shared.wallClock) != false else {
                return answer(nil)
            }
            let now = services.shared.wallClock()
            let (identity, checks) = services.shared.policy.current.certificateChecks(
                for: request, rule: rule, now: now)
            connection.certificateChecks = checks
            guard client.isStillSameUser() else { return answer(nil) }
            services.shared.observer?.decided(identity?.name, checks, at: origin, rule)
            answer(identity)
        }
    }
}
