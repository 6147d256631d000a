// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import NIOCore
import NIOPosix
import CountersignTLS

/// How long each step towards an origin may take.
package struct UpstreamTimeLimits: Sendable {
    package var connect: TimeAmount = .seconds(10)
    package var handshake: TimeAmount = .seconds(10)

    package init() {}
}

/// Makes connections to origins on one event loop: addresses raced as RFC 8305 has it, then TLS where the origin is https.
package struct UpstreamConnector {
    private let loop: any EventLoop
    private let limits: UpstreamTimeLimits
    private let resolver: OriginResolver
    private let spare: SpareBuffer

    package init(
        loop: any EventLoop, limits: UpstreamTimeLimits = UpstreamTimeLimits(), spare: SpareBuffer = SpareBuffer()
    ) {
        self.loop = loop
        self.limits = limits
        self.spare = spare
        resolver = OriginResolver(loop: loop)
    }

    /// A plain TCP connection, for a tunnel. `completion` runs on the event loop.
    package func connectTCP(
        host: String, port: UInt16, completion: @escaping (Result<any Channel, UpstreamError>) -> Void
    ) {
        let place = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        ClientBootstrap(group: loop)
            .resolver(resolver)
            .connectTimeout(limits.connect)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .connect(host: host, port: Int(port))
            .assumeIsolated()
            .whenComplete { result in
                completion(result.mapError { UpstreamError.connecting($0, to: place) })
            }
    }

    /// A connection that is ready for a request. For https its ``OriginConnection/tls`` says whether the origin is trusted: that
    /// is the caller's to look at before it sends anything. With a `trustSource` the handshake stands still while that thinks
    /// about an origin that is not trusted; its time does not count as the handshake's. `completion` runs on the event loop,
    /// once, or not at all where the connection is closed by ``OriginConnection/close()`` before.
    package func connect(
        to origin: Origin, tls context: TLSClientContext,
        certificateSource: OriginConnection.CertificateSource?, trustSource: OriginConnection.TrustSource? = nil,
        completion: @escaping (Result<OriginConnection, UpstreamError>) -> Void
    ) {
        connectTCP(host: origin.host, port: origin.port) { result in
            switch result {
            case .failure(let error):
                completion(.failure(error))
            case .success(let channel):
                install(on: channel, origin: origin, tls: context, certificateSource, trustSource, completion)
            }
        }
    }

    private func install(
        on channel: any Channel, origin: Origin, tls context: TLSClientContext,
        _ certificateSource: OriginConnection.CertificateSource?, _ trustSource: OriginConnection.TrustSource?,
        _ completion: @escaping (Result<OriginConnection, UpstreamError>) -> Void
    ) {
        let place = "\(origin.uriHost):\(origin.port)"
        do {
            guard origin.scheme == .https else {
                let connection = OriginConnection(
                    place: place, tlsHandler: nil, spare: spare, isNextToSocket: true)
                try channel.pipeline.syncOperations.addHandler(connection)
                return completion(.success(connection))
            }
            let handler = try TLSHandler(
                client: context, host: origin.host, alpn: ["http/1.1"], session: nil,
                asksAboutTrust: trustSource != nil, spare: spare, writesToSocket: true)
            let connection = OriginConnection(
                place: place, tlsHandler: handler, spare: spare, isNextToSocket: true)
            connection.certificateSource = certificateSource
            connection.trustSource = trustSource
            // The connection first, so that it hears the handshake from its first event on.
            try channel.pipeline.syncOperations.addHandler(connection)
            connection.establish(within: limits.handshake, completion)
            do {
                try channel.pipeline.syncOperations.addHandler(handler, position: .before(connection))
            } catch {
                connection.abandonEstablishing()
                throw error
            }
        } catch {
            channel.close(promise: nil)
            completion(.failure(UpstreamError.connecting(error, to: place)))
        }
    }
}
