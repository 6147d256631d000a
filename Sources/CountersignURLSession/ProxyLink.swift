// SPDX-License-Identifier: Apache-2.0

import CountersignNIO
import Foundation
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

    /// Without a proxy, every new connection fails.
    init(to proxy: ChallengeProxy?, on loop: any EventLoop = MultiThreadedEventLoopGroup.singleton.next()) {
        self.proxy = proxy
        self.loop = loop
        idle = .makeBoxSendingValue([], eventLoop: loop)
    }

    /// A handle for a transfer that has not begun.
    func newHandle() -> URLSessionTransfer.Handle { URLSessionTransfer.Handle(loop: loop) }

    /// Sends a request and reads the complete response before the deadline. Calls `completion` once, on the event loop,
    /// or not at all after a cancellation. With `pieces`, passes the response's head and content to it as they arrive,
    /// and a response without its content to `completion`. `pieces` returns whether it accepts more; if it does not,
    /// nothing is read until ``URLSessionTransfer/Handle/resume()``.
    func send(
        _ request: ProxiedRequest, by deadline: NIODeadline, as handle: URLSessionTransfer.Handle,
        pieces: (@Sendable (URLSessionTransfer.Piece) -> Bool)? = nil, sent: (@Sendable (UInt64) -> Void)? = nil,
        completion: @escaping @Sendable (Result<ProxiedResponse, any Error>) -> Void
    ) {
        loop.execute { [self] in
            let transfer = URLSessionTransfer(
                request, by: deadline, link: self, loop: loop, pieces: pieces, sent: sent, completion: completion)
            handle.begin(transfer)
        }
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
