// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import NIOCore
import NIOPosix

/// The first step of every chain: resolves a name and connects to one of its addresses, which are raced (RFC 8305).
///
/// NIO's bootstrap does both and watches the time itself, so the chain needs no timer for this step.
struct TCPStep {
    let host: String
    let port: UInt16
    /// For both together.
    let limit: TimeAmount
    let resolver: OriginResolver

    func run(on loop: any EventLoop, completion: @escaping (Result<any Channel, UpstreamError>) -> Void) {
        let (host, port) = (host, port)
        ClientBootstrap(group: loop)
            .resolver(resolver)
            .connectTimeout(limit)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .connect(host: host, port: Int(port))
            .assumeIsolated()
            .whenComplete { result in
                completion(
                    result.mapError { error in
                        let place = HostText.joined(host, port)
                        let error = UpstreamError.connecting(error, to: place)
                        return error.inStep(error.code == .nameNotFound ? .resolve : .tcp, at: place)
                    })
            }
    }
}
