// SPDX-License-Identifier: Apache-2.0

import CountersignUpstream

/// A CONNECT whose first bytes decide on its treatment (``AcceptedConnect``).
extension ClientConnection {
    /// Accepts the CONNECT and waits for the first bytes.
    func accept(_ route: Route, _ terms: ConnectionTerms) {
        acceptTunnel()
        phase = .firstBytes
        idleSince = services.now
        let accepted = AcceptedConnect(route, terms, self)
        self.accepted = accepted
        accepted.start { self.parse() }
    }

    /// Looks at the bytes received. Whether requests follow, which can be read at once.
    func readFirstBytes() -> Bool {
        guard let accepted else { return false }
        switch input.tunnelStart {
        case .http:
            serveRequests(of: accepted)
            return true
        case .tls:
            setUp(accepted).start()
        case .other where accepted.mayBeBlind:
            setUp(accepted).startBlind(because: "the tunnel carries neither HTTP/1 nor TLS")
        case .other:
            setUp(accepted).start()
        case .undecided where accepted.mayBeBlind && accepted.isSilent:
            setUp(accepted).startBlind(because: "the client waits for the server")
        case .undecided, .beginsRequest:
            break
        }
        return false
    }

    /// The client has ended its input.
    func firstBytesEnded() {
        accepted?.inputEnded()
        parse()
        if case .firstBytes = phase { leaveFirstBytes("the client has sent no request") }
    }

    /// Closes the connection if the client has been silent for too long, or slow with a request.
    func limitFirstBytes(now: UInt64) {
        guard now > idleSince + services.configuration.headSeconds else { return }
        guard case .beginsRequest = input.tunnelStart else { return leaveFirstBytes("the client has sent nothing") }
        let response = OwnResponse(status: 408, detail: "the request head did not arrive in time")
        accepted?.ended(status: response.status, reason: response.detail)
        accepted = nil
        respondAndClose(response)
    }

    /// Closes the connection before the client has sent enough.
    func leaveFirstBytes(_ reason: String) {
        accepted?.ended(reason: reason)
        accepted = nil
        close()
    }

    private func serveRequests(of accepted: AcceptedConnect) {
        let origin = accepted.route.origin.withoutTLS
        accepted.carriesRequests(to: services.route(to: origin, for: session))
        self.accepted = nil
        session.role = .inside(
            .init(origin: origin, parentAuthorization: accepted.terms.clientAuthorization))
        admission.forgetRoute()
        phase = .head
        headStartedAt = services.now
    }

    private func setUp(_ accepted: AcceptedConnect) -> ConnectSetup {
        accepted.decided()
        self.accepted = nil
        phase = .connecting
        let setup = ConnectSetup(client: self, accepted)
        self.setup = setup
        return setup
    }
}
