// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignHTTP1
import NIOCore
import CountersignTLS

/// What a CONNECT makes of a client connection: the origin's stand-in, a tunnel's end, or a refusal.
extension ClientConnection {
    /// What a CONNECT to a listed site was found to be. An object, as most connections have none, and wait with little.
    final class InterceptedSite {
        let origin: Origin
        /// The leaf that the client has decided for by going on, where the origin is not trusted and it was shown why.
        let pin: [UInt8]?

        init(origin: Origin, pin: [UInt8]?) {
            self.origin = origin
            self.pin = pin
        }
    }

    /// The origin answered and is listed: the client's TLS comes next.
    func intercept(_ site: InterceptedSite, tls: TLSServerContext) {
        setup = nil
        output.write(GeneratedResponse.tunnelEstablished)
        output.flush()
        phase = .clientHello
        standIn = (site, tls)
        idleSince = services.now
        updateReading()
        parse()
    }

    /// The tunnel's other end is there: this handler leaves.
    func becomeTunnel(
        to origin: any Channel, fromOrigin: ByteBuffer, originHasEnded: Bool, tally: TunnelHandler.Tally,
        response: [UInt8]?
    ) {
        setup = nil
        exchange = nil
        closeBound()
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

    /// The CONNECT cannot be served.
    func refuseConnect(_ response: OwnResponse) {
        setup = nil
        respondAndClose(response)
    }

    func startClientTLS() {
        guard let context, let (site, tls) = standIn,
            let first = input.first
        else { return }
        // A TLS handshake record (RFC 8446 §5.1). Anything else would be plaintext where the client asked for a tunnel.
        guard first == 0x16 else {
            return respondAndClose(
                .init(status: 400, detail: "this site is intercepted: only TLS may be spoken in its tunnel"))
        }
        do {
            let handler = try TLSHandler(server: tls, spare: services.spare, writesToSocket: true)
            try context.pipeline.syncOperations.addHandler(handler, position: .before(self))
            output.startTLS(handler)
        } catch {
            return close()
        }
        role = .intercepted(site)
        standIn = nil
        lastRoute = nil
        phase = .clientHandshake
        context.pipeline.fireChannelRead(input.takeAll())
        context.pipeline.fireChannelReadComplete()
    }
}
