// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignHTTP1
import NIOCore
import CountersignUpstream

/// Reads requests one at a time. Each begins an exchange or a CONNECT.
extension ClientConnection {
    func parse() {
        guard !parsing else { return }
        parsing = true
        defer {
            parsing = false
            updateReading()
            if inputEnded, !bodyPaused, case .body = phase { bodyCut() }
        }
        do throws(HTTP1Error) {
            while true {
                switch phase {
                case .head:
                    guard let head = try input.nextRequest() else { return }
                    headStartedAt = nil
                    begin(head)
                case .body:
                    guard !bodyPaused, try readBody() else { return }
                case .firstBytes:
                    guard readFirstBytes() else { return }
                case .clientHello:
                    return startClientTLS()
                case .responding, .connecting, .clientHandshake, .discarding, .closed:
                    return
                }
            }
        } catch {
            malformed(error)
        }
    }

    /// Reads the next part of the content. False if more input is needed.
    private func readBody() throws(HTTP1Error) -> Bool {
        switch try input.nextPiece() {
        case .content(let content):
            exchange?.clientSent(content)
            return true
        case .needsMore:
            return false
        case .end(let trailers):
            phase = .responding
            exchange?.clientRequestEnded(trailers: trailers)
            return true
        }
    }

    private func begin(_ head: consuming RequestHead) {
        if case .proxy = session.role, !isAdmitted, !services.configuration.clientTokens.isEmpty,
            !admission.isForOwnPage(head)
        {
            let sent = ClientToken.sent(
                in: head.fields.values(of: .proxyAuthorization), services.configuration.clientTokens)
            guard let sent else { return respondAndClose(OwnResponse.proxyAuthenticationRequired) }
            if session.hasSent(sent) {
                admission.forgetRoute()
                // They were opened for another client, whom a line may be for.
                session.closeBound()
            }
        }
        if let refusal = admission.refusal(of: head) { return respondAndClose(refusal) }
        do throws(RequestTarget.Failure) {
            switch session.role {
            case .proxy where head.isConnect:
                try connect(to: RequestTarget.authority(of: head), head)
            case .proxy:
                let (route, path) = try admission.destination(of: head)
                try forward(head, route, path)
            case .inside(let site):
                guard !head.isConnect else {
                    throw RequestTarget.Failure(status: 400, detail: "CONNECT inside CONNECT")
                }
                let (route, path) = try admission.destination(of: head, inside: site)
                guard site.isIntercepted else { return try forward(head, route, path) }
                try admission.checkTrace(head, route)
                run(
                    ExchangeDriver(
                        client: self, session: session, services: services, head: head, route: route, path: path,
                        pin: site.pin))
            }
        } catch {
            respondAndClose(.init(status: error.status, detail: error.detail))
        }
    }

    /// Begins the exchange of a request that was sent without TLS to the proxy.
    private func forward(
        _ head: consuming RequestHead, _ route: Route, _ path: ArraySlice<UInt8>
    ) throws(RequestTarget.Failure) {
        if case .refuse(let reason) = route.verdict, route.decision == nil {
            throw RequestTarget.Failure(status: 403, detail: route.refused(for: reason))
        }
        try admission.checkTrace(head, route)
        let pin = try acceptedLeaf(head)
        run(
            ExchangeDriver(
                client: self, session: session, services: services, head: head, route: route, path: path, pin: pin))
    }

    private func connect(to origin: Origin, _ head: RequestHead) throws(RequestTarget.Failure) {
        // Mojo::UserAgent sends `Content-Length: 0`.
        guard [.none, .length(0)].contains(head.framing) else {
            throw RequestTarget.Failure(status: 400, detail: "CONNECT with a body")
        }
        let route = services.route(to: origin, for: session)
        let own = services.configuration.clientTokens.isEmpty ? head.fields.value(of: .proxyAuthorization) : nil
        let terms = ConnectionTerms(
            clientAuthorization: own, via: head.fields.values(of: .via), mayBeLocal: route.mayBeLocal)
        if route.mayCarryRequests { return accept(route, terms) }
        phase = .connecting
        let setup = ConnectSetup(client: self, route: route, terms)
        self.setup = setup
        setup.start()
    }

    private func run(_ driver: ExchangeDriver) {
        exchange = driver
        if driver.head.hasBody {
            phase = .body
            input.beginBody(driver.head.framing)
        } else {
            phase = .responding
        }
        driver.start()
    }

    /// The leaf that an absolute-form request accepts by `Countersign-Trust: sha256:…`.
    private func acceptedLeaf(_ head: RequestHead) throws(RequestTarget.Failure) -> [UInt8]? {
        guard head.fields.contains(.countersignTrust) else { return nil }
        let values = head.fields.values(of: .countersignTrust)
        do throws(CertificateFingerprint.Fault) {
            guard values.count == 1 else {
                throw CertificateFingerprint.Fault(description: "it occurs \(values.count) times")
            }
            return try CertificateFingerprint.parse(values[0])
        } catch {
            throw RequestTarget.Failure(
                status: 400,
                detail: "Countersign-Trust must be sha256: and the 64 hexadecimal digits of the leaf's fingerprint, "
                    + "but \(error)")
        }
    }
}
