// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignHTTP2
import CountersignUpstream
import NIOCore

/// The client's side of one exchange over HTTP/2: a stream of its connection.
///
/// A WebSocket is a stream of its own, too (RFC 8441). Its exchange sees the GET with Upgrade that opens one in
/// HTTP/1.1, and ends with the origin's 101. Later octets of the client go to a ``StreamTunnel``.
final class HTTP2ClientStream: ExchangeClient, HTTP2HeldBack {
    var speaksHTTP2: Bool { true }

    private let stream: HTTP2Stream
    private let connection: HTTP2ClientConnection
    /// Nil once the response is complete or the client has given the stream up.
    private var exchange: ExchangeDriver?

    // The request's content.

    /// Content that arrived while the exchange wanted none. The stream's window bounds it.
    private var held: [ByteBuffer] = []
    private var isPaused = false
    /// Octets that are still to come by the request's Content-Length; nil without one.
    ///
    /// The origin recognises the end of the request by its length. It must not be given all of it before the client has
    /// ended the stream, because content beyond the length makes the request malformed (RFC 9113 §8.1.1).
    private var left: UInt64?
    /// The end of the request arrived: its trailers, if any.
    private var end: FieldLines??
    /// The exchange has the whole request.
    private(set) var requestIsWhole = false
    /// When the response was complete before the request.
    private var droppedAt: UInt64?

    // The response.

    private var queue = HTTP2ContentQueue()
    /// The exchange or the tunnel has been asked to send no more for now.
    private(set) var isHeldBack = false
    /// The client has got another response than the exchange's, which is dropped.
    private var isReplaced = false

    // A WebSocket.

    private var isWebSocket: Bool { stream.extendedProtocol != nil }
    /// The way to the origin, after its 101.
    private var tunnel: StreamTunnel?

    init(_ stream: HTTP2Stream, of connection: HTTP2ClientConnection) {
        self.stream = stream
        self.connection = connection
    }

    // MARK: The request

    func begin(_ exchange: ExchangeDriver) {
        self.exchange = exchange
        requestIsWhole = !exchange.head.hasBody
        if case .length(let length) = exchange.head.framing { left = length }
        if left != 0 { exchange.start() }
    }

    /// Responds in place of an exchange.
    func refuse(with response: OwnResponse, _ method: Method) {
        send(response, to: method)
        stream.dropRequest()
        droppedAt = connection.services.now
    }

    func received(_ content: ByteBuffer) {
        if isWebSocket { return receivedOfWebSocket(content) }
        guard exchange != nil else { return stream.consume(content.readableBytes) }
        if let left { self.left = left - min(left, UInt64(content.readableBytes)) }
        held.append(content)
        if left != 0 { deliverHeld() }
    }

    private func deliverHeld() {
        while !isPaused, !held.isEmpty {
            let content = held.removeFirst()
            exchange?.clientSent(content)
            stream.consume(content.readableBytes)
        }
    }

    func requestEnded(trailers: FieldLines?) {
        if !requestIsWhole, exchange?.head.framing == .length(0) { exchange?.start() }
        end = .some(trailers)
        if isWebSocket { tunnel?.endOutput() } else { deliverEnd() }
    }

    private func deliverEnd() {
        deliverHeld()
        guard !requestIsWhole, held.isEmpty, let end else { return }
        requestIsWhole = true
        exchange?.clientRequestEnded(trailers: end)
    }

    /// Everything that one read delivered has been reported.
    func readCompleted() {
        exchange?.clientReadCompleted()
        tunnel?.flush()
    }

    func pauseRequest() { isPaused = true }

    func resumeRequest() {
        guard isPaused else { return }
        isPaused = false
        if end != nil { deliverEnd() } else if left != 0 { deliverHeld() }
        connection.writeSoon()
    }

    // MARK: The response

    func sendInterim(_ head: ResponseHead, _ changes: ResponseChanges) {
        stream.sendInterim(head, changes)
        connection.write()
    }

    func inviteContent() {
        stream.sendContinue()
        connection.write()
    }

    func send(_ response: BufferedResponse, _ changes: ResponseChanges) {
        if isWebSocket, (200..<300).contains(response.head.status) {
            // It would tell the client that the WebSocket is open.
            let detail = "the site answered a WebSocket's request with \(response.head.status) instead of 101"
            send(OwnResponse(status: 502, detail: detail, proxyError: "http_protocol_error"), to: .get)
            isReplaced = true
            return
        }
        // An empty response is its head alone: gRPC takes an empty DATA frame in one of its errors for a fault.
        let isEmpty = response.content == .none || response.content == .length(0)
        stream.send(
            response.head, changes, framing: isEmpty ? .none : Self.framing(of: response.content), endsStream: isEmpty)
    }

    /// END_STREAM marks the end of content without a length.
    private static func framing(of content: ContentEnd) -> BodyFraming {
        switch content {
        case .none: .none
        case .length(let length): .length(length)
        case .marked, .connectionClose: .chunked
        }
    }

    func send(_ content: ByteBuffer) {
        guard content.readableBytes > 0, stream.isOpen, !isReplaced else { return }
        queue.append(content)
        connection.link.queuedBytes += content.readableBytes
        stream.queueContent(content.readableBytes)
        guard !isHeldBack, !isWritable else { return }
        isHeldBack = true
        connection.link.holdBack(self)
    }

    func finish(trailers: FieldLines?) {
        stream.finish(trailers: trailers)
        finished()
    }

    func finish(with response: OwnResponse) {
        send(response, to: exchange?.head.method ?? .get)
        finished()
    }

    /// Sends the whole of `response`.
    private func send(_ response: OwnResponse, to method: Method) {
        let (fields, content) = response.message
        let hasContent = method != .head && !content.isEmpty
        stream.send(
            status: response.status, fields: fields, contentLength: content.count, endsStream: !hasContent)
        guard hasContent else { return }
        send(ByteBuffer(bytes: content))
        stream.finish()
    }

    private func finished() {
        exchange = nil
        held = []
        if !requestIsWhole {
            stream.dropRequest()
            droppedAt = connection.services.now
        }
        connection.writeSoon()
    }

    func reset() {
        exchange = nil
        // What there is of the response goes out first, as far as the windows permit.
        connection.write()
        stream.reset(.internalError)
        connection.write()
    }

    func flush() { connection.writeSoon() }

    /// A stream with an empty queue always gets some content, so that no other can stop it.
    var isWritable: Bool { stream.isWritable && (queue.byteCount == 0 || connection.link.takesContent) }

    /// The connection has written content. False if the exchange must still wait.
    func resumeIfWritable() -> Bool {
        guard isWritable || exchange == nil && tunnel == nil else { return false }
        isHeldBack = false
        exchange?.clientWritabilityChanged(true)
        tunnel?.clientHasRoom()
        return true
    }

    /// The session writes the next `byteCount` octets of the content.
    func writeContent(_ byteCount: Int, to output: MessageOutput) {
        connection.link.queuedBytes -= byteCount
        queue.write(byteCount, to: output)
    }

    func closeAfterResponse() { connection.http2?.refuseNewStreams() }

    // MARK: A WebSocket

    func switchProtocols(
        _ head: ResponseHead, _ changes: ResponseChanges, to origin: UpgradedConnection, tally: TunnelHandler.Tally
    ) {
        guard let exchange, isWebSocket, WebSocketHandshake.accepts(exchange.head, head) else {
            origin.channel.close(promise: nil)
            tally.finish()
            return finish(
                with: OwnResponse(
                    status: 502, detail: "the site opened a WebSocket, but its response is not one to the request",
                    proxyError: "http_protocol_error"))
        }
        self.exchange = nil
        stream.accept(head, changes)
        let (early, tunnel) = (held, StreamTunnel(self, tally: tally, services: connection.services))
        held = []
        self.tunnel = tunnel
        tunnel.join(origin, sent: early, hasEnded: end != nil)
    }

    /// Before the WebSocket is open, the stream's window bounds what waits.
    private func receivedOfWebSocket(_ content: ByteBuffer) {
        if let tunnel {
            tunnel.send(content)
        } else if exchange != nil {
            held.append(content)
        } else {
            stream.consume(content.readableBytes)
        }
    }

    /// The client sends nothing more on its connection.
    func connectionEndedInput() {
        if isWebSocket { return requestEnded(trailers: nil) }
        // Nobody should be asked about the request of a client that has gone.
        if !requestIsWhole || exchange?.approvalTicket != nil { cancel() }
    }

    // MARK: The end

    /// How long a client may go on with a request that has its response, in seconds.
    private static let lingerSeconds: UInt64 = 2

    func secondPassed(now: UInt64) {
        if let droppedAt, now > droppedAt + Self.lingerSeconds { return stream.reset(.noError) }
        exchange?.secondPassed(now: now)
    }

    /// The client cannot complete its request.
    func cancel() {
        guard let exchange else { return }
        self.exchange = nil
        exchange.clientGone()
        stream.reset(.cancel)
    }

    /// The stream is closed.
    func ended() {
        let exchange = self.exchange
        self.exchange = nil
        held = []
        connection.link.queuedBytes -= queue.byteCount
        queue.removeAll()
        exchange?.clientGone()
        let tunnel = self.tunnel
        self.tunnel = nil
        tunnel?.clientGone()
    }
}

extension HTTP2ClientStream: TunnelledStream {
    func consumed(_ byteCount: Int) { stream.consume(byteCount) }

    func originEnded() {
        stream.finish()
        connection.write()
    }

    func originFailed() {
        stream.reset(.connectError)
        connection.write()
    }
}
