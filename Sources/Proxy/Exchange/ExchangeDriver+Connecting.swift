// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignHTTP1
import NIOCore
import CountersignSitePolicy
import CountersignTLS
import CountersignUpstream

/// A connection for the next round: one that is open, or a new one, and on whose word its origin's certificate is taken.
///
/// Until something has been sent that is a guess. A connection that turns out otherwise, because a standing decision or the
/// delegate speaks for it, has the exchange begin anew on its own terms; after that it may only be what it was.
extension ExchangeDriver {
    func acquire(_ step: Step) {
        dropConnection()
        if trustIsInForce, let connection = open(under: trust, slot) { return take(connection, trust, for: step) }
        for outcome in otherOutcomes where isInForce(outcome) {
            let slot = route.slot(under: outcome, mayBeAnswered: mayBeAnswered)
            if let connection = open(under: outcome, slot) { return take(connection, outcome, for: step) }
        }
        connect(step)
    }

    /// Under what else than was guessed an open connection may be found. Once something was sent, under nothing.
    private var otherOutcomes: [TrustOutcome] {
        guard isFresh, pin == nil, route.isListed, origin.scheme == .https,
            !policy.trustExceptions.isEmpty || !client.consents.isEmpty
        else { return [] }
        let exceptions = policy.trustExceptions(for: origin, now: services.shared.wallClock())
        let consent = client.consents[origin].map { TrustOutcome.delegate(leaf: $0.leaf) }
        return exceptions.map { .exception($0) } + (consent.map { [$0] } ?? [])
    }

    private func open(under outcome: TrustOutcome, _ slot: UpstreamPool.Slot) -> OriginConnection? {
        guard let connection = client.boundConnection(for: slot) ?? lease(from: slot, outcome) else { return nil }
        // A connection that the client went on to by its own word may have other reasons against it than the delegate heard.
        guard outcome.decider != .delegate || connection.tls?.serverTrust.map(consentCovers) == true else {
            connection.close()
            return nil
        }
        return connection
    }

    private func consentCovers(_ trust: ServerTrust) -> Bool {
        trust.isTrusted || client.consents[origin]?.covers(trust) == true
    }

    /// What the origin's certificate is taken on still counts: a standing decision may have been forgotten since, have come to
    /// its end, or have lost its right to answer.
    var trustIsInForce: Bool { isInForce(trust) }

    private func isInForce(_ outcome: TrustOutcome) -> Bool {
        outcome.isInForce(at: origin, services.shared.policy, now: services.shared.wallClock)
    }

    /// Nothing of this exchange has gone out.
    private var isFresh: Bool { lastStep == nil && dialogue?.ntlm == nil }

    private func lease(from slot: UpstreamPool.Slot, _ outcome: TrustOutcome) -> OriginConnection? {
        guard outcome.isShared, !clientBindsConnection, !hasRetried else { return nil }
        return slot.lease(now: services.now)
    }

    private func connect(_ step: Step) {
        let trustEvaluation = TrustEvaluation(
            origin: origin, isListed: route.isListed, pin: pin, services: services, client: client.presence)
        self.trustEvaluation = trustEvaluation
        services.connector.connect(
            to: origin, tls: policy.originTLS,
            certificateSource: pin == nil || trust.answers ? certificateSource : nil,
            trustSource: trustEvaluation.source
        ) { result in
            guard case .preparing = self.mode, self.trustEvaluation === trustEvaluation else {
                if case .success(let connection) = result { connection.close() }
                return
            }
            self.trustEvaluation = nil
            switch result {
            case .failure(let error):
                trustEvaluation.cancel()
                self.services.shared.observer?.ended(error, at: self.origin)
                let giveUp = {
                    self.endAttempt(.inconclusive)
                    self.respond(trustEvaluation.refusal(after: error))
                }
                if !self.waitsForIdentity(after: error, step, giveUp: giveUp) { giveUp() }
            case .success(let connection):
                switch trustEvaluation.finding(connection) {
                case .proceed(let found): self.take(connection, found, for: step)
                case .undecided: self.refuse(trustEvaluation.refusal, connection)
                case .refused(let response): self.refuse(response, connection)
                }
            }
        }
    }

    /// Nothing is sent on the connection, and the client hears why. What it was shown inside a tunnel is no longer right: it is
    /// to come again.
    private func refuse(_ response: OwnResponse, _ connection: OriginConnection) {
        connection.close()
        endAttempt(.inconclusive)
        if case .intercepted = client.role { closesClient = true }
        respond(response)
    }

    private func take(_ connection: OriginConnection, _ found: TrustOutcome, for step: Step) {
        let isOther = found.key != trust.key
        guard !isOther || isFresh else {
            let error = UpstreamError(
                .trustChanged, "\(connection.place): the certificate is not the one that the exchange began with")
            return refuse(OwnResponse(error), connection)
        }
        self.connection = connection
        connection.delegate = self
        if isOther { settle(found) }
        trust = found
        entry.record(found, on: connection)
        // From now on the exchange is asked.
        connection.certificateSource = nil
        if isOther { start() } else { perform(step, on: connection) }
    }

    func originAskedForCertificate(
        _ request: CertificateRequest, _ connection: OriginConnection, _ answer: @escaping (Identity?) -> Void
    ) {
        guard trust.answers, let certificateSource else { return answer(nil) }
        certificateSource(request, connection, answer)
    }

    private var certificateSource: OriginConnection.CertificateSource? {
        rule.map {
            CertificateRequestAnswerer.source(
                for: $0, at: origin, services: services, client: client.presence, trust: { [weak self] in self?.trust })
        }
    }

    /// The exchange of a request that is about to go out, and what it asks for first.
    static func begin(
        _ slot: UpstreamPool.Slot, _ route: Route, clientAuthorizes: Bool, hasBody: Bool, path: ArraySlice<UInt8>,
        client: ClientConnection
    ) -> Route.PreparedExchange {
        guard !clientAuthorizes, slot.key.trust.answers else {
            var context = route.context
            context.clientAuthorizes = clientAuthorizes
            if !slot.key.trust.answers {
                context.site = .no("the origin's certificate is not trusted")
                context.originTrusted = false
            }
            return Route.PreparedExchange(context, hasBody: hasBody)
        }
        return route.preparedExchange(hasBody: hasBody, in: usableSpace(for: path, slot, route, client))
    }

    /// What earlier requests taught about the path, where it may be used.
    private static func usableSpace(
        for path: ArraySlice<UInt8>, _ slot: UpstreamPool.Slot, _ route: Route, _ client: ClientConnection
    ) -> ProtectionSpaceCache.Space? {
        guard let tag = slot.key.credential, let rule = route.rule, rule.preempts,
            let space = route.learnedSpace(for: path, in: slot), client.isStillSameUser(),
            !client.services.shared.breaker.isRejected(
                .init(origin: route.origin, credential: tag.name, generation: tag.generation)),
            !space.kind.bindsConnection || !client.hasAuthenticatedConnection(for: slot.key)
        else { return nil }
        return space
    }

    /// The origin's certificate is taken on other grounds than was guessed: everything that hangs on it begins anew. Nothing has
    /// been sent yet.
    private func settle(_ found: TrustOutcome) {
        endAttempt(.inconclusive)
        entry.challenge = nil
        entry.credential = nil
        trust = found
        slot = route.slot(under: found, mayBeAnswered: mayBeAnswered)
        prepared = Self.begin(
            slot, route, clientAuthorizes: exchange.context.clientAuthorizes, hasBody: head.hasBody, path: path,
            client: client)
        exchange = prepared.exchange
        if !found.answers { replay.wantNoRepeat() }
    }
}
