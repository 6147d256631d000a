// SPDX-License-Identifier: Apache-2.0

import CountersignChannelTLS
import CountersignCryptography
import CountersignParents
import CountersignSitePolicy
import CountersignTLS
import NIOCore

/// A tunnel through a SOCKS 5 parent (RFC 1928). For `socks5`, the name is resolved here.
package final class SOCKSTunnel: ParentTunnel {
    let parent: ParentProxy
    let host: HostName
    let port: UInt16
    let limit: TimeAmount
    let credential: SOCKS5Client.Credential?
    let resolver: OriginResolver
    /// ``ConnectionTerms/mayBeLocal``, for a name that is resolved here.
    let mayBeLocal: Bool
    let spare: SpareBuffer
    /// Called with whether the parent accepted the user name and password, if it asked for them.
    let authenticated: (Bool) -> Void
    package var early = ByteBuffer()

    package init(
        parent: ParentProxy, to host: HostName, port: UInt16, limit: TimeAmount,
        credential: SOCKS5Client.Credential?, resolver: OriginResolver, mayBeLocal: Bool, spare: SpareBuffer,
        authenticated: @escaping (Bool) -> Void
    ) {
        self.parent = parent
        self.host = host
        self.port = port
        self.limit = limit
        self.credential = credential
        self.resolver = resolver
        self.mayBeLocal = mayBeLocal
        self.spare = spare
        self.authenticated = authenticated
    }

    package func makeStep() -> any ConnectionStep { SOCKSStep(self) }

    package func secured(by tls: TLSSummary) {}

    package func ended() {}
}

/// The messages of a SOCKS connection until it is established.
final class SOCKSStep: ConnectionStep, ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    let kind = UpstreamError.Step.tunnel
    let place: String
    let limit: TimeAmount
    private let tunnel: SOCKSTunnel
    private var client: SOCKS5Client?
    private let output: MessageOutput
    private var chain: ConnectionChain?
    private var channel: (any Channel)?
    private var hasSentSecret = false

    init(_ tunnel: SOCKSTunnel) {
        self.tunnel = tunnel
        place = tunnel.parent.authority
        limit = tunnel.limit
        output = MessageOutput(spare: tunnel.spare)
    }

    func run(on channel: any Channel, in chain: ConnectionChain) {
        self.chain = chain
        self.channel = channel
        do {
            try channel.pipeline.syncOperations.addHandler(self)
        } catch {
            return fail(UpstreamError.connecting(error, to: place))
        }
        guard tunnel.parent.kind.resolvesHere, tunnel.host.kind == .name else { return begin(tunnel.host) }
        let name = tunnel.host.text
        let address = tunnel.resolver.firstAddress(
            of: name, port: Int(tunnel.port), mayBeLocal: tunnel.mayBeLocal)
        address.assumeIsolated().whenComplete { result in
            guard self.chain != nil else { return }
            switch result {
            case .success(let address):
                guard let host = address.flatMap({ try? HostName(canonicalizing: $0, for: .forwarded) }) else {
                    return self.fail(UpstreamError(.tunnelRefused, "\(name) has no address"))
                }
                self.begin(host)
            case .failure(let error as UpstreamError) where error.code == .localAddress: self.fail(error)
            case .failure(let error): self.fail(UpstreamError(.tunnelRefused, "\(name): \(error)"))
            }
        }
    }

    func handlerAdded(context: ChannelHandlerContext) { output.open(context, tls: nil, isNextToSocket: false) }

    func handlerRemoved(context: ChannelHandlerContext) { output.close() }

    func chainEnded() {
        chain = nil
        channel = nil
    }

    private func begin(_ host: HostName) {
        var client = SOCKS5Client(
            parent: tunnel.parent, to: host, port: tunnel.port, credential: tunnel.credential)
        let first = client.connected()
        self.client = client
        perform(first)
    }

    private func perform(_ action: SOCKS5Client.Action) {
        guard let channel, let chain else { return }
        switch action {
        case .needMore: break
        case .send(let bytes):
            if hasSentSecret { tunnel.authenticated(true) }
            hasSentSecret = false
            output.write(bytes)
            output.flush()
        case .sendSecret(let secret):
            hasSentSecret = true
            output.write(about: secret.count, isSecret: true) { space in
                secret.withBytes { bytes in
                    if bytes.count <= space.count { space.copyMemory(from: UnsafeRawBufferPointer(bytes)) }
                }
                return secret.count
            }
            output.flush()
        case .established(let rest):
            tunnel.early.writeBytes(rest)
            self.chain = nil
            self.channel = nil
            channel.pipeline.syncOperations.removeHandler(self).assumeIsolated().whenComplete { _ in
                chain.stepSucceeded(channel)
            }
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        guard chain != nil, client != nil else { return }
        do throws(ParentsError) {
            guard let action = try client?.received(bytes.readableBytesView) else { return }
            perform(action)
        } catch {
            if hasSentSecret { tunnel.authenticated(false) }
            fail(UpstreamError(error.code == .malformedReply ? .tunnelFailed : .tunnelRefused, error.detail))
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event { inputEnded() } else { context.fireUserInboundEventTriggered(event) }
    }

    func channelInactive(context: ChannelHandlerContext) { inputEnded() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(UpstreamError(.tunnelFailed, "the parent \(tunnel.parent): \(error)"))
    }

    private func inputEnded() {
        guard chain != nil, var client else { return }
        fail(UpstreamError(.tunnelFailed, client.connectionEnded().detail))
        self.client = client
    }

    private func fail(_ error: UpstreamError) {
        let chain = self.chain
        self.chain = nil
        channel = nil
        chain?.stepFailed(error)
    }
}
