// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignCertificates
import CountersignEvents
import CountersignHTTP1
import NIOCore
import CountersignSitePolicy
import CountersignTLS
import CountersignUpstream

/// Handles a CONNECT request until its final response: tunnels or intercepts the connection, or refuses it.
///
/// An unlisted site gets a blind tunnel. For a listed site the proxy connects to the origin and verifies its
/// certificate before the client's handshake. So the client gets a 502 if the origin cannot be reached, and a
/// certificate that fails in the same way if the origin's does not verify. After an ``AcceptedConnect``, a failure
/// closes the tunnel.
final class ConnectSetup {
    /// Nil once the client has its answer or has gone: a tunnel's log entry must not keep the connection object alive.
    private var client: ClientConnection?
    private let session: ClientSession
    private let services: LoopServices
    private let policy: Policy
    private let origin: Origin
    private let route: Route
    private let started: Journal.Start?
    private var decision = AccessLog.Decision.tunnel
    private var entry = AccessLog.Outcome()
    private var trustEvaluation: TrustEvaluation?
    /// The connection to the origin that is being opened.
    private var opening: ConnectionAttempt?
    private var identityRetry = IdentityRetry()
    /// The origin has asked for a client certificate, and has got none because its lines are for some requests only.
    private var hasDeclinedIdentity = false
    /// It has been asked once more.
    private var hasRepeated = false
    private let terms: ConnectionTerms
    /// The client has received its 200.
    private let isAccepted: Bool
    /// False if the tunnel carries something else than TLS.
    private var mayBeTLS = true

    /// `terms` contain no token for this proxy.
    convenience init(client: ClientConnection, route: Route, _ terms: ConnectionTerms) {
        self.init(
            client: client, route, terms, isAccepted: false, started: client.services.shared.journal.start())
    }

    /// Continues with a tunnel that does not carry requests.
    convenience init(client: ClientConnection, _ accepted: AcceptedConnect) {
        self.init(client: client, accepted.route, accepted.terms, isAccepted: true, started: accepted.started)
    }

    private init(
        client: ClientConnection, _ route: Route, _ terms: ConnectionTerms, isAccepted: Bool, started: Journal.Start?
    ) {
        self.client = client
        self.terms = terms
        session = client.session
        self.route = route
        services = client.services
        policy = route.policy
        origin = route.origin
        self.isAccepted = isAccepted
        self.started = started
    }

    func start() {
        switch route.verdict {
        case .tunnel(let reason):
            entry.reason = reason.text
            services.shared.observer?.tell(.tunnelled(origin, reason: reason))
            tunnel()
        case .refuse(let reason):
            decision = .refuse
            fail(
                OwnResponse(status: 403, detail: route.refused(for: reason), proxyError: "destination_ip_prohibited"))
        case .answer(let rule):
            decision = .intercept
            intercept(rule)
        }
    }

    /// Makes a tunnel that carries something else than TLS, or nothing yet.
    func startBlind(because reason: String) {
        entry.reason = reason
        mayBeTLS = false
        tunnel()
    }

    /// The client has gone.
    func cancel() {
        if isAccepted {
            entry.status = 200
            entry.reason = "the client has gone before the origin was reached"
            log()
        }
        client = nil
        trustEvaluation?.cancel()
        trustEvaluation = nil
        opening?.cancel()
        opening = nil
    }

    /// The delegate is being asked about the origin's certificate.
    var isAsking: Bool { trustEvaluation?.isAsking ?? false }

    // MARK: A blind tunnel

    private func tunnel() {
        opening = services.connector.tunnel(to: origin, terms) { result in
            self.opening = nil
            guard let client = self.client else {
                if case .success(let opened) = result { opened.channel.close(promise: nil) }
                return
            }
            switch result {
            case .failure(let error):
                self.services.shared.observer?.ended(error, at: self.origin)
                self.fail(OwnResponse(error))
            case .success(let opened):
                self.client = nil
                self.entry.status = 200
                let tally = TunnelHandler.Tally(now: self.services.now, self.session) { tally in
                    self.entry.bytes = tally.bytesFromOrigin
                    self.log()
                }
                client.becomeTunnel(
                    to: opened.channel, fromOrigin: opened.early, originHasEnded: false, tally: tally,
                    response: self.isAccepted ? nil : GeneratedResponse.tunnelEstablished)
            }
        }
    }

    // MARK: Interception

    private func intercept(_ rule: SiteRule) {
        guard let interceptionAuthority = policy.interceptionAuthority else {
            let why =
                if case .closed(let reason) = policy.enrolled { reason.text } else { "there is no interception CA" }
            return fail(
                OwnResponse(status: 503, detail: "cannot intercept: \(why)", proxyError: "proxy_internal_error"))
        }
        guard client != nil else { return }
        if let reason = services.shared.journal.recorder?.refusal {
            return fail(OwnResponse(status: 503, detail: reason, proxyError: "proxy_internal_error"))
        }
        let now = services.shared.wallClock()
        for outcome in [.verified] + policy.trustExceptions(for: origin, now: now).map({ TrustOutcome.exception($0) }) {
            let slot = route.slot(under: outcome, mayBeAnswered: true)
            guard let idle = slot.lease(now: services.now) else { continue }
            entry.record(outcome, on: idle)
            slot.giveBack(idle, now: services.now)
            return present(.init(origin: origin, pin: nil), interceptionAuthority)
        }
        // Mints the leaf while connecting, because most origins are reachable and verify.
        mint(interceptionAuthority)
        let evaluation = TrustEvaluation(origin: origin, isListed: true, pin: nil, services: services, client: session)
        self.trustEvaluation = evaluation
        opening = services.connector.connect(
            to: origin, tls: policy.originTLS, revocation: rule.revocation,
            certificateSource: certificateSource(rule),
            trustSource: evaluation.source, offering(services.terms(on: route).offersHTTP2)
        ) { result in
            self.trustEvaluation = nil
            self.opening = nil
            if case .failure = result { evaluation.cancel() }
            guard let client = self.client else {
                if case .success(let connection) = result { connection.close() }
                return
            }
            switch result {
            case .failure(let error):
                if self.repeatsWithIdentity(rule, after: error) { return }
                self.services.notReached(self.origin, error)
                let waits = self.identityRetry.begin(after: error, self.services) { isReplaced in
                    guard self.client != nil else { return }
                    if isReplaced { self.intercept(rule) } else { self.fail(evaluation.refusal(after: error)) }
                }
                if !waits { self.fail(evaluation.refusal(after: error)) }
            case .success(let connection):
                self.found(connection, evaluation.finding(connection), client, interceptionAuthority)
            }
        }
    }

    /// If only some requests may be answered, no identity is shown before the request is known.
    private func certificateSource(_ rule: SiteRule) -> CertificateSource {
        guard let lines = route.requestRules else {
            return CertificateRequestAnswerer.source(for: rule, at: origin, services: services, client: session)
        }
        guard hasRepeated else {
            return { _, connection, answer in
                self.hasDeclinedIdentity = true
                connection.lacksIdentity = true
                answer(nil)
            }
        }
        let showing = lines.rules.first { $0.answer.contains(.certificate) } ?? rule
        return CertificateRequestAnswerer.source(for: showing, at: origin, services: services, client: session)
    }

    /// The origin ends a handshake without a client certificate. One more shows it, to see the origin's own; that
    /// connection carries no request.
    private func repeatsWithIdentity(_ rule: SiteRule, after error: UpstreamError) -> Bool {
        guard hasDeclinedIdentity, !hasRepeated, error.step == .tls else { return false }
        hasRepeated = true
        intercept(rule)
        return true
    }

    /// ``terms`` for a connection that will carry requests.
    private func offering(_ offersHTTP2: Bool) -> ConnectionTerms {
        var terms = terms
        terms.offersHTTP2 = offersHTTP2
        return terms
    }

    /// The origin is connected. Shows the client a leaf that verifies if the origin's certificate was accepted, or a
    /// mirrored one.
    private func found(
        _ connection: any OriginLease, _ finding: TrustEvaluation.Finding, _ client: ClientConnection,
        _ interceptionAuthority: InterceptionAuthority
    ) {
        entry.record(revocationOf: connection)
        if let identity = connection.showedIdentity {
            (entry.challenge, entry.credential, entry.isOrigins) = ("certificate", identity, true)
            if let started {
                services.shared.journal.recordUse(
                    started, of: session, method: "CONNECT",
                    site: RequestSite(origin.description, rule: route.rule?.location), decision: decision, entry)
            }
        }
        switch finding {
        case .proceed(let trust):
            let slot = route.slot(under: trust, mayBeAnswered: true)
            entry.record(trust, on: connection)
            if connection.hasShownIdentity, route.requestRules != nil {
                connection.close()
            } else if connection.hasShownIdentity || !trust.isShared {
                session.bind(connection, for: slot.key)
            } else {
                slot.giveBack(connection, now: services.now)
            }
            present(.init(origin: origin, pin: nil), interceptionAuthority)
        case .undecided(let trust, let leaf):
            entry.record(undecided: trust)
            session.bind(connection, for: route.slot(under: .client(leaf: leaf), mayBeAnswered: true).key)
            services.shared.leaves
                .mirror(
                    of: trust, host: origin.host, port: origin.port, issuer: interceptionAuthority,
                    now: services.shared.wallClock(), loop: services.loop
                )
                .assumeIsolated()
                .whenComplete { self.show($0, .init(origin: self.origin, pin: leaf)) }
        case .refused(let response):
            connection.close()
            fail(response)
        }
    }

    private func present(_ site: ClientSession.ConnectSite, _ interceptionAuthority: InterceptionAuthority) {
        mint(interceptionAuthority).assumeIsolated().whenComplete { self.show($0, site) }
    }

    /// The leaf for the origin, from the cache or newly minted.
    @discardableResult
    private func mint(_ interceptionAuthority: InterceptionAuthority) -> EventLoopFuture<TLSServerContext> {
        let now = services.shared.wallClock()
        if let context = services.shared.leaves.cached(host: origin.host, issuer: interceptionAuthority, now: now) {
            return services.loop.makeSucceededFuture(context)
        }
        return services.shared.leaves.mint(
            host: origin.host, issuer: interceptionAuthority, now: now, loop: services.loop)
    }

    private func show(_ context: Result<TLSServerContext, any Error>, _ site: ClientSession.ConnectSite) {
        guard let client else { return }
        switch context {
        case .success(let context):
            entry.status = 200
            log()
            self.client = nil
            client.intercept(site, tls: context, isAccepted: isAccepted)
        case .failure(let error):
            fail(
                OwnResponse(
                    status: 502, detail: "cannot make a certificate for \(origin.host): \(error)",
                    proxyError: "proxy_internal_error"))
        }
    }

    // MARK: Ends

    private func fail(_ response: OwnResponse) {
        entry.status = response.status
        entry.reason = response.detail
        log()
        let client = self.client
        self.client = nil
        client?.refuseConnect(response, isAccepted: isAccepted)
    }

    private func log() {
        guard let started else { return }
        let site = mayBeTLS ? origin.description : HostText.joined(origin.host, origin.port)
        services.shared.journal.write(
            started, of: session, method: "CONNECT", site: RequestSite(site, rule: route.rule?.location),
            decision: decision, entry)
    }
}
