// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignUpstream
import Foundation
import NIOCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One request and its response, on one event loop.
final class URLSessionTransfer: OriginStreamDelegate {
    /// A part of a response.
    enum Piece: Sendable {
        /// The head, as a response without content.
        case head(ProxiedResponse)
        case content(Data)
    }

    /// A handle for other threads.
    struct Handle: Sendable {
        private let loop: any EventLoop
        private let transfer: NIOLoopBoundBox<URLSessionTransfer?>
        private let isCancelled: NIOLoopBoundBox<Bool>

        init(loop: any EventLoop) {
            self.loop = loop
            transfer = .makeBoxSendingValue(nil, eventLoop: loop)
            isCancelled = .makeBoxSendingValue(false, eventLoop: loop)
        }

        func begin(_ transfer: URLSessionTransfer) {
            guard !isCancelled.value else { return }
            self.transfer.value = transfer
            transfer.start()
        }

        /// Reads on, after a piece was not accepted.
        func resume() {
            loop.execute { transfer.value?.resumeReading() }
        }

        /// Cancels the transfer. Its completion is not called.
        func cancel() {
            loop.execute {
                isCancelled.value = true
                transfer.value?.end()
                transfer.value = nil
            }
        }
    }

    private let request: ProxiedRequest
    private let latest: NIODeadline
    private let link: ProxyLink
    private let loop: any EventLoop
    private let pieces: (@Sendable (Piece) -> Bool)?
    private let sent: (@Sendable (UInt64) -> Void)?
    private var completion: ((Result<ProxiedResponse, any Error>) -> Void)?
    private var connection: OriginConnection?
    private var isReused = false
    private var acceptedBefore = 0
    private var head: ResponseHead?
    private var body = Data()
    private var deadline: Scheduled<Void>?
    private var isPaused = false
    private var upload: Upload?

    /// Content on its way to the proxy.
    private struct Upload {
        var sentBytes: UInt64 = 0
        /// Reads the content.
        var task: Task<Void, Never>?
        /// Is fulfilled when the proxy accepts more.
        var waiting: EventLoopPromise<UInt64>?
    }

    init(
        _ request: ProxiedRequest, by latest: NIODeadline, link: ProxyLink, loop: any EventLoop,
        pieces: (@Sendable (Piece) -> Bool)?, sent: (@Sendable (UInt64) -> Void)?,
        completion: @escaping (Result<ProxiedResponse, any Error>) -> Void
    ) {
        self.request = request
        self.latest = latest
        self.link = link
        self.loop = loop
        self.pieces = pieces
        self.sent = sent
        self.completion = completion
    }

    private func start() {
        let head: [UInt8]
        do {
            head = try request.head()
        } catch {
            return finish(.failure(URLError(.badURL)))
        }
        restartTimeout()
        // The proxy may have closed an idle connection, and a stream could not be sent again.
        if case .stream = request.content {
            connect(head)
        } else if let idle = link.takeIdle() {
            isReused = true
            send(head, on: idle)
        } else {
            connect(head)
        }
    }

    private func connect(_ head: [UInt8]) {
        isReused = false
        link.connect { [self] connection in
            guard let connection else {
                let reason = "the proxy that was to answer challenges does not run"
                return finish(.failure(URLError(.cannotConnectToHost, userInfo: [NSLocalizedDescriptionKey: reason])))
            }
            guard completion != nil else { return connection.close() }
            send(head, on: connection)
        }
    }

    private func send(_ head: [UInt8], on connection: OriginConnection) {
        self.connection = connection
        acceptedBefore = link.acceptedServerCount
        connection.delegate = self
        let method = Method(rawValue: request.method) ?? .get
        if case .stream(let stream) = request.content {
            connection.send(head: head, method: method, content: stream.length.map { .length($0) } ?? .chunked)
            // The reader begins on another thread, so that its first part follows the head.
            send(stream)
            return connection.flush()
        }
        connection.send(head: head, method: method)
        connection.finish(trailers: nil)
        connection.flush()
    }

    /// Restarts the time-out. While the reader of the response does not accept more, only the whole task is limited.
    private func restartTimeout() {
        deadline?.cancel()
        let end = isPaused ? latest : min(loop.now + request.patience, latest)
        deadline = loop.assumeIsolated().scheduleTask(deadline: end) { [weak self] in
            self?.finish(.failure(URLError(.timedOut)))
        }
    }

    private func finish(_ result: Result<ProxiedResponse, any Error>) {
        let tell = completion
        end()
        tell?(result)
    }

    private func end() {
        completion = nil
        deadline?.cancel()
        deadline = nil
        upload?.task?.cancel()
        upload?.waiting?.fail(CancellationError())
        upload = nil
        if let connection { link.returnConnection(connection, acceptedBefore: acceptedBefore) }
        connection = nil
    }

    // MARK: Content of the request

    private func send(_ stream: ContentStream) {
        let reader = ContentReader(
            stream: stream, transfer: NIOLoopBound(self, eventLoop: loop), loop: loop, sent: sent)
        upload = Upload(task: reader.start())
    }

    /// Reads the content of a request, and passes it to the transfer.
    private struct ContentReader: Sendable {
        /// The longest part that is passed to the connection at once.
        private static let partBytes = 128 * 1024

        let stream: ContentStream
        let transfer: NIOLoopBound<URLSessionTransfer>
        let loop: any EventLoop
        let sent: (@Sendable (UInt64) -> Void)?

        func start() -> Task<Void, Never> { Task { await send() } }

        private func send() async {
            do {
                try await stream.send(send)
                loop.execute { transfer.value.contentEnded(nil) }
            } catch {
                loop.execute { transfer.value.contentEnded(error) }
            }
        }

        @Sendable private func send(_ part: Data) async throws {
            var rest = part[...]
            while !rest.isEmpty {
                let buffer = ByteBuffer(bytes: rest.prefix(Self.partBytes))
                rest = rest.dropFirst(Self.partBytes)
                let accepted = loop.makePromise(of: UInt64.self)
                loop.execute { transfer.value.send(buffer, accepted) }
                let total = try await accepted.futureResult.get()
                sent?(total)
            }
        }
    }

    /// Sends a part of the content. Fulfils the promise when the connection accepts more. A send may re-enter this
    /// object before it returns, so nothing is changed after it.
    private func send(_ part: ByteBuffer, _ accepted: EventLoopPromise<UInt64>) {
        guard let connection, case .stream(let stream) = request.content, let upload else {
            return accepted.fail(CancellationError())
        }
        let total = upload.sentBytes + UInt64(part.readableBytes)
        if let length = stream.length, total > length { return accepted.fail(Self.wrongLength(stream)) }
        restartTimeout()
        self.upload?.sentBytes = total
        self.upload?.waiting = accepted
        connection.send(part)
        connection.flush()
        if self.connection === connection { originWritabilityChanged(connection.isWritable) }
    }

    private func contentEnded(_ failure: (any Error)?) {
        guard let connection, case .stream(let stream) = request.content, let upload else { return }
        if let failure { return finish(.failure(failure)) }
        if let length = stream.length, upload.sentBytes != length {
            return finish(.failure(Self.wrongLength(stream)))
        }
        connection.finish(trailers: nil)
        connection.flush()
    }

    private static func wrongLength(_ stream: ContentStream) -> URLError {
        let reason = "the content does not have the announced length of \(stream.length ?? 0) bytes"
        return URLError(.requestBodyStreamExhausted, userInfo: [NSLocalizedDescriptionKey: reason])
    }

    func originWritabilityChanged(_ isWritable: Bool) {
        guard isWritable, let sentBytes = upload?.sentBytes, let accepted = upload?.waiting else { return }
        upload?.waiting = nil
        accepted.succeed(sentBytes)
    }

    // MARK: The response

    func originResponded(_ head: ResponseHead, content: ContentEnd) {
        restartTimeout()
        guard !head.isInformational else { return }
        self.head = head
        pass(.head(response(head)))
    }

    func originSent(_ content: ByteBuffer) {
        restartTimeout()
        if pieces == nil {
            body.append(contentsOf: content.readableBytesView)
        } else {
            pass(.content(Data(content.readableBytesView)))
        }
    }

    private func pass(_ piece: Piece) {
        guard completion != nil, let pieces, !pieces(piece) else { return }
        isPaused = true
        connection?.pauseReading()
        restartTimeout()
    }

    private func resumeReading() {
        guard isPaused else { return }
        isPaused = false
        guard completion != nil else { return }
        restartTimeout()
        connection?.resumeReading()
    }

    func originResponseEnded(trailers: FieldLines?) {
        guard let head else { return finish(.failure(URLError(.badServerResponse))) }
        finish(.success(response(head)))
    }

    private func response(_ head: ResponseHead) -> ProxiedResponse {
        let fields = head.fields.lines.map { (name: head.fields.name(of: $0), value: head.fields.value(of: $0)) }
        return ProxiedResponse(status: head.status, fields: fields, body: body)
    }

    func originReadCompleted() {}

    func originFailed(_ error: UpstreamError) {
        connection = nil
        let isIdempotent = Method(rawValue: request.method)?.isIdempotent ?? false
        if isReused, error.code == .closedBeforeResponse, isIdempotent, let head = try? request.head() {
            // The proxy had closed an idle connection (RFC 9112 §9.3.1).
            return connect(head)
        }
        guard error.code != .ownFault else {
            return finish(.failure(URLError(.unknown, userInfo: [NSLocalizedDescriptionKey: error.detail])))
        }
        finish(.failure(URLError(error.code == .malformedResponse ? .badServerResponse : .networkConnectionLost)))
    }
}
