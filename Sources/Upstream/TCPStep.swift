// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import NIOCore
import NIOPosix

/// The first step of every chain: resolves a name and connects to one of its addresses, which are raced (RFC 8305).
///
/// NIO's bootstrap does both and watches the time itself, so the chain needs no timer for this step.
struct TCPStep {
    let host: String
    let port: UInt16
    /// ``ConnectionPath/socketPath``
    let socketPath: String?
    /// For both together.
    let limit: TimeAmount
    let resolver: OriginResolver
    /// ``ConnectionTerms/mayBeLocal``
    let mayBeLocal: Bool
    let ownListeners: OwnListeners

    func run(on loop: any EventLoop, completion: @escaping (Result<any Channel, UpstreamError>) -> Void) {
        let (host, port, ownListeners) = (host, port, ownListeners)
        let bootstrap = ClientBootstrap(group: loop)
            .resolver(mayBeLocal ? resolver : PublicResolver(resolver))
            .connectTimeout(limit)
            .channelOption(.allowRemoteHalfClosure, value: true)
        let channel =
            socketPath.map { bootstrap.connect(unixDomainSocketPath: $0) }
            ?? bootstrap.channelOption(.tcpOption(.tcp_nodelay), value: 1).connect(host: host, port: Int(port))
        channel.assumeIsolated()
            .whenComplete { result in
                let place = HostText.joined(host, port)
                switch result {
                case .success(let channel)
                where ownListeners.include(channel.remoteAddress, local: channel.localAddress):
                    channel.close(promise: nil)
                    let error = UpstreamError(.loop, "\(place) is this proxy itself, so requests would loop")
                    completion(.failure(error.inStep(.tcp, at: place)))
                case .success(let channel): completion(.success(channel))
                case .failure(let error):
                    let error = UpstreamError.connecting(error, to: place)
                    let isResolving = error.code == .nameNotFound || error.code == .localAddress
                    completion(.failure(error.inStep(isResolving ? .resolve : .tcp, at: place)))
                }
            }
    }
}
