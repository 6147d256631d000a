// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignChallenges
import CountersignHTTP1
import CountersignHTTP2
import CountersignTLS
import NIOCore

/// A lease of an ``HTTP2OriginConnection``. Each request of its holder is sent on a stream of its own.
package final class HTTP2OriginStream: OriginLease {
    private let connection: HTTP2OriginConnection
    package var delegate: (any OriginStreamDelegate)?
    package private(set) var requestCount = 0

    /// Nil before the first request and after the end of each.
    private var stream: HTTP2Stream?
    private var isOver = false
    /// When the last request was sent.
    private var opened: UInt64 = 0

    // The request.

    private var outgoing = OutgoingContent()
    private var queue = HTTP2ContentQueue()
    /// The delegate has been told that no more content is wanted for now.
    private var isHeldBack = false

    // The response.

    /// Content that arrived while the holder wanted none. The stream's window bounds it.
    private var held: [ByteBuffer] = []
    private var isPaused = false
    private var isTouched = false
    private var hasHead = false
    /// The response is complete: its trailers, if any.
    private var end: FieldLines??
    /// The response will not be completed.
    private var failure: UpstreamError?
    /// The holder has the whole response, or has not sent a request.
    private var isIdle = true

    init(of connection: HTTP2OriginConnection) {
        self.connection = connection
    }

    // MARK: The connection

    package var place: String { connection.place }
    package var tls: TLSSummary? { connection.tls }
    package var tlsVersion: String? { connection.tls?.version }
    package var forwarder: Origin? { nil }
    package var forwarderTLS: TLSSummary? { nil }
    package var http2: HTTP2OriginConnection? { connection }
    package var address: String? { connection.context?.remoteAddressText }

    /// A handshake is over before there is a lease, and HTTP/2 has no later requests for a certificate.
    package var certificateSource: CertificateSource? {
        get { nil }
        set { _ = newValue }
    }
    package var certificateChecks: ThreeChecks? {
        get { connection.certificateChecks }
        set { connection.certificateChecks = newValue }
    }
    package var shownIdentity: Identity? { connection.shownIdentity }
    package var hasShownIdentity: Bool { connection.hasShownIdentity }
    package var lacksIdentity: Bool {
        get { connection.lacksIdentity }
        set { connection.lacksIdentity = newValue }
    }
    package var showedIdentity: String? { connection.tlsHandler?.shownIdentity }
    package var isAuthenticated: Bool {
        get { connection.isAuthenticated }
        set { connection.isAuthenticated = newValue }
    }
    package var isPersistentlyAuthenticated: Bool {
        get { connection.isPersistentlyAuthenticated }
        set { _ = newValue }
    }
    package var parentAuthentication: ParentAuthentication { .none }
    /// No parent forwards requests in HTTP/2.
    package func authenticatedToParent() {}
    package func becomesPersonal() {}

    package var repair: HTTP1Error.Code? { nil }
    package var carriesHandshake: Bool {
        get { false }
        set { _ = newValue }
    }
    package var statusOfUnreadHead: Int? { hasHead ? nil : stream?.receivedStatus }

    package var isReusable: Bool { !isOver && isIdle && outgoing.isWhole && stream == nil && connection.isReusable }

    // MARK: The request

    package func send(_ head: RequestHead, _ changes: consuming RequestChanges) {
        guard !isOver, isIdle, stream == nil else { return }
        let framing = changes.framing(of: head)
        let forwarding = changes.forwarding(framing, connection: .keepAlive, isForParent: false)
        let hasContent = framing != .none && framing != .length(0)
        isIdle = false
        hasHead = false
        end = nil
        outgoing.begin(framing)
        opened = HTTP2Link.clock
        guard let stream = connection.open(head, forwarding, endsStream: !hasContent, for: self) else {
            return fail(UpstreamError(.notProcessed, "\(place): the HTTP/2 connection takes no further request"))
        }
        requestCount = connection.requestCount
        self.stream = stream
    }

    package func send(_ content: ByteBuffer) {
        let count = content.readableBytes
        guard count > 0, let stream, stream.isOpen else { return }
        guard outgoing.take(count) else {
            return contentFault("\(count) bytes were to be sent behind the end of a request's content")
        }
        queue.append(content)
        connection.link.queuedBytes += count
        stream.queueContent(count)
        guard !isHeldBack, !isWritable else { return }
        isHeldBack = true
        connection.link.holdBack(self)
    }

    package func finish(trailers: FieldLines?) {
        guard let stream, stream.isOpen else { return }
        guard outgoing.end() else { return contentFault("a request was to end where its content does not") }
        stream.finish(trailers: trailers)
    }

    /// The caller does not send the content that it has announced.
    private func contentFault(_ detail: String) {
        stream?.reset(.internalError)
        fail(UpstreamError(.ownFault, "\(place): \(detail); the request is abandoned"))
        connection.write()
    }

    package func flush() { connection.writeSoon() }

    /// A stream with an empty queue always gets some content, so that no other can stop it.
    package var isWritable: Bool {
        guard let stream else { return true }
        return stream.isWritable && (queue.byteCount == 0 || connection.link.takesContent)
    }

    package var requestIsWhole: Bool { outgoing.isWhole }

    func writeContent(_ byteCount: Int, to output: MessageOutput) {
        connection.link.queuedBytes -= byteCount
        queue.write(byteCount, to: output)
    }

    private func dropQueue() {
        connection.link.queuedBytes -= queue.byteCount
        queue.removeAll()
    }

    // MARK: The response

    func received(_ head: consuming ResponseHead, _ framing: BodyFraming) {
        touch()
        if head.isInformational {
            delegate?.originResponded(head, content: .none)
        } else {
            hasHead = true
            delegate?.originResponded(head, content: ContentEnd(framing))
        }
    }

    func received(_ content: ByteBuffer) {
        touch()
        held.append(content)
        deliver()
    }

    func receivedEnd(trailers: FieldLines?) {
        touch()
        end = .some(trailers)
        deliver()
    }

    /// Delivers what the holder takes.
    private func deliver() {
        while !isPaused, !held.isEmpty {
            let content = held.removeFirst()
            stream?.consume(content.readableBytes)
            delegate?.originSent(content)
        }
        guard !isPaused, held.isEmpty, !isIdle else { return }
        if let end {
            isIdle = true
            delegate?.originResponseEnded(trailers: end)
        } else if let failure {
            fail(failure)
        }
    }

    /// Something is reported of which the read's end is reported, too.
    private func touch() {
        guard !isTouched else { return }
        isTouched = true
        connection.touch(self)
    }

    /// Everything that one read delivered has been reported.
    func readCompleted() {
        isTouched = false
        delegate?.originReadCompleted()
    }

    package func pauseReading() { isPaused = true }

    package func resumeReading() {
        guard isPaused else { return }
        isPaused = false
        deliver()
        delegate?.originReadCompleted()
        connection.writeSoon()
    }

    /// The stream is closed.
    func ended(_ stream: HTTP2Stream, _ result: HTTP2StreamEnd) {
        guard self.stream === stream else { return }
        dropQueue()
        self.stream = nil
        guard !isOver else { return }
        connection.streamEnded()
        guard end == nil else { return }
        failure = error(for: result, of: stream)
        deliver()
    }

    private func error(for end: HTTP2StreamEnd, of stream: HTTP2Stream) -> UpstreamError {
        let status = stream.receivedStatus
        if let refusal = stream.refusal {
            return UpstreamError(.malformedResponse, "\(place): \(refusal.detail)", status: status)
        }
        if end.isRetryable { return UpstreamError(.notProcessed, "\(place): has not processed the request") }
        if end.requiresHTTP1 { return UpstreamError(.needsHTTP1, "\(place): answers this request over HTTP/1.1 only") }
        let code: UpstreamError.Code = hasHead ? .closedInResponse : .closedBeforeResponse
        switch end {
        case .resetByPeer(let reason):
            return UpstreamError(code, "\(place): reset the request's stream with \(reason)", status: status)
        case .resetByUs(let reason):
            return UpstreamError(
                .malformedResponse, "\(place): broke the rules of HTTP/2 (\(reason))", status: status)
        case .connectionLost, .complete, .notProcessed:
            guard let failure = connection.failure else { return connection.connectionLost }
            guard hasHead, failure.code == .closedBeforeResponse else { return failure }
            return UpstreamError(code, "\(place): closed the connection inside a response")
        }
    }

    // MARK: The end

    private func fail(_ error: UpstreamError) {
        let listener = delegate
        release()
        listener?.originFailed(error)
    }

    package func reset() { close() }

    package func close() {
        guard !isOver else { return }
        if stream != nil, end == nil, !hasHead { connection.wasSilent(since: opened) }
        release()
        connection.write()
    }

    /// Ends the lease, and with it the request.
    private func release(now: UInt64? = nil) {
        guard !isOver else { return }
        isOver = true
        delegate = nil
        held = []
        let isWaiting = stream == nil
        stream?.reset(.cancel)
        connection.leaseEnded(isWaiting: isWaiting, now: now)
    }

    package func giveBack(to slot: UpstreamPool.Slot, now: UInt64) {
        slot.share(connection)
        release(now: now)
        connection.writeSoon()
    }

    package func keep() -> (any KeptConnection)? {
        let isReusable = connection.isReusable
        if isReusable { connection.isKeptByClient() }
        release()
        connection.writeSoon()
        return isReusable ? connection : nil
    }

    /// HTTP/2 has no Upgrade (RFC 9113 §8.6).
    package func upgrade() -> UpgradedConnection? { nil }
}

extension HTTP2OriginStream: HTTP2HeldBack {
    package func resumeIfWritable() -> Bool {
        guard isWritable || isOver else { return false }
        isHeldBack = false
        delegate?.originWritabilityChanged(true)
        return true
    }
}
