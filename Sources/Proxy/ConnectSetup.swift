// SPDX-License-Identifier: Apache-2.0

import Certificates
import Challenges
import HTTP1
import NIOCore
import SitePolicy
import TLS
import Upstream

/// A CONNECT between its head and its 200: which site it is, whether it answers, and what its certificate is worth.
///
/// An unlisted site gets a blind tunnel. A listed one is connected to and verified before the client's handshake is answered, so that
/// an origin that is down is a 502, and one that is not trusted is mirrored.
final class ConnectSetup {
    private weak var client: ClientConnection?
    private let services: LoopServices
    private let policy: Policy
    private let origin: Origin
    private let head: RequestHead
    private var entry: AccessLog.Entry
    private var isCancelled = false

    init(client: ClientConnection, origin: Origin, head: RequestHead) {
        self.client = client
        self.origin = origin
        self.head = head
        services = client.services
        policy = services.shared.policy.current
        entry = AccessLog.Entry(
            startedAt: WallClock.now(), id: services.shared.accessLog?.nextID() ?? 0, client: client.identity,
            method: "CONNECT", site: origin.description, decision: .tunnel)
    }

    func start() {
        switch policy.sites.verdict(for: origin) {
        case .tunnel(let reason):
            entry.reason = reason
            tunnel()
        case .refuse(let reason):
            entry.decision = .refuse
            fail(OwnResponse(status: 403, detail: reason, proxyError: "destination_ip_prohibited"))
        case .answer(let rule):
            entry.rule = rule.location
            entry.decision = .intercept
            intercept(rule)
        }
    }

    func cancel() {
        isCancelled = true
    }

    // MARK: A blind tunnel

    private func tunnel() {
        services.connector.connectTCP(host: origin.host, port: origin.port) { result in
            guard !self.isCancelled, let client = self.client else {
                if case .success(let channel) = result { channel.close(promise: nil) }
                return
            }
            switch result {
            case .failure(let error):
                self.fail(OwnResponse(error))
            case .success(let channel):
                self.entry.status = 200
                let tally = TunnelHandler.Tally(now: self.services.now) { tally in
                    self.entry.bytes = tally.bytesFromOrigin
                    self.log()
                }
                client.becomeTunnel(
                    to: channel, fromOrigin: ByteBuffer(), originHasEnded: false, tally: tally,
                    response: MadeResponse.tunnelEstablished)
            }
        }
    }

    // MARK: Interception

    private func intercept(_ rule: SiteRule) {
        guard let authority = policy.authority else {
            let why =
                if case .closed(let reason) = policy.enrollment { reason } else { "there is no interception CA" }
            return fail(
                OwnResponse(status: 503, detail: "cannot intercept: \(why)", proxyError: "proxy_internal_error"))
        }
        var tag: UpstreamKey.CredentialTag?
        if case .useCredential(.password(let credential)) = policy.passwordDisposition(for: rule) {
            tag = .init(name: credential.name, generation: credential.generation)
        }
        let key = UpstreamKey(
            origin: origin, trust: .verified, credential: tag, principal: client?.identity.uid,
            settings: policy.generation)
        if let idle = services.pool.lease(key, now: services.now) {
            services.pool.giveBack(idle, for: key, now: services.now)
            return present(.init(origin: origin, trust: .verified), authority)
        }
        guard let client else { return }
        let source = CertificateDoor.source(for: rule, trust: .verified, services: services, client: client)
        services.connector.connect(to: origin, tls: policy.originTLS, certificateSource: source) { result in
            guard !self.isCancelled, let client = self.client else {
                if case .success(let connection) = result { connection.close() }
                return
            }
            switch result {
            case .failure(let error):
                self.fail(OwnResponse(error))
            case .success(let connection):
                self.found(connection, key: key, client: client, authority)
            }
        }
    }

    /// The origin is connected to; what its certificate is worth decides which leaf the client sees.
    private func found(
        _ connection: OriginConnection, key: UpstreamKey, client: ClientConnection, _ authority: InterceptionAuthority
    ) {
        guard let trust = connection.tls?.serverTrust, !trust.isTrusted else {
            if connection.showedIdentity != nil {
                client.bind(connection, for: key)
            } else {
                services.pool.giveBack(connection, for: key, now: services.now)
            }
            return present(.init(origin: origin, trust: .verified), authority)
        }
        entry.reason = trust.reasons.map(String.init(describing:)).joined(separator: ", ")
        guard let leaf = connection.tls?.peerCertificate?.sha256Fingerprint else {
            connection.close()
            return fail(
                OwnResponse(status: 502, detail: "the origin sent no certificate", proxyError: "tls_certificate_error"))
        }
        let accepted = UpstreamKey(
            origin: origin, trust: .accepted(leaf: leaf), credential: nil, principal: key.principal,
            settings: key.settings)
        client.bind(connection, for: accepted)
        services.shared.leaves
            .mirror(of: trust, host: origin.host, now: services.shared.wallClock(), loop: services.loop)
            .assumeIsolated()
            .whenComplete { self.show($0, .init(origin: self.origin, trust: .accepted(leaf: leaf))) }
    }

    private func present(_ site: ClientConnection.InterceptedSite, _ authority: InterceptionAuthority) {
        let now = services.shared.wallClock()
        if let context = services.shared.leaves.cached(host: origin.host, authority: authority, now: now) {
            return show(.success(context), site)
        }
        services.shared.leaves
            .mint(host: origin.host, authority: authority, now: now, loop: services.loop)
            .assumeIsolated()
            .whenComplete { self.show($0, site) }
    }

    private func show(_ context: Result<TLSServerContext, any Error>, _ site: ClientConnection.InterceptedSite) {
        guard !isCancelled, let client else { return }
        switch context {
        case .success(let context):
            entry.status = 200
            log()
            client.intercept(site, tls: context)
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
        client?.refuseConnect(response)
    }

    private func log() {
        guard let accessLog = services.shared.accessLog else { return }
        if let client { entry.client = client.identity }
        let now = WallClock.now()
        entry.durationMilliseconds =
            (now.seconds - entry.startedAt.seconds) * 1000 + now.milliseconds - entry.startedAt.milliseconds
        accessLog.write(entry)
    }
}
