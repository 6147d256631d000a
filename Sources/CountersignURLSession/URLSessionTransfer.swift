// SPDX-License-Identifier: Apache-2.0

import Countersign
import Foundation
import CountersignHTTP1
import NIOCore
import NIOPosix
import CountersignUpstream

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Connects URLSession to a proxy in the same process: an event loop, and idle connections for later requests. The
/// connections are socket pairs rather than TCP connections, so another process that takes over the proxy's port cannot
/// receive requests. Holds the proxy weakly.
final class ProxyLink: Sendable {
    private static let idleConnections = 4

    private weak let proxy: ChallengeProxy?
    private let loop: any EventLoop
    private let idle: NIOLoopBoundBox<[OriginConnection]>

    init(to proxy: ChallengeProxy) {
        self.proxy = proxy
        loop = MultiThreadedEventLoopGroup.singleton.next()
        idle = .makeBoxSendingValue([], eventLoop: loop)
    }

    /// Sends a request and reads the complete response before the deadline. Calls `completion` once, on the event loop,
    /// or not at all after a cancellation. With `pieces`, passes the response's head and content to it as they arrive,
    /// and a response without its content to `completion`.
    func send(
        _ request: ProxiedRequest, by deadline: NIODeadline,
        pieces: (@Sendable (URLSessionTransfer.Piece) -> Void)? = nil,
        completion: @escaping @Sendable (Result<ProxiedResponse, URLError>) -> Void
    ) -> URLSessionTransfer.Handle {
        let handle = URLSessionTransfer.Handle(loop: loop)
        loop.execute { [self] in
            let transfer = URLSessionTransfer(
                request, by: deadline, link: self, loop: loop, pieces: pieces, completion: completion)
            handle.begin(transfer)
        }
        return handle
    }

    // MARK: On the event loop

    /// Takes an idle connection, if there is one.
    func takeIdle() -> OriginConnection? {
        while let connection = idle.value.popLast() {
            if connection.isReusable { return connection }
        }
        return nil
    }

    /// How often the delegate has accepted an unverified server.
    var acceptedServerCount: Int { proxy?.acceptedServerCount ?? 0 }

    /// Makes a connection available again, unless the delegate has accepted a server since the request was sent: such a
    /// decision applies to the connection on which it was made, which must not serve another task. `acceptedBefore` is
    /// the value of ``acceptedServerCount`` when the request was sent.
    func returnConnection(_ connection: OriginConnection, acceptedBefore: Int) {
        connection.delegate = nil
        guard connection.isReusable, acceptedBefore == acceptedServerCount,
            idle.value.count < Self.idleConnections
        else {
            return connection.close()
        }
        idle.value.append(connection)
    }

    /// Opens a connection, or passes nil if the proxy is not running.
    func connect(_ completion: @escaping (OriginConnection?) -> Void) {
        guard let descriptor = proxy?.connect() else { return completion(nil) }
        ClientBootstrap(group: loop)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .withConnectedSocket(descriptor)
            .assumeIsolated()
            .whenComplete { result in
                completion(try? OriginConnection.plain(over: result.get(), place: "the proxy"))
            }
    }
}

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

        fileprivate func begin(_ transfer: URLSessionTransfer) {
            guard !isCancelled.value else { return }
            self.transfer.value = transfer
            transfer.start()
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
    private let pieces: (@Sendable (Piece) -> Void)?
    private var completion: ((Result<ProxiedResponse, URLError>) -> Void)?
    private var connection: OriginConnection?
    private var isReused = false
    private var acceptedBefore = 0
    private var head: ResponseHead?
    private var body = Data()
    private var deadline: Scheduled<Void>?

    init(
        _ request: ProxiedRequest, by latest: NIODeadline, link: ProxyLink, loop: any EventLoop,
        pieces: (@Sendable (Piece) -> Void)?, completion: @escaping (Result<ProxiedResponse, URLError>) -> Void
    ) {
        self.request = request
        self.latest = latest
        self.link = link
        self.loop = loop
        self.pieces = pieces
        self.completion = completion
    }

    fileprivate func start() {
        let bytes: [UInt8]
        do {
            bytes = try request.bytes()
        } catch {
            return finish(.failure(URLError(.badURL)))
        }
        restartTimeout()
        if let idle = link.takeIdle() {
            isReused = true
            send(bytes, on: idle)
        } else {
            connect(bytes)
        }
    }

    private func connect(_ bytes: [UInt8]) {
        isReused = false
        link.connect { [self] connection in
            guard let connection else {
                let reason = "the proxy that was to answer challenges does not run"
                return finish(.failure(URLError(.cannotConnectToHost, userInfo: [NSLocalizedDescriptionKey: reason])))
            }
            guard completion != nil else { return connection.close() }
            send(bytes, on: connection)
        }
    }

    private func send(_ bytes: [UInt8], on connection: OriginConnection) {
        self.connection = connection
        acceptedBefore = link.acceptedServerCount
        connection.delegate = self
        connection.send(head: bytes, method: Method(rawValue: request.method) ?? .get)
        connection.finish(trailers: nil)
        connection.flush()
    }

    /// Restarts the time-out.
    private func restartTimeout() {
        deadline?.cancel()
        let end = min(.now() + request.patience, latest)
        deadline = loop.assumeIsolated().scheduleTask(deadline: end) { [weak self] in
            self?.finish(.failure(URLError(.timedOut)))
        }
    }

    private func finish(_ result: Result<ProxiedResponse, URLError>) {
        let tell = completion
        end()
        tell?(result)
    }

    fileprivate func end() {
        completion = nil
        deadline?.cancel()
        deadline = nil
        if let connection { link.returnConnection(connection, acceptedBefore: acceptedBefore) }
        connection = nil
    }

    // MARK: Events from the connection

    func originResponded(_ head: ResponseHead, content: ContentEnd) {
        restartTimeout()
        guard !head.isInformational else { return }
        self.head = head
        if completion != nil { pieces?(.head(response(head))) }
    }

    func originSent(_ content: ByteBuffer) {
        restartTimeout()
        guard let pieces else { return body.append(contentsOf: content.readableBytesView) }
        if completion != nil { pieces(.content(Data(content.readableBytesView))) }
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
        if isReused, error.code == .closedBeforeResponse, isIdempotent, let bytes = try? request.bytes() {
            // The proxy had closed an idle connection (RFC 9112 §9.3.1).
            return connect(bytes)
        }
        finish(.failure(URLError(error.code == .malformedResponse ? .badServerResponse : .networkConnectionLost)))
    }

    func originWritabilityChanged(_ isWritable: Bool) {}
}
