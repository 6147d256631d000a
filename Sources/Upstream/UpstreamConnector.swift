// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignChannelTLS
import CountersignTLS
import NIOCore

/// How long each step towards an origin may take.
package struct UpstreamTimeLimits: Sendable {
    /// Resolving the name and connecting, together.
    package var connect: TimeAmount = .seconds(10)
    /// The reply of a parent proxy, with the answers to its challenges.
    package var tunnel: TimeAmount = .seconds(30)
    /// A TLS handshake, without the time of a decision about the origin's certificate.
    package var handshake: TimeAmount = .seconds(10)

    package init() {}
}

/// An origin that this process serves itself, on a Unix-domain socket.
package struct OwnSite: Sendable {
    package let origin: Origin
    package let socketPath: String

    package init(origin: Origin, socketPath: String) {
        self.origin = origin
        self.socketPath = socketPath
    }
}

/// Opens connections to origins on one event loop. It decides which steps a connection needs; ``ConnectionChain`` runs
/// them.
package struct UpstreamConnector {
    private let loop: any EventLoop
    private let limits: UpstreamTimeLimits
    private let spare: SpareBuffer
    package let resolver: OriginResolver
    private let ownListeners: OwnListeners
    private let ownSite: OwnSite?
    /// Nil if every connection is direct.
    private let paths: (any PathSource)?
    /// Only kept if there may be parents.
    package let open = OpenConnections()

    package init(
        loop: any EventLoop, limits: UpstreamTimeLimits = UpstreamTimeLimits(), spare: SpareBuffer = SpareBuffer(),
        paths: (any PathSource)? = nil, resolver: OriginResolver? = nil, ownListeners: OwnListeners = OwnListeners(),
        ownSite: OwnSite? = nil
    ) {
        self.loop = loop
        self.limits = limits
        self.spare = spare
        self.paths = paths
        self.resolver = resolver ?? OriginResolver(loop: loop)
        self.ownListeners = ownListeners
        self.ownSite = ownSite
    }

    /// A channel that leads to `origin`, for a blind tunnel, and the bytes already received from there. `completion`
    /// runs on the event loop, once, or not at all after ``ConnectionAttempt/cancel()``.
    @discardableResult
    package func tunnel(
        to origin: Origin, _ terms: ConnectionTerms = ConnectionTerms(),
        completion: @escaping (Result<(channel: any Channel, early: ByteBuffer), UpstreamError>) -> Void
    ) -> ConnectionAttempt {
        var terms = terms
        terms.isBlind = true
        return start(to: origin, terms, { _ in [] }) { result in
            completion(result.map { ($0.channel, $0.early) })
        }
    }

    /// A connection that is ready for a request.
    ///
    /// For https its ``OriginLease/tls`` says whether the origin is trusted, which the caller checks before it
    /// sends anything. With a `trustSource` the handshake waits for its decision about an origin that is not trusted;
    /// that time does not count as the handshake's. `revocation` says how trust depends on revocation statuses.
    /// `completion` runs on the event loop, once, or not at all if
    /// ``OriginLease/close()`` or ``ConnectionAttempt/cancel()`` is called before.
    @discardableResult
    package func connect(
        to origin: Origin, tls context: TLSClientContext, revocation: RevocationCheck = .soft,
        certificateSource: CertificateSource?, trustSource: OriginConnection.TrustSource? = nil,
        _ terms: ConnectionTerms = ConnectionTerms(),
        completion: @escaping (Result<any OriginLease, UpstreamError>) -> Void
    ) -> ConnectionAttempt {
        guard origin.scheme == .https else {
            let spare = spare
            return start(to: origin, terms, { _ in [] }) { result in
                completion(result.flatMap { Self.plainConnection(to: origin, over: $0, spare) })
            }
        }
        var last: TLSStep?
        let (limit, spare) = (limits.handshake, spare)
        let makeStep = { isNested in
            let tls = TLSStep(
                origin: origin, context: context, revocation: revocation, limit: limit, spare: spare,
                isNextToSocket: !isNested, offersHTTP2: terms.offersHTTP2, certificateSource: certificateSource,
                trustSource: trustSource)
            last = tls
            return tls
        }
        return start(to: origin, terms, { [makeStep($0)] }) { result in
            defer { last = nil }
            completion(
                result.flatMap { _ in
                    // The chain of an https origin ends with this step, and succeeds only after all of its steps.
                    guard let last else { preconditionFailure("there was no TLS step") }
                    return Self.firstLease(of: last.establishedConnection, spare)
                })
        }
    }

    /// The first lease of a connection, in the version of HTTP that its handshake has selected.
    private static func firstLease(
        of connection: OriginConnection, _ spare: SpareBuffer
    ) -> Result<any OriginLease, UpstreamError> {
        guard connection.tls?.alpn == "h2" else { return .success(connection) }
        if let lease = HTTP2OriginConnection.takeOver(from: connection, spare: spare) { return .success(lease) }
        connection.close()
        return .failure(UpstreamError(.closedBeforeResponse, "\(connection.place): closed the HTTP/2 connection"))
    }

    private func start(
        to origin: Origin, _ terms: ConnectionTerms,
        _ makeSteps: @escaping (Bool) -> [any ConnectionStep],
        _ completion: @escaping (Result<ConnectionAttempt.Opened, UpstreamError>) -> Void
    ) -> ConnectionAttempt {
        let own = ownSite.flatMap { $0.origin == origin ? $0.socketPath : nil }
        guard let paths, own == nil else {
            let attempt = ConnectionAttempt(
                loop: loop, limits: limits, resolver: resolver, ownListeners: ownListeners, spare: spare,
                makeSteps: makeSteps, completion: completion)
            attempt.start([
                ConnectionPath(
                    host: origin.host, port: origin.port, mayBeLocal: terms.mayBeLocal, socketPath: own)
            ])
            return attempt
        }
        let attempt = ConnectionAttempt(
            loop: loop, limits: limits, resolver: resolver, ownListeners: ownListeners, spare: spare,
            makeSteps: makeSteps
        ) { [open] result in
            if case .success(let opened) = result { open.add(opened.channel) }
            completion(result)
        }
        open.add(attempt)
        attempt.ended = { [open] in open.remove($0) }
        attempt.start { attempt in
            paths.findPaths(to: origin, terms) { found in
                switch found {
                case .success(let paths): attempt.start(paths)
                case .failure(let error): attempt.fail(error)
                }
            }
        }
        return attempt
    }

    private static func plainConnection(
        to origin: Origin, over opened: ConnectionAttempt.Opened, _ spare: SpareBuffer
    ) -> Result<any OriginLease, UpstreamError> {
        let place = HostText.joined(origin.host, origin.port)
        guard opened.early.readableBytes == 0 else {
            opened.channel.close(promise: nil)
            return .failure(UpstreamError(.malformedResponse, "\(place): sent bytes without a request"))
        }
        let connection = OriginConnection(
            place: place, tlsHandler: nil, spare: spare, isNextToSocket: opened.parentTLS == nil,
            forwarder: opened.forwarder, forwarderTLS: opened.parentTLS)
        do {
            try opened.channel.pipeline.syncOperations.addHandler(connection)
            return .success(connection)
        } catch {
            opened.channel.close(promise: nil)
            return .failure(UpstreamError.connecting(error, to: place))
        }
    }
}
