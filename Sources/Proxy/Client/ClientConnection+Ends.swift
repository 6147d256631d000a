// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import Glibc
import CountersignHTTP1
import NIOCore
import CountersignChannelTLS

/// Time limits, responses to malformed requests, and closing.
extension ClientConnection {
    func clientEndedInput() {
        inputEnded = true
        switch phase {
        case .clientHandshake, .head:
            noteDistrust(.silence)
            close()
        case .clientHello:
            close()
        case .firstBytes:
            firstBytesEnded()
        case .discarding:
            if outputIsOut { close() }
        case .body:
            // The rest of the content may be buffered here already, held back by back-pressure.
            if !bodyPaused { bodyCut() }
        case .connecting where setup?.isAsking == true:
            // The client can no longer send the ClientHello that the tunnel would need.
            clientGone()
            close()
        case .responding where exchange?.approvalTicket != nil:
            // Nobody should be asked about the request of a client that has gone, and most that end their input have.
            clientGone()
            close()
        case .responding, .connecting, .closed:
            // A client may half-close after its last request (RFC 9112 §9.6). Pipelined requests are still answered.
            break
        }
    }

    func noteDistrust(_ sign: ClientDistrust.Sign) {
        let isInHandshake = if case .clientHandshake = phase { true } else { false }
        distrust.left(sign, isInHandshake: isInHandshake, session, services)
    }

    func bodyCut() {
        clientGone()
        close()
    }

    func clientGone() {
        phase = .closed
        session.disconnected()
        exchange?.clientGone()
        exchange = nil
        setup?.cancel()
        setup = nil
        accepted?.ended(reason: "the client has gone before it sent a request")
        accepted = nil
        _ = input.takeAll()
    }

    func close() {
        phase = .closed
        context?.close(promise: nil)
    }

    // MARK: Limits

    func secondPassed(now: UInt64) {
        if exchange == nil { admission.forgetOldPolicy() }
        let limits = services.configuration
        switch phase {
        case .head:
            if let headStartedAt {
                if now > headStartedAt + limits.headSeconds {
                    respondAndClose(.init(status: 408, detail: "the request head did not arrive in time"))
                }
            } else if now > idleSince + (services.isHandedOver ? limits.headSeconds : limits.keepAliveSeconds) {
                close()
            }
        case .firstBytes:
            limitFirstBytes(now: now)
        case .clientHello, .clientHandshake:
            if now > idleSince + limits.clientHandshakeSeconds { close() }
        case .discarding:
            if now > idleSince + (outputIsOut ? 2 : limits.bodyIdleSeconds) { close() }
        case .body, .responding:
            exchange?.secondPassed(now: now)
        case .connecting, .closed:
            break
        }
    }

    func drain() {
        closesAfterResponse = true
        switch phase {
        case .head where headStartedAt == nil && !distrust.hasOnlyShakenHands: close()
        case .firstBytes: leaveFirstBytes("the proxy stops")
        case .clientHello: close()
        case .clientHandshake, .head:
            // The client may have left, and its alert with the reason, or its end, may not have been read yet.
            let connection = NIOLoopBound(self, eventLoop: services.loop)
            services.loop.scheduleTask(in: Self.handshakeDrain) { connection.value.endHandshake() }
        default: break
        }
    }

    /// How long a TLS handshake, or the wait for the first request, may continue when the proxy stops.
    private static let handshakeDrain = TimeAmount.milliseconds(200)

    private func endHandshake() {
        switch phase {
        case .clientHandshake: close()
        case .head where headStartedAt == nil: close()
        default: break
        }
    }

    func abort() {
        clientGone()
        close()
    }

    // MARK: Malformed requests

    func malformed(_ error: HTTP1Error) {
        if let exchange {
            // The head was valid and has been forwarded. Its content is malformed.
            exchange.clientGone()
            self.exchange = nil
            return close()
        }
        respondAndClose(.init(status: error.statusHint, detail: error.detail))
    }

    func respondAndClose(_ response: OwnResponse) {
        output.write(response.bytes(keepAlive: false, to: .get))
        lingerAndClose()
    }

    // MARK: The last response

    /// Closes the connection inside a response, in a way that shows the client that the response is incomplete.
    ///
    /// `needsReset`: the content ends with the connection, so that a FIN would make the part look complete. Otherwise a
    /// FIN is better, because a reset may overtake data that was written before it.
    func abortResponse(needsReset: Bool) {
        exchange = nil
        output.flush()
        phase = .closed
        guard let channel = context?.channel else { return }
        // A close_notify would make the part look complete, too.
        if let tls = try? channel.pipeline.syncOperations.handler(type: TLSHandler.self) { return tls.abort() }
        guard needsReset else { return channel.close(promise: nil) }
        (channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in
            channel.close(promise: nil)
        }
    }

    /// Flushes, half-closes, and discards input for a moment. Closing with unread input would send a reset, which may
    /// destroy the response before the client has read it (RFC 9112 §9.6).
    func lingerAndClose() {
        output.flush()
        session.closeBound()
        guard let context else { return close() }
        phase = .discarding
        idleSince = services.now
        _ = input.takeAll()
        updateReading()
        context.endOutput(inputEnded: inputEnded) {
            self.outputIsOut = true
            self.idleSince = self.services.now
            if self.inputEnded { self.close() }
        }
    }
}
