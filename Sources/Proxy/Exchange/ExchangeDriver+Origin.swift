// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignHTTP1
import NIOCore
import CountersignUpstream

/// What the origin says, and what becomes of it: held, delivered, read to its end and dropped, or tried again.
extension ExchangeDriver: OriginConnectionDelegate {
    func originResponded(_ response: consuming ResponseHead, framing: BodyFraming) {
        lastProgress = services.now
        if response.isInformational { return informational(response) }
        guard case .waiting = mode else { return }
        mode = .deciding
        let status = response.status
        let challengeFields = status == 401 ? response.fields.values(of: .wwwAuthenticate) : []
        held = BufferedResponse(head: response, framing: framing)
        entry.status = status
        noteAcceptedIdentity(status: status)
        run(exchange.responseReceived(status: status, challengeFields: challengeFields))
        if case .deciding = mode { connection?.pauseReading() }
    }

    private func informational(_ response: ResponseHead) {
        if response.status == 101 { return switchProtocols(response) }
        informationalCount += 1
        guard informationalCount <= 32 else {
            dropConnection()
            return originFailed(UpstreamError(.malformedResponse, "more than 32 interim responses"))
        }
        // HTTP/1.0 has none (RFC 9110 §15.2); a round that is ours alone is not the client's business.
        guard case .waiting = mode, head.version == .http11, streamsBody || !head.hasBody else { return }
        client.write(
            response, as: ResponseForwarding(framing: .none, connection: .keepAlive, via: services.shared.via))
        client.output.flush()
    }

    func originSent(_ content: ByteBuffer) {
        lastProgress = services.now
        switch mode {
        case .delivering:
            writeContent(content)
        case .draining(let step, let swallowed):
            let total = swallowed + content.readableBytes
            dialogue?.lastChallenge?.pieces.append(content)
            mode = .draining(step, swallowedBytes: total)
            if total > services.configuration.swallowedBodyBytes {
                dropConnection()
                dialogue?.lastChallenge = nil
                drained(step)
            }
        case .deciding:
            held?.pieces.append(content)
        case .preparing, .waiting, .done:
            break
        }
    }

    func originResponseEnded(trailers: FieldLines?) {
        switch mode {
        case .delivering: finishDelivery(trailers: trailers)
        case .draining(let step, _):
            dialogue?.lastChallenge?.ended = true
            dialogue?.lastChallenge?.trailers = trailers
            drained(step)
        case .deciding:
            held?.ended = true
            held?.trailers = trailers
        case .preparing, .waiting, .done: break
        }
    }

    func originReadCompleted() {
        client.output.flush()
    }

    func originWritabilityChanged(_ isWritable: Bool) {
        pace()
        connection?.flush()
    }

    func originFailed(_ error: UpstreamError) {
        let wasReused = (connection?.requestCount ?? 0) > 1
        services.shared.observer?.ended(error, at: origin)
        connection = nil
        switch mode {
        case .waiting:
            if error.code == .closedBeforeResponse, exchange.requiresSameConnection {
                return run(exchange.connectionLost(requestMayRepeat: head.method.isIdempotent))
            }
            if error.code == .closedBeforeResponse, wasReused, !hasRetried, head.method.isIdempotent,
                !replay.hasLostItsStart, bodyHasEnded
            {
                // The origin had closed an idle connection: RFC 9112 §9.3.1 lets the request go once more.
                hasRetried = true
                if let lastStep { return drained(lastStep) }
            }
            let giveUp = {
                self.endAttempt(.inconclusive)
                self.respond(OwnResponse(error))
            }
            // On a connection that has served before, the origin may have acted on the request already.
            let mayRepeat = !wasReused || head.method.isIdempotent
            if !mayRepeat || !waitsForIdentity(after: error, lastStep, giveUp: giveUp) { giveUp() }
        case .draining(let step, _):
            dialogue?.lastChallenge = nil
            drained(step)
        case .deciding:
            if held?.ended == false { held?.wasCut = true }
            held?.ended = true
        case .delivering:
            abort()
        case .preparing, .done:
            break
        }
    }

    private func switchProtocols(_ response: ResponseHead) {
        guard case .waiting = mode, case .transmit(_, isOpening: false)? = lastStep, head.upgrade != nil, bodyIsOut,
            let connection, let channel = connection.channel
        else {
            dropConnection()
            return originFailed(UpstreamError(.malformedResponse, "the origin switched protocols unasked"))
        }
        mode = .done
        conclude(exchange.responseReceived(status: 101, challengeFields: []))
        endAttempt(.inconclusive)
        self.connection = nil
        let bytes = response.forwarded(
            ResponseForwarding(framing: .none, connection: .upgrade, via: services.shared.via))
        entry.status = 101
        let tally = TunnelHandler.Tally(now: services.now) { tally in
            self.entry.bytes = tally.bytesFromOrigin
            self.log(status: 101)
        }
        let hasEnded = connection.inputEnded
        let rest = connection.becomeTunnel()
        client.becomeTunnel(to: channel, fromOrigin: rest, originHasEnded: hasEnded, tally: tally, response: bytes)
    }
}
