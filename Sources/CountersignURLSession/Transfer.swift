// SPDX-License-Identifier: Apache-2.0

import Challenges
import Countersign
import Foundation
import HTTP1
import NIOCore
import NIOPosix
import Upstream

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The way to a proxy in this process: an event loop, and the connections that wait on it for the next request.
final class ProxyLink: Sendable {
    private static let idleConnections = 4

    private let port: Int
    private let proxy: ChallengeProxy
    private let loop: any EventLoop
    private let idle: NIOLoopBoundBox<[OriginConnection]>

    init(port: Int, proxy: ChallengeProxy) {
        self.port = port
        self.proxy = proxy
        loop = MultiThreadedEventLoopGroup.singleton.next()
        idle = .makeBoxSendingValue([], eventLoop: loop)
    }

    /// Sends a request and reads its response whole. `completion` runs on the event loop, once, or never after a
    /// cancellation.
    func send(
        _ request: ProxiedRequest, completion: @escaping @Sendable (Result<ProxiedResponse, URLError>) -> Void
    ) -> Transfer.Handle {
        let handle = Transfer.Handle(loop: loop)
        loop.execute { [self] in
            let transfer = Transfer(request, link: self, loop: loop, completion: completion)
            handle.begin(transfer)
        }
        return handle
    }

    // MARK: On the event loop

    /// A connection that has been used before, if one is free.
    func takeIdle() -> OriginConnection? {
        while let connection = idle.value.popLast() {
            if connection.isReusable { return connection }
        }
        return nil
    }

    func giveBack(_ connection: OriginConnection) {
        connection.delegate = nil
        guard connection.isReusable, idle.value.count < Self.idleConnections else { return connection.close() }
        idle.value.append(connection)
    }

    func connect(_ completion: @escaping (Result<OriginConnection, UpstreamError>) -> Void) {
        UpstreamConnector(loop: loop).connect(
            to: Origin(scheme: .http, host: "127.0.0.1", port: UInt16(clamping: port)), tls: proxy.originTLS,
            certificateSource: nil, completion: completion)
    }
}

/// One request and its response, on one event loop.
final class Transfer: OriginConnectionDelegate {
    /// What another thread holds of it.
    struct Handle: Sendable {
        private let loop: any EventLoop
        private let transfer: NIOLoopBoundBox<Transfer?>
        private let isCancelled: NIOLoopBoundBox<Bool>

        init(loop: any EventLoop) {
            self.loop = loop
            transfer = .makeBoxSendingValue(nil, eventLoop: loop)
            isCancelled = .makeBoxSendingValue(false, eventLoop: loop)
        }

        fileprivate func begin(_ transfer: Transfer) {
            guard !isCancelled.value else { return }
            self.transfer.value = transfer
            transfer.start()
        }

        /// Nothing more is heard of it.
        func cancel() {
            loop.execute {
                isCancelled.value = true
                transfer.value?.end()
                transfer.value = nil
            }
        }
    }

    private let request: ProxiedRequest
    private let link: ProxyLink
    private let loop: any EventLoop
    private var completion: ((Result<ProxiedResponse, URLError>) -> Void)?
    private var connection: OriginConnection?
    private var isReused = false
    private var head: ResponseHead?
    private var body = Data()
    private var deadline: Scheduled<Void>?

    init(
        _ request: ProxiedRequest, link: ProxyLink, loop: any EventLoop,
        completion: @escaping (Result<ProxiedResponse, URLError>) -> Void
    ) {
        self.request = request
        self.link = link
        self.loop = loop
        self.completion = completion
    }

    fileprivate func start() {
        let bytes: [UInt8]
        do {
            bytes = try request.bytes()
        } catch {
            return finish(.failure(URLError(.badURL)))
        }
        wait()
        if let idle = link.takeIdle() {
            isReused = true
            send(bytes, on: idle)
        } else {
            connect(bytes)
        }
    }

    private func connect(_ bytes: [UInt8]) {
        isReused = false
        link.connect { [self] result in
            switch result {
            case .success(let connection):
                guard completion != nil else { return connection.close() }
                send(bytes, on: connection)
            case .failure:
                finish(.failure(URLError(.cannotConnectToHost)))
            }
        }
    }

    private func send(_ bytes: [UInt8], on connection: OriginConnection) {
        self.connection = connection
        connection.delegate = self
        connection.send(head: bytes, method: Method(rawValue: request.method) ?? .get)
        connection.endRequest()
        connection.flush()
    }

    /// From now on, once more.
    private func wait() {
        deadline?.cancel()
        let limit = TimeAmount.milliseconds(Int64(max(0, min(request.timeoutSeconds, 86_400)) * 1000))
        deadline = loop.assumeIsolated().scheduleTask(in: limit) { [weak self] in
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
        if let connection { link.giveBack(connection) }
        connection = nil
    }

    // MARK: What the proxy says

    func originResponded(_ head: ResponseHead, framing: BodyFraming) {
        wait()
        guard !head.isInformational else { return }
        self.head = head
    }

    func originSent(_ content: ByteBuffer) {
        wait()
        body.append(contentsOf: content.readableBytesView)
    }

    func originResponseEnded(trailers: FieldLines?) {
        guard let head else { return finish(.failure(URLError(.badServerResponse))) }
        let fields = head.fields.lines.map { (name: head.fields.name(of: $0), value: head.fields.value(of: $0)) }
        finish(.success(ProxiedResponse(status: head.status, fields: fields, body: body)))
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
