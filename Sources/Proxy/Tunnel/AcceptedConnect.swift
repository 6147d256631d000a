// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignEvents
import CountersignHTTP1
import NIOCore
import CountersignUpstream

/// A CONNECT that has received its 200 before the tunnel's protocol is known, because there is an http line for its
/// host and port. Clients send requests without TLS in a tunnel, too: browsers those of WebSockets, some libraries all.
///
/// The client's first bytes decide (``TunnelStart``). Requests are handled as if they had been sent to the proxy's own
/// port. TLS is handled as in any CONNECT. Other protocols get a blind tunnel, and so do clients that are silent,
/// because they may wait for the server; but not if an https line says that the site is intercepted. The beginning of a
/// request is never forwarded blindly, however long the rest takes.
final class AcceptedConnect {
    let route: Route
    let terms: ConnectionTerms
    let started: Journal.Start?
    /// The client has not sent anything in time, or will not send more.
    private(set) var isSilent = false
    private let services: LoopServices
    private let session: ClientSession
    private var timer: Scheduled<Void>?

    /// `route` is that of the https origin.
    init(_ route: Route, _ terms: ConnectionTerms, _ client: ClientConnection) {
        self.route = route
        self.terms = terms
        services = client.services
        session = client.session
        started = services.shared.journal.start()
    }

    /// Whether the client may leave the first byte to the server, or send something that is neither HTTP nor TLS. Not
    /// to an intercepted site, nor to one that refuses requests.
    var mayBeBlind: Bool { if case .tunnel = route.verdict { !route.mustSeeRequests } else { false } }

    /// Calls `silent` once the client has been silent for too long.
    func start(silent: @escaping () -> Void) {
        guard mayBeBlind else { return }
        timer = services.loop.assumeIsolated().scheduleTask(in: services.configuration.tunnelSilence) {
            self.timer = nil
            self.isSilent = true
            silent()
        }
    }

    /// The client sends nothing more.
    func inputEnded() { isSilent = true }

    /// The tunnel's protocol is known.
    func decided() {
        timer?.cancel()
        timer = nil
    }

    /// The tunnel carries requests to `site`. Each has a log entry of its own.
    func carriesRequests(to site: Route) {
        decided()
        log(site.reportedSite, .forward, status: 200)
    }

    /// The client is gone, or is sent away, without a decision.
    func ended(status: Int = 200, reason: String) {
        decided()
        let site = RequestSite(HostText.joined(route.origin.host, route.origin.port))
        log(site, .tunnel, status: status, reason: reason)
    }

    private func log(_ site: RequestSite, _ decision: AccessLog.Decision, status: Int, reason: String? = nil) {
        guard let started else { return }
        var outcome = AccessLog.Outcome()
        outcome.status = status
        outcome.reason = reason
        services.shared.journal.write(
            started, of: session, method: "CONNECT", site: site, decision: decision, outcome)
    }
}
