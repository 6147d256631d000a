// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignHTTP1
import NIOCore
import CountersignUpstream

/// A round goes out: the head that is made for the origin, and the client's body as it comes, or once more.
extension ExchangeDriver {
    /// What is left of `Max-Forwards` on TRACE and OPTIONS (RFC 9110 §7.6.2); nil where there is none.
    private var maxForwards: UInt? {
        guard head.method.takesMaxForwards, let value = head.fields.value(of: .maxForwards),
            let left = UInt(value)
        else { return nil }
        return left == 0 ? 0 : left - 1
    }

    func transmit(_ authorization: AuthorizationField?, isOpening: Bool, on connection: OriginConnection) {
        let sendsNoBody = isOpening || !head.hasBody
        let isUpgrade = head.upgrade != nil && !isOpening
        let forwarding = RequestForwarding(
            target: path, host: route.authority,
            framing: isOpening && head.hasBody ? .length(0) : head.framing,
            authorization: authorization?.fieldValue, via: services.shared.via,
            connection: isUpgrade ? .upgrade : .keepAlive, keepsExpect: !isOpening, maxForwards: maxForwards)
        if clientBindsConnection || isOpening { connection.isAuthenticated = true }
        sentAuthorization = authorization
        if authorization != nil { entry.rounds += 1 }
        mode = .waiting
        waitingSince = services.now
        lastProgress = services.now
        // Nothing of the body may come between what is sent here.
        isTransmitting = true
        connection.send(head, as: forwarding)
        streamsBody = !sendsNoBody
        missesPieces = false
        if sendsNoBody {
            connection.endRequest()
        } else {
            for piece in replay.pieces { sendPiece(piece, on: connection) }
            replay.allSent()
            if bodyHasEnded { sendBodyEnd(on: connection) }
        }
        isTransmitting = false
        if !sendsNoBody { pace() }
        connection.flush()
    }

    private func sendPiece(_ piece: ByteBuffer, on connection: OriginConnection) {
        guard head.framing.isChunked else { return connection.send(body: piece) }
        connection.send(body: ByteBuffer(bytes: ChunkedEncoding.header(byteCount: piece.readableBytes)))
        connection.send(body: piece)
        connection.send(body: ByteBuffer(bytes: ChunkedEncoding.lineEnd))
    }

    private func sendBodyEnd(on connection: OriginConnection) {
        if head.framing.isChunked {
            connection.send(body: ByteBuffer(bytes: ChunkedEncoding.end(trailers: bodyTrailers, head: head.fields)))
        }
        connection.endRequest()
    }

    func bodyReceived(_ piece: ByteBuffer) {
        lastProgress = services.now
        if case .done = mode { return }
        let sends = streamsBody && isSending
        if streamsBody, !sends { missesPieces = true }
        replay.append(piece, sent: sends)
        if sends, let connection { sendPiece(piece, on: connection) }
        pace()
    }

    func bodyEnded(trailers: FieldLines?) {
        bodyHasEnded = true
        bodyTrailers = trailers
        waitingSince = services.now
        if streamsBody, isSending, let connection {
            sendBodyEnd(on: connection)
            connection.flush()
        }
    }

    private var isSending: Bool {
        switch mode {
        case .waiting, .delivering: connection != nil && !missesPieces
        case .preparing, .deciding, .draining, .done: false
        }
    }

    /// Holds the client's body while the origin is slow, or while nothing can be sent and enough is kept.
    func pace() {
        guard !isTransmitting else { return }
        let sends = isSending && streamsBody
        // What waits for a flush would keep the connection from ever being writable again.
        if sends, let connection, !connection.isWritable { connection.flush() }
        let mustWait = sends ? !(connection?.isWritable ?? true) : replay.isFull
        if mustWait { client.pauseBody() } else { client.resumeBody() }
    }

    func clientReadCompleted() {
        connection?.flush()
    }
}
