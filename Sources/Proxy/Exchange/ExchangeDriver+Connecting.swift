// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignTLS
import CountersignUpstream

/// Getting a connection for the next request, and learning why its origin is trusted.
extension ExchangeDriver {
    func acquire(_ step: Step) {
        dropConnection()
        if let connection = parentConnection(for: step) { return use(connection, acquisition.trust, for: step) }
        let open = acquisition.openConnection(
            route, session, services, isFresh: isFresh, mayBeAnswered: mayBeAnswered, usesPool: !clientBindsConnection,
            usesBound: !withholdsCredential || clientBindsConnection, withholdsIdentity: withholdsCredential,
            needsHTTP1: needsHTTP1)
        if let open { return use(open.connection, open.outcome, for: step) }
        connect(step)
    }

    /// Nothing of this exchange has been sent.
    var isFresh: Bool { lastStep == nil && answers.held?.hasTokens != true }

    /// The reason to trust the origin's certificate still holds. A trust exception may have been removed, have expired,
    /// or have lost its permission to answer challenges.
    var trustIsInForce: Bool {
        acquisition.trust.isInForce(at: origin, services.shared.policy, now: services.shared.wallClock)
    }

    private func connect(_ step: Step) {
        guard needsHTTP1 || mayOpen(orWaitWith: step) else { return }
        let pin = acquisition.pin
        let evaluation = TrustEvaluation(
            origin: origin, isListed: route.isListed, pin: pin, services: services, client: session)
        acquisition.begin(evaluation)
        let chain = services.connector.connect(
            to: origin, tls: policy.originTLS, revocation: route.revocation,
            certificateSource: pin == nil || acquisition.trust.answers ? certificateSource : nil,
            trustSource: evaluation.source,
            services.terms(on: route, needsHTTP1: needsHTTP1)
        ) { result in
            guard case .preparing = self.mode, self.acquisition.end(evaluation) else {
                if case .success(let connection) = result { connection.close() }
                return
            }
            defer { self.letOthersContinue(after: result) }
            switch result {
            case .failure(let error):
                evaluation.cancel()
                if self.continuesWithoutTunnel(after: error) { return }
                self.services.notReached(self.origin, error)
                let giveUp = {
                    self.loseAnswer(.unanswered)
                    self.respond(self.explained(evaluation.refusal(after: error)))
                }
                if !self.waitsForIdentity(after: error, step, giveUp: giveUp) { giveUp() }
            case .success(let connection):
                self.record.learned(revocationOf: connection)
                switch evaluation.finding(connection) {
                case .proceed(let outcome): self.use(connection, outcome, for: step)
                case .undecided: self.refuse(evaluation.refusal, connection)
                case .refused(let response): self.refuse(response, connection)
                }
            }
        }
        acquisition.opens(with: chain, for: evaluation)
    }

    /// Whether this exchange opens a connection now. If another one is opening a connection that both can use, `step`
    /// is taken when that attempt has ended.
    private func mayOpen(orWaitWith step: Step) -> Bool {
        let slot = acquisition.slot
        let mayOpen = slot.mayOpen {
            guard self.isWaitingForOther, case .preparing = self.mode else { return }
            self.isWaitingForOther = false
            self.acquire(step)
        }
        isWaitingForOther = !mayOpen
        if mayOpen, slot.speaksHTTP2 { acquisition.isAwaited(in: slot) }
        return mayOpen
    }

    /// Ends the wait of other exchanges for the connection that this one was opening.
    private func letOthersContinue(after result: Result<any OriginLease, UpstreamError>) {
        guard let slot = acquisition.takeAwaitingSlot() else { return }
        guard case .success(let connection) = result, let http2 = connection.http2 else {
            return slot.hasOpened(isHTTP2: false)
        }
        // Clients that do not share it need not wait for each other.
        let isShared = acquisition.trust.isShared && !connection.hasShownIdentity
        http2.whenSettled { slot.hasOpened(isHTTP2: isShared) }
    }

    /// Lets other exchanges use a connection of HTTP/2 from now on: all of the same key, or those of this client if the
    /// connection acts for it.
    private func share(_ connection: any OriginLease) {
        guard let http2 = connection.http2, !http2.hasHome, !connection.lacksIdentity else { return }
        if connection.hasShownIdentity || !acquisition.trust.isShared {
            http2.isKeptByClient()
            session.keep(http2, for: acquisition.slot.key)
        } else {
            acquisition.slot.share(http2)
        }
    }

    /// The request is sent over HTTP/1.1 from now on, and so are later ones to the origin.
    func requireHTTP1() {
        needsHTTP1 = true
        services.pool.http1Origins.insert(origin, now: services.now)
    }

    /// NTLM authenticates a connection, but the streams of an HTTP/2 connection do not depend on each other. Servers
    /// that offer it over HTTP/2 expect its answer over HTTP/1.1.
    func leaveHTTP2(for step: Step) {
        guard case .openDialogue(let request) = step, !needsHTTP1 else { return }
        let authenticator = request.offer.authenticator
        guard authenticator.bindsConnection, !authenticator.usesTicket else { return }
        if connection?.http2 != nil { requireHTTP1() } else { needsHTTP1 = true }
    }

    /// Gives up the connection that is being opened, if there is one, and the question about it.
    func cancelAttempt() {
        let attempt = acquisition.takeAttempt()
        attempt.evaluation?.cancel()
        attempt.opening?.cancel()
        acquisition.takeAwaitingSlot()?.hasOpened(isHTTP2: nil)
    }

    /// Closes the unused `connection`, and sends the reason to the client. The certificate that an intercepted client
    /// was shown no longer mirrors the origin's, so the client must connect again for a new one.
    private func refuse(_ response: OwnResponse, _ connection: any OriginLease) {
        connection.close()
        loseAnswer(.unanswered)
        if session.connectSite?.isIntercepted == true { client.closeAfterResponse() }
        respond(response)
    }

    private func use(_ connection: any OriginLease, _ outcome: TrustOutcome, for step: Step) {
        let changesTrust = acquisition.changes(with: outcome)
        guard !changesTrust || isFresh else {
            let error = UpstreamError(
                .trustChanged, "\(connection.place): the certificate is not the one that the exchange began with")
            return refuse(OwnResponse(error), connection)
        }
        acquisition.use(connection, outcome)
        record.trusted(under: outcome, on: connection)
        connection.delegate = self
        // The delegate answers certificate requests from now on.
        connection.certificateSource = nil
        if let challenger = route.challenger, !challenger.isReached(by: connection), !isElsewhere {
            return leaveChallenger(connection, outcome)
        }
        guard changesTrust else {
            share(connection)
            return perform(step, on: connection)
        }
        answers.end(.inconclusive)
        record.forgetAnswer()
        acquisition.use(route.slot(under: outcome, mayBeAnswered: mayBeAnswered))
        share(connection)
        if !outcome.answers { body.wantNoRepeat() }
        restart()
    }

    /// The connection leads past the parent whose challenges the exchange answers, because that cannot be reached. If
    /// it leads to another listed one, that one is answered; else it gets nothing that is meant for the first.
    private func leaveChallenger(_ connection: any OriginLease, _ outcome: TrustOutcome) {
        guard isFresh else {
            let error = UpstreamError(.closedBeforeResponse, "the parent proxy is gone in the middle of an exchange")
            return refuse(OwnResponse(error), connection)
        }
        services.discard(route)
        answers.end(.inconclusive)
        record.forgetAnswer()
        let other = currentRoute
        if let challenger = other.challenger, challenger.isReached(by: connection) {
            return restart(on: other, under: outcome)
        }
        guard other.refusal == nil else { return restart(on: other, under: outcome) }
        isElsewhere = true
        var context = route.context
        context.site = .no("the request went another way")
        var machine = ExchangeMachine(context)
        _ = machine.started()
        answers.restart(as: machine)
        perform(.transmit(nil, isOpening: false), on: connection)
    }

    /// The route that the request would take now.
    var currentRoute: Route {
        services.route(of: head, path, on: services.route(to: origin, for: route.client))
    }

    /// A parent that opens no tunnel to a listed http site gets the request itself. Its challenges are answered then,
    /// and not the site's, so nothing of the site's credential goes out.
    private func continuesWithoutTunnel(after error: UpstreamError) -> Bool {
        guard route.answersSite, error.refusesTunnel else { return false }
        services.tunnelRefused(on: route)
        let other = currentRoute
        guard isFresh, other.challenger != nil else { return false }
        answers.end(.inconclusive)
        record.forgetAnswer()
        restart(on: other, under: acquisition.trust)
        return true
    }

    // MARK: Client certificates

    func originAskedForCertificate(_ request: CertificateRequest, _ answer: @escaping (Identity?) -> Void) {
        guard acquisition.trust.answers, let connection, let certificateSource else { return answer(nil) }
        certificateSource(request, connection, answer)
    }

    private var certificateSource: CertificateSource? {
        rule.map { rule in
            certificateDecliner(rule)
                ?? CertificateRequestAnswerer.source(for: rule, at: origin, services: services, client: session) {
                    [weak self] in self?.acquisition.trust
                }
        }
    }

    /// Whether `step` is repeated once another identity is in force. If there is no other, `giveUp` is called.
    func waitsForIdentity(after error: UpstreamError, _ step: Step?, giveUp: @escaping () -> Void) -> Bool {
        guard let step, !body.hasLostItsStart, !answers.machine.requiresSameConnection else { return false }
        let waits = acquisition.retriesWithOtherIdentity(after: error, services) { isReplaced in
            guard case .preparing = self.mode else { return }
            if isReplaced { self.drained(step) } else { giveUp() }
        }
        if waits { mode = .preparing }
        return waits
    }

    /// Reports an identity as accepted if the origin's first response on the connection is not an error.
    func noteAcceptedIdentity(status: Int) {
        guard let connection, connection.requestCount == 1, let identity = connection.shownIdentity, status < 400 else {
            return
        }
        services.shared.identityRefresher?.accepted(identity)
    }
}
