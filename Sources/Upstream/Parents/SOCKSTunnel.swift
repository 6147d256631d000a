// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChannelTLS
import CountersignCryptography
import CountersignParents
import CountersignTLS
import NIOCore

/// Answers a SOCKS parent that asks for a user name and password, on one connection.
package protocol SOCKSAnswering: AnyObject {
    /// Calls `completion` once, at once or later on the event loop, with the offer for the parent; never after
    /// ``ended()``.
    func begin(completion: @escaping (SOCKSOffer) -> Void)

    /// The user name and password go out.
    func sent()

    /// The parent's verdict on them.
    func judged(_ verdict: SOCKSVerdict)

    /// The client has left. Returns whether the parent's verdict is awaited nevertheless.
    func clientLeft() -> Bool

    /// Nothing follows.
    func ended()
}

/// The methods offered to a SOCKS parent.
package enum SOCKSOffer {
    case credential(SOCKS5Client.Credential)
    /// None, for this reason if there is one that is not used.
    case nothing(reason: String?)
}

/// A SOCKS parent's verdict on a user name and password.
package enum SOCKSVerdict: Equatable, Sendable {
    case accepted
    case rejected
    /// It closed the connection instead.
    case unanswered
}

/// A tunnel through a SOCKS 5 parent (RFC 1928). For `socks5`, the name is resolved here.
package final class SOCKSTunnel: ParentTunnel {
    let parent: ParentProxy
    let host: HostName
    let port: UInt16
    let limit: TimeAmount
    let answerer: any SOCKSAnswering
    let resolver: OriginResolver
    /// ``ConnectionTerms/mayBeLocal``, for a name that is resolved here.
    let mayBeLocal: Bool
    let spare: SpareBuffer
    package var early = ByteBuffer()
    /// The connection is no longer wanted, only the parent's verdict.
    private(set) var isLeft = false

    package init(
        parent: ParentProxy, to host: HostName, port: UInt16, limit: TimeAmount, answerer: any SOCKSAnswering,
        resolver: OriginResolver, mayBeLocal: Bool, spare: SpareBuffer
    ) {
        self.parent = parent
        self.host = host
        self.port = port
        self.limit = limit
        self.answerer = answerer
        self.resolver = resolver
        self.mayBeLocal = mayBeLocal
        self.spare = spare
    }

    package func makeStep() -> any ConnectionStep { SOCKSStep(self) }

    package func secured(by tls: TLSSummary) {}

    package func awaitsVerdict() -> Bool {
        isLeft = answerer.clientLeft()
        return isLeft
    }

    package func ended() { answerer.ended() }
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
    /// Why a credential that the parent may want is not offered.
    private var withheld: String?

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
        guard tunnel.parent.kind.resolvesHere, tunnel.host.kind == .name else { return ask(for: tunnel.host) }
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
                self.ask(for: host)
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

    /// Nothing is sent until the offer is known.
    private func ask(for host: HostName) {
        tunnel.answerer.begin { offer in
            guard self.chain != nil, self.client == nil else { return }
            switch offer {
            case .credential(let credential): self.begin(host, credential)
            case .nothing(let reason):
                self.withheld = reason
                self.begin(host, nil)
            }
        }
    }

    private func begin(_ host: HostName, _ credential: SOCKS5Client.Credential?) {
        var client = SOCKS5Client(parent: tunnel.parent, to: host, port: tunnel.port, credential: credential)
        let first = client.connected()
        self.client = client
        perform(first)
    }

    private func perform(_ action: SOCKS5Client.Action) {
        guard let channel, let chain else { return }
        switch action {
        case .needMore: break
        case .send(let bytes):
            judge(.accepted)
            guard !tunnel.isLeft else { return fail(UpstreamError(.tunnelRefused, "nobody waits")) }
            output.write(bytes)
            output.flush()
        case .sendSecret(let secret):
            hasSentSecret = true
            tunnel.answerer.sent()
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

    /// Reports the parent's verdict on the credential, if it was sent and nothing is known yet.
    private func judge(_ verdict: SOCKSVerdict) {
        guard hasSentSecret else { return }
        hasSentSecret = false
        tunnel.answerer.judged(verdict)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        guard chain != nil else { return }
        guard client != nil else {
            // The bytes would be read as the reply to a message that has not been sent yet.
            let reason = "the parent \(tunnel.parent): it sent something before it was asked"
            return fail(UpstreamError(.tunnelFailed, reason))
        }
        do throws(ParentsError) {
            guard let action = try client?.received(bytes.readableBytesView) else { return }
            perform(action)
        } catch {
            // Other bytes of the parent say nothing about the credential.
            if error.code == .notAuthenticated { judge(.rejected) }
            let reason = error.code == .notAuthenticated ? withheld.map { " (\($0))" } ?? "" : ""
            fail(
                UpstreamError(
                    error.code == .malformedReply ? .tunnelFailed : .tunnelRefused, error.detail + reason))
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event { inputEnded() } else { context.fireUserInboundEventTriggered(event) }
    }

    func channelInactive(context: ChannelHandlerContext) { inputEnded() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard chain != nil else { return }
        judge(.unanswered)
        fail(UpstreamError(.tunnelFailed, "the parent \(tunnel.parent): \(error)"))
    }

    private func inputEnded() {
        guard chain != nil else { return }
        judge(.unanswered)
        let detail = client?.connectionEnded().detail
        fail(
            UpstreamError(
                .tunnelFailed,
                detail ?? "the parent \(tunnel.parent): it closed the connection before it was asked anything"))
    }

    private func fail(_ error: UpstreamError) {
        let chain = self.chain
        self.chain = nil
        channel = nil
        chain?.stepFailed(error)
    }
}
