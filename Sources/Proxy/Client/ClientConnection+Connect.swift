// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import NIOCore
import CountersignChannelTLS
import CountersignTLS

/// The results of a CONNECT: the connection stands in for the origin, becomes one end of a tunnel, or is refused.
extension ClientConnection {
    /// Accepts the CONNECT.
    func acceptTunnel() {
        output.write(GeneratedResponse.tunnelEstablished)
        output.flush()
    }

    /// The origin is listed and reachable. Accepts the CONNECT, unless it `isAccepted` already, and waits for the
    /// client's TLS handshake.
    func intercept(_ site: ClientSession.ConnectSite, tls: TLSServerContext, isAccepted: Bool) {
        setup = nil
        if !isAccepted { acceptTunnel() }
        phase = .clientHello
        standIn = (site, tls)
        idleSince = services.now
        updateReading()
        parse()
    }

    /// The tunnel's other end is connected. This handler leaves the pipeline.
    func becomeTunnel(
        to origin: any Channel, fromOrigin: ByteBuffer, originHasEnded: Bool, tally: TunnelHandler.Tally,
        response: [UInt8]?
    ) {
        setup = nil
        exchange = nil
        session.closeBound()
        guard let context else {
            origin.close(promise: nil)
            return tally.finish()
        }
        if let response { output.write(response) }
        output.flush()
        phase = .closed
        let early = input.takeAll()
        let channel = context.channel
        channel.pipeline.syncOperations.removeHandler(context: context, promise: nil)
        TunnelHandler.join(
            client: (channel, early, inputEnded), origin: (origin, fromOrigin, originHasEnded), tally: tally,
            services: services)
    }

    /// Refuses the CONNECT. If it `isAccepted` already, the client reads no response, so the tunnel ends without one.
    func refuseConnect(_ response: OwnResponse, isAccepted: Bool) {
        setup = nil
        if isAccepted { lingerAndClose() } else { respondAndClose(response) }
    }

    func startClientTLS() {
        guard let context, let (site, tls) = standIn,
            let first = input.first
        else { return }
        // The type of a TLS handshake record (RFC 8446 §5.1). Anything else is not TLS.
        guard first == 0x16 else {
            return respondAndClose(
                .init(status: 400, detail: "this site is intercepted, so its tunnel must carry TLS"))
        }
        do {
            let route = services.route(to: site.origin, for: session)
            let handler = try TLSHandler(
                server: tls, speaksHTTP2: route.speaksHTTP2, spare: services.spare, writesToSocket: true)
            try context.pipeline.syncOperations.addHandler(handler, position: .before(self))
            output.startTLS(handler)
            if route.sharedSession != nil {
                input.wipesHeads = true
                handler.cleansePlaintext()
            }
        } catch {
            return close()
        }
        session.role = .inside(site)
        standIn = nil
        admission.forgetRoute()
        phase = .clientHandshake
        distrust.handshakeBegan(session, services)
        context.pipeline.fireChannelRead(input.takeAll())
        context.pipeline.fireChannelReadComplete()
    }

    /// The client has chosen HTTP/2 for its requests. This handler leaves the pipeline.
    func becomeHTTP2() {
        guard let context, let site = session.connectSite,
            let tls = try? context.pipeline.syncOperations.handler(type: TLSHandler.self)
        else { return close() }
        let connection = HTTP2ClientConnection(services, session, site, admission, distrust, tls)
        phase = .closed
        hasHandedOver = true
        do {
            try context.pipeline.syncOperations.addHandler(connection, position: .after(self))
            context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
        } catch {
            session.disconnected()
            close()
        }
    }
}
