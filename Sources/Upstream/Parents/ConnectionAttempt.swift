// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChannelTLS
import CountersignTLS
import NIOCore

/// The attempt to connect to an origin, by one way after the other.
///
/// The next way is tried only if a parent could not be reached, or does not speak its protocol. A decision of a parent
/// or the origin is final. Everything happens on one event loop.
package final class ConnectionAttempt {
    /// The channel to the origin, or to the parent that forwards requests to it.
    struct Opened {
        let channel: any Channel
        let early: ByteBuffer
        let forwarder: Origin?
        /// TLS to the parent, through which everything travels; nil for none.
        let parentTLS: TLSSummary?
    }

    /// How many connections one tunnel may take.
    private static let maximumConnections = 6

    private let loop: any EventLoop
    private let limits: UpstreamTimeLimits
    private let resolver: OriginResolver
    private let ownListeners: OwnListeners
    private let spare: SpareBuffer
    /// Makes the steps that follow a tunnel. The argument says whether they happen inside of TLS to a parent.
    private let makeSteps: (Bool) -> [any ConnectionStep]
    private var paths: ArraySlice<ConnectionPath> = []
    private var parentTLS: ParentTLSStep?
    private var tunnel: (any ParentTunnel)?
    private var chain: ConnectionChain?
    private var connections = 0
    /// Nil as soon as the result is known or the caller has cancelled.
    private var completion: ((Result<Opened, UpstreamError>) -> Void)?
    /// Finds the paths, and finds them again when the network has changed.
    private var find: ((ConnectionAttempt) -> Void)?
    /// The network has changed while the paths were being found.
    private var mustFindAgain = false
    /// Is called once, when the result is known or the caller has cancelled.
    var ended: ((ConnectionAttempt) -> Void)?

    init(
        loop: any EventLoop, limits: UpstreamTimeLimits, resolver: OriginResolver,
        ownListeners: OwnListeners, spare: SpareBuffer, makeSteps: @escaping (Bool) -> [any ConnectionStep],
        completion: @escaping (Result<Opened, UpstreamError>) -> Void
    ) {
        self.loop = loop
        self.limits = limits
        self.resolver = resolver
        self.ownListeners = ownListeners
        self.spare = spare
        self.makeSteps = makeSteps
        self.completion = completion
    }

    /// `find` calls ``start(_:)-([ConnectionPath])`` or ``fail(_:)``.
    func start(_ find: @escaping (ConnectionAttempt) -> Void) {
        self.find = find
        find(self)
    }

    func start(_ paths: [ConnectionPath]) {
        if mustFindAgain, let find {
            mustFindAgain = false
            return find(self)
        }
        self.paths = paths[...]
        tryNextPath()
    }

    /// How long a parent's verdict on a password is awaited for the breaker alone.
    private static let verdictLimit = TimeAmount.seconds(20)

    /// Closes the connection that is being opened, and does not call the completion. If a parent is judging a password,
    /// waits for its verdict first.
    package func cancel() {
        guard completion != nil else { return }
        completion = nil
        if let chain, tunnel?.awaitsVerdict() == true { return chain.leave(within: Self.verdictLimit) }
        chain?.cancel()
        end()
    }

    /// Begins again if TCP has not connected, or has done so from an address that is gone.
    func networkChanged(_ ownAddresses: Set<String>) {
        guard completion != nil, let find else { return }
        guard let chain else {
            mustFindAgain = true
            return
        }
        guard chain.localAddress.map({ !ownAddresses.contains($0) }) ?? true else { return }
        chain.cancel()
        stopPath()
        find(self)
    }

    func fail(_ error: UpstreamError) { finish(.failure(error)) }

    private func tryNextPath() {
        guard completion != nil, let path = paths.first else { return }
        tunnel = path.makeTunnel?()
        connections = 0
        connect(by: path)
    }

    private func connect(by path: ConnectionPath) {
        connections += 1
        let tunnel = tunnel
        parentTLS = path.tls.map { tls in
            ParentTLSStep(tls, limit: limits.handshake, spare: spare, isTunnel: tunnel != nil) {
                tunnel?.secured(by: $0)
            }
        }
        var steps: [any ConnectionStep] = []
        if let parentTLS { steps.append(parentTLS) }
        if let tunnel { steps.append(tunnel.makeStep()) }
        let chain = ConnectionChain(loop: loop, steps: steps + makeSteps(parentTLS != nil)) { result in
            self.chain = nil
            self.ended(result, path)
        }
        self.chain = chain
        chain.start(
            TCPStep(
                host: path.host, port: path.port, socketPath: path.socketPath, limit: limits.connect,
                resolver: resolver,
                mayBeLocal: path.mayBeLocal, ownListeners: ownListeners))
    }

    private func ended(_ result: Result<any Channel, UpstreamError>, _ path: ConnectionPath) {
        guard completion != nil else {
            if case .success(let channel) = result { channel.close(promise: nil) }
            return end()
        }
        switch result {
        case .success(let channel):
            path.parentTried?(nil)
            finish(
                .success(
                    Opened(
                        channel: channel, early: tunnel?.early ?? ByteBuffer(), forwarder: path.forwarder,
                        parentTLS: parentTLS?.summary)))
        case .failure(let error) where error.code == .tunnelInterrupted && connections < Self.maximumConnections:
            connect(by: path)
        case .failure(let error):
            let isUnreachable = path.parentTried != nil && error.isOfUnreachableParent
            path.parentTried?(isUnreachable ? error : nil)
            tunnel?.ended()
            tunnel = nil
            guard isUnreachable, paths.count > 1 else { return finish(.failure(error)) }
            paths.removeFirst()
            tryNextPath()
        }
    }

    private func finish(_ result: Result<Opened, UpstreamError>) {
        guard let completion else {
            if case .success(let opened) = result { opened.channel.close(promise: nil) }
            return
        }
        self.completion = nil
        end()
        completion(result)
    }

    private func end() {
        stopPath()
        find = nil
        ended?(self)
        ended = nil
    }

    private func stopPath() {
        chain = nil
        parentTLS = nil
        tunnel?.ended()
        tunnel = nil
    }
}

extension UpstreamError {
    /// Whether the parent cannot be used now, so that another one may be. A failure of TLS is not among the reasons:
    /// an attacker in between could cause it to force a route without TLS. Nor is a loop, which is a wrong setting.
    fileprivate var isOfUnreachableParent: Bool {
        switch (step, code) {
        case (_, .loop): false
        case (.resolve, _), (.tcp, _): true
        case (.tunnel, .tunnelFailed), (.tunnel, .tunnelTimedOut), (.tunnel, .tunnelInterrupted): true
        default: false
        }
    }
}
