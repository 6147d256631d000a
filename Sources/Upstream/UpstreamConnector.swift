// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignChannelTLS
import CountersignTLS
import NIOCore

/// How long each step towards an origin may take.
package struct UpstreamTimeLimits: Sendable {
    /// Resolving the name and connecting, together.
    package var connect: TimeAmount = .seconds(10)
    /// The TLS handshake, without the time of a decision about the origin's certificate.
    package var handshake: TimeAmount = .seconds(10)

    package init() {}
}

/// How to reach an origin: directly, or through parent proxies.
package struct ConnectionPath {
    /// The TCP peer: the origin, or the first parent.
    package let host: String
    package let port: UInt16
    /// Makes the steps between TCP and TLS, in order: one for each parent that tunnels the connection. None if TCP
    /// leads to the origin. Called for each connection, because a step serves only one.
    package let tunnels: () -> [any ConnectionStep]

    package init(host: String, port: UInt16, tunnels: @escaping () -> [any ConnectionStep] = { [] }) {
        self.host = host
        self.port = port
        self.tunnels = tunnels
    }
}

/// Opens connections to origins on one event loop. It decides which steps a connection needs; ``ConnectionChain`` runs
/// them.
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

    /// A channel that leads to the end of `path`, for a blind tunnel. `completion` runs on the event loop, once, or not
    /// at all after ``ConnectionChain/cancel()``.
    @discardableResult
    package func connect(
        _ path: ConnectionPath, completion: @escaping (Result<any Channel, UpstreamError>) -> Void
    ) -> ConnectionChain {
        start(path, path.tunnels(), completion)
    }

    /// A connection that is ready for a request, directly or by another `path`.
    ///
    /// For https its ``OriginConnection/tls`` says whether the origin is trusted, which the caller checks before it
    /// sends anything. With a `trustSource` the handshake waits for its decision about an origin that is not trusted;
    /// that time does not count as the handshake's. `revocation` says how trust depends on revocation statuses.
    /// `completion` runs on the event loop, once, or not at all if
    /// ``OriginConnection/close()`` or ``ConnectionChain/cancel()`` is called before.
    @discardableResult
    package func connect(
        to origin: Origin, by path: ConnectionPath? = nil, tls context: TLSClientContext,
        revocation: RevocationCheck = .soft, certificateSource: OriginConnection.CertificateSource?,
        trustSource: OriginConnection.TrustSource? = nil,
        completion: @escaping (Result<OriginConnection, UpstreamError>) -> Void
    ) -> ConnectionChain {
        let path = path ?? ConnectionPath(host: origin.host, port: origin.port)
        switch origin.scheme {
        case .http:
            let spare = spare
            return start(path, path.tunnels()) { result in
                completion(result.flatMap { Self.plainConnection(to: origin, over: $0, spare) })
            }
        case .https:
            let tls = TLSStep(
                origin: origin, context: context, revocation: revocation, limit: limits.handshake, spare: spare,
                certificateSource: certificateSource, trustSource: trustSource)
            return start(path, path.tunnels() + [tls]) { result in
                completion(result.map { _ in tls.establishedConnection })
            }
        }
    }

    private func start(
        _ path: ConnectionPath, _ steps: [any ConnectionStep],
        _ completion: @escaping (Result<any Channel, UpstreamError>) -> Void
    ) -> ConnectionChain {
        let chain = ConnectionChain(loop: loop, steps: steps, completion: completion)
        chain.start(TCPStep(host: path.host, port: path.port, limit: limits.connect, resolver: resolver))
        return chain
    }

    private static func plainConnection(
        to origin: Origin, over channel: any Channel, _ spare: SpareBuffer
    ) -> Result<OriginConnection, UpstreamError> {
        let place = HostText.joined(origin.host, origin.port)
        let connection = OriginConnection(place: place, tlsHandler: nil, spare: spare, isNextToSocket: true)
        do {
            try channel.pipeline.syncOperations.addHandler(connection)
            return .success(connection)
        } catch {
            channel.close(promise: nil)
            return .failure(UpstreamError.connecting(error, to: place))
        }
    }
}
