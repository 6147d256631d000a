// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignUpstream
import CountersignChannelTLS
import NIOCore

/// Responses in HTTP/1: the framing of their content, `Connection`, and whether the connection serves another request.
extension ClientConnection: ExchangeClient {
    var speaksHTTP2: Bool { false }

    func sendInterim(_ head: ResponseHead, _ changes: ResponseChanges) {
        guard exchange?.head.version == .http11 else { return }
        output.write(about: head.forwardedSize) {
            head.write(changes, framing: .none, connection: .keepAlive, into: $0)
        }
        output.flush()
    }

    func inviteContent() {
        guard exchange?.head.version == .http11 else { return }
        output.write(GeneratedResponse.interimContinue)
        output.flush()
    }

    func send(_ response: BufferedResponse, _ changes: ResponseChanges) {
        guard let exchange else { return }
        responseFraming = Self.framing(of: response.content, for: exchange.head.version)
        if responseFraming.isChunked { responseFields = response.head.fields }
        keepsAlive = mayKeepAlive(exchange) && !responseFraming.endsConnection
        let (framing, connection) = (responseFraming, keepsAlive ? ConnectionOption.keepAlive : .close)
        output.write(about: response.head.forwardedSize, isSecret: changes.isSecret) {
            response.head.write(changes, framing: framing, connection: connection, into: $0)
        }
    }

    /// Content without a length is sent in chunks, which HTTP/1.0 does not know.
    private static func framing(of content: ContentEnd, for version: HTTPVersion) -> BodyFraming {
        switch content {
        case .none: .none
        case .length(let length): .length(length)
        case .marked: version == .http10 ? .untilClose : .chunked
        case .connectionClose: .untilClose
        }
    }

    /// Whether another request may follow on this connection. After a response that is sent before the request has
    /// ended, the rest of the request's content could not be distinguished from the next head.
    private func mayKeepAlive(_ exchange: ExchangeDriver) -> Bool {
        guard case .responding = phase else { return false }
        return exchange.head.keepsAlive && !services.isDraining && !closesAfterResponse
    }

    func send(_ content: ByteBuffer) {
        if responseFraming.isChunked {
            output.write(ChunkedEncoding.header(byteCount: content.readableBytes))
            output.write(content)
            output.write(ChunkedEncoding.lineEnd)
        } else {
            output.write(content)
        }
        // Content that waits for a flush would keep the connection from becoming writable again.
        if !isWritable { output.flush() }
    }

    func finish(trailers: FieldLines?) {
        if responseFraming.isChunked {
            output.write(ChunkedEncoding.end(trailers: trailers, head: responseFields))
            responseFields = nil
        }
        output.flush()
        responseFinished(keepAlive: keepsAlive)
    }

    func finish(with response: OwnResponse) {
        guard let exchange else { return }
        let keepsAlive = mayKeepAlive(exchange)
        output.write(response.bytes(keepAlive: keepsAlive, to: exchange.head.method))
        output.flush()
        responseFinished(keepAlive: keepsAlive)
    }

    /// If the end of the connection ends the content, a FIN would make the part look complete, so the connection is
    /// reset. Otherwise the close alone shows the cut, and the client keeps the part: a reset may overtake it.
    func reset() {
        abortResponse(needsReset: responseFraming == .untilClose)
    }

    func flush() { output.flush() }

    func closeAfterResponse() { closesAfterResponse = true }

    private func responseFinished(keepAlive: Bool) {
        exchange = nil
        bodyPaused = false
        idleSince = services.now
        guard keepAlive, !closesAfterResponse, !services.isDraining, case .responding = phase else {
            return lingerAndClose()
        }
        phase = .head
        headStartedAt = input.byteCount > 0 ? services.now : nil
        updateReading()
        parse()
        if inputEnded, case .head = phase { lingerAndClose() }
    }

    func switchProtocols(
        _ head: ResponseHead, _ changes: ResponseChanges, to origin: UpgradedConnection, tally: TunnelHandler.Tally
    ) {
        let bytes = head.forwarded(changes, framing: .none, connection: .upgrade)
        becomeTunnel(
            to: origin.channel, fromOrigin: origin.received, originHasEnded: origin.inputEnded, tally: tally,
            response: bytes)
    }

    // MARK: The request's content

    func pauseRequest() {
        guard !bodyPaused else { return }
        bodyPaused = true
        updateReading()
    }

    func resumeRequest() {
        guard bodyPaused else { return }
        bodyPaused = false
        updateReading()
        parse()
    }
}
