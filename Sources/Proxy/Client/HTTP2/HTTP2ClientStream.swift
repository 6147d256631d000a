// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignHTTP2
import CountersignUpstream
import NIOCore

/// The client's side of one exchange over HTTP/2: a stream of its connection.
final class HTTP2ClientStream: ExchangeClient {
    private let stream: HTTP2Stream
    private let connection: HTTP2ClientConnection
    /// Nil before it begins, and once the response is complete or the client has given the stream up.
    private var exchange: ExchangeDriver?

    // The request's content.

    /// Content that arrived while the exchange wanted none. The stream's window bounds it.
    private var held: [ByteBuffer] = []
    private var isPaused = false
    /// The end of the request arrived: its trailers, if any.
    private var end: FieldLines??
    /// The exchange has the whole request.
    private(set) var requestIsWhole = false

    // The response.

    /// Content that the session has not written yet, the next piece first.
    private var queue = CircularBuffer<ByteBuffer>(initialCapacity: 2)

    init(_ stream: HTTP2Stream, of connection: HTTP2ClientConnection) {
        self.stream = stream
        self.connection = connection
    }

    // MARK: The request

    func begin(_ exchange: ExchangeDriver) {
        self.exchange = exchange
        requestIsWhole = !exchange.head.hasBody
        exchange.start()
    }

    /// Responds in place of an exchange.
    func refuse(with response: OwnResponse, _ method: Method) {
        send(response, to: method)
        stream.stopRequest()
        requestIsWhole = true
    }

    func received(_ content: ByteBuffer) {
        guard let exchange else { return stream.consume(content.readableBytes) }
        guard !isPaused else { return held.append(content) }
        exchange.clientSent(content)
        stream.consume(content.readableBytes)
    }

    func requestEnded(trailers: FieldLines?) {
        end = .some(trailers)
        deliverEnd()
    }

    private func deliverEnd() {
        guard !requestIsWhole, held.isEmpty, let end else { return }
        requestIsWhole = true
        exchange?.clientRequestEnded(trailers: end)
    }

    /// Everything that one read delivered has been reported.
    func readCompleted() { exchange?.clientReadCompleted() }

    func pauseRequest() { isPaused = true }

    func resumeRequest() {
        guard isPaused else { return }
        isPaused = false
        while !isPaused, !held.isEmpty {
            let content = held.removeFirst()
            exchange?.clientSent(content)
            stream.consume(content.readableBytes)
        }
        if !isPaused { deliverEnd() }
        connection.write()
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
        stream.send(
            response.head, changes, framing: Self.framing(of: response.content),
            endsStream: response.content == .none)
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
        guard content.readableBytes > 0, stream.isOpen else { return }
        queue.append(content)
        stream.queueContent(content.readableBytes)
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
        if !requestIsWhole { stream.stopRequest() }
        connection.write()
    }

    func reset() {
        exchange = nil
        stream.reset(.internalError)
        connection.write()
    }

    func flush() { connection.write() }

    var isWritable: Bool { stream.isWritable }

    func becameWritable() { exchange?.clientWritabilityChanged(true) }

    /// The session writes the next `byteCount` octets of the content.
    func writeContent(_ byteCount: Int, to output: MessageOutput) {
        var left = byteCount
        while left > 0, var piece = queue.popFirst() {
            if piece.readableBytes > left {
                if let part = piece.readSlice(length: left) { output.write(part) }
                queue.prepend(piece)
                return
            }
            left -= piece.readableBytes
            output.write(piece)
        }
    }

    func closeAfterResponse() { connection.http2?.refuseNewStreams() }

    /// HTTP/2 has no Upgrade, so the exchange never asks for one (RFC 9113 §8.6).
    func switchProtocols(
        _ head: ResponseHead, _ changes: ResponseChanges, to origin: UpgradedConnection, tally: TunnelHandler.Tally
    ) {
        origin.channel.close(promise: nil)
        tally.finish()
        reset()
    }

    // MARK: The end

    func secondPassed(now: UInt64) { exchange?.secondPassed(now: now) }

    /// The client cannot complete its request.
    func cancel() {
        let exchange = self.exchange
        self.exchange = nil
        exchange?.clientGone()
        stream.reset(.cancel)
    }

    /// The stream is closed.
    func ended() {
        let exchange = self.exchange
        self.exchange = nil
        held = []
        queue.removeAll()
        exchange?.clientGone()
    }
}
