// SPDX-License-Identifier: Apache-2.0

import Glibc
import CountersignHTTP1
import NIOCore
import CountersignTLS

/// Time limits, responses of our own, and the ways in which a client connection ends.
extension ClientConnection {
    func clientEndedInput() {
        inputEnded = true
        switch phase {
        case .head, .clientHello, .clientHandshake:
            close()
        case .discarding:
            if outputIsOut { close() }
        case .body:
            // The rest of the body may have come already, and wait here until the origin takes it.
            if !bodyPaused { bodyCut() }
        case .connecting where setup?.isAsking == true:
            // The tunnel would need its ClientHello, which cannot come any more.
            clientGone()
            close()
        case .responding, .connecting, .closed:
            // A client may close its half once its requests are out (RFC 9112 §9.6); the pipelined ones are still answered.
            break
        }
    }

    func bodyCut() {
        clientGone()
        close()
    }

    func clientGone() {
        phase = .closed
        presence.connection = nil
        exchange?.clientGone()
        exchange = nil
        setup?.cancel()
        setup = nil
        closeBound()
        _ = input.takeAll()
    }

    func close() {
        phase = .closed
        context?.close(promise: nil)
    }

    // MARK: Limits

    func secondPassed(now: UInt64) {
        let limits = services.configuration
        switch phase {
        case .head:
            if let headStartedAt {
                if now > headStartedAt + limits.headSeconds {
                    respondAndClose(.init(status: 408, detail: "the request head did not come in time"))
                }
            } else if now > idleSince + limits.keepAliveSeconds {
                close()
            }
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
        case .head where headStartedAt == nil: close()
        case .clientHello, .clientHandshake: close()
        default: break
        }
    }

    func abort() {
        clientGone()
        close()
    }

    // MARK: Responses of our own

    func malformed(_ error: HTTP1Error) {
        if let exchange {
            // The head was good and has been acted upon; its body was not.
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

    /// The response cannot be finished: the client must see that it is cut.
    ///
    /// `needsReset`: the end of the connection is the end of the body, so that a FIN would make the part look whole. A reset may
    /// overtake what was written before it; without one the client keeps the part it got.
    func abortResponse(needsReset: Bool) {
        exchange = nil
        output.flush()
        phase = .closed
        guard let channel = context?.channel else { return }
        // A FIN or a close_notify would look like a whole response where the end of the connection is the end of the body.
        if let tls = try? channel.pipeline.syncOperations.handler(type: TLSHandler.self) { return tls.abort() }
        guard needsReset else { return channel.close(promise: nil) }
        (channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in
            channel.close(promise: nil)
        }
    }

    /// Sends what is written, half-closes, and reads on for a moment: a close with unread input would be a reset, and the client
    /// might never see the response (RFC 9112 §9.6).
    func lingerAndClose() {
        output.flush()
        closeBound()
        guard let context else { return close() }
        phase = .discarding
        idleSince = services.now
        _ = input.takeAll()
        updateReading()
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.assumeIsolated().whenComplete { _ in
            self.outputIsOut = true
            self.idleSince = self.services.now
            if self.inputEnded { self.close() }
        }
        if inputEnded {
            // Closing the second half closes the channel at once, and what has not gone out is lost.
            context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: written)
        } else {
            context.close(mode: .output, promise: written)
        }
    }
}
