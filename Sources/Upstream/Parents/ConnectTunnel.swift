// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChannelTLS
import CountersignHTTP1
import CountersignParents
import CountersignTLS
import NIOCore

/// Answers a parent's challenges to the CONNECT requests of one tunnel.
package protocol ParentAnswering: AnyObject {
    /// The requests that follow are sent on a connection with TLS to the parent.
    func secured(by tls: TLSSummary)

    /// Calls `completion` once, at once or later on the event loop, with the first step.
    func begin(completion: @escaping (ParentAnswer) -> Void)

    /// The same, for ``ParentAnswer/openDialogue``, when there is a connection.
    func openDialogue(completion: @escaping (ParentAnswer) -> Void)

    /// The same after a response that did not open the tunnel.
    func received(_ response: ConnectResponse, completion: @escaping (ParentAnswer) -> Void)

    /// The tunnel is open. Calls `completion` once, at once or later, with why it must not be used: the parent's last
    /// token is wrong.
    func opened(_ head: FieldLines, completion: @escaping (String?) -> Void)

    /// The connection was lost before a response. Returns whether the request may be sent on another one.
    func connectionLost() -> Bool

    /// The same if there was a response that cannot be used, and whose status was read.
    func connectionLost(afterStatus status: Int) -> Bool

    /// The client has left. Returns whether the parent's response to the last request is of use: it is a verdict on a
    /// credential. Nothing is sent after it.
    func clientLeft() -> Bool

    /// Nothing follows.
    func ended()
}

extension ParentAnswering {
    package func clientLeft() -> Bool { false }
}

extension ParentAnswering {
    package func connectionLost(afterStatus status: Int) -> Bool { connectionLost() }
}

/// The decision about a parent.
package enum ParentAnswer {
    /// Send the CONNECT, with this field if it is not nil. `onSameConnection`: on no other connection.
    case send((any SecretFieldValue)?, onSameConnection: Bool)
    /// A dialogue of tokens begins, which authenticates the connection. If that has ended, connect again first.
    case openDialogue
    /// The parent's response is final, for this reason if something was not answered.
    case giveUp(reason: String?)
}

/// A tunnel by CONNECT (RFC 9110 §9.3.6).
package final class ConnectTunnel: ParentTunnel {
    let parent: ParentProxy
    let host: HostName
    let port: UInt16
    /// The value of Via.
    let via: String
    let limit: TimeAmount
    let answerer: any ParentAnswering
    let spare: SpareBuffer
    /// The first step on the next connection; nil if that is not known yet.
    var next: Next?
    package var early = ByteBuffer()

    enum Next {
        case send((any SecretFieldValue)?)
        case openDialogue
    }

    package init(
        parent: ParentProxy, to host: HostName, port: UInt16, via: String, limit: TimeAmount, spare: SpareBuffer,
        answerer: any ParentAnswering
    ) {
        self.via = via
        self.parent = parent
        self.host = host
        self.port = port
        self.limit = limit
        self.spare = spare
        self.answerer = answerer
    }

    package func makeStep() -> any ConnectionStep { ConnectStep(self) }

    package func secured(by tls: TLSSummary) { answerer.secured(by: tls) }

    package func awaitsVerdict() -> Bool { answerer.clientLeft() }

    package func ended() { answerer.ended() }
}

/// The CONNECT requests of a tunnel on one connection to the parent.
final class ConnectStep: ConnectionStep, ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    let kind = UpstreamError.Step.tunnel
    let place: String
    let limit: TimeAmount
    private let tunnel: ConnectTunnel
    private var client: ConnectClient
    private let output: MessageOutput
    private var chain: ConnectionChain?
    private var channel: (any Channel)?
    private var hasAsked = false
    /// The connection carries no further request: it has ended, or the parent has sent unrequested bytes.
    private var hasEnded = false
    private var readingIsHeld = false

    init(_ tunnel: ConnectTunnel) {
        self.tunnel = tunnel
        place = tunnel.parent.authority
        limit = tunnel.limit
        output = MessageOutput(spare: tunnel.spare)
        client = ConnectClient(parent: tunnel.parent, to: tunnel.host, port: tunnel.port, via: tunnel.via)
    }

    func run(on channel: any Channel, in chain: ConnectionChain) {
        self.chain = chain
        self.channel = channel
        do {
            try channel.pipeline.syncOperations.addHandler(self)
        } catch {
            return fail(UpstreamError.connecting(error, to: place))
        }
        let next = tunnel.next
        tunnel.next = nil
        switch next {
        case .send(let field): send(field)
        case .openDialogue: tunnel.answerer.openDialogue { self.perform($0, after: nil) }
        case nil: tunnel.answerer.begin { self.perform($0, after: nil) }
        }
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let tls = try? context.pipeline.syncOperations.handler(type: TLSHandler.self)
        output.open(context, tls: tls, isNextToSocket: false)
    }

    func handlerRemoved(context: ChannelHandlerContext) { output.close() }

    func chainEnded() {
        chain = nil
        channel = nil
    }

    // MARK: Requests

    private func perform(_ answer: ParentAnswer, after response: ConnectResponse?) {
        guard chain != nil else { return }
        switch answer {
        case .send(let field, let onSameConnection):
            if canSend(continuing: onSameConnection) { return send(field) }
            guard !onSameConnection else {
                return refuse("it closed the connection in the middle of an authentication", response)
            }
            connectAgain(.send(field))
        case .openDialogue:
            if canSend(continuing: false) { return tunnel.answerer.openDialogue { self.perform($0, after: response) } }
            connectAgain(.openDialogue)
        case .giveUp(let reason): refuse(reason, response)
        }
    }

    /// `continuing`: the request continues a handshake, which authenticates the connection.
    private func canSend(continuing: Bool) -> Bool {
        client.state == .idle && !hasEnded && (continuing || !client.hasRepaired)
    }

    private func connectAgain(_ next: ConnectTunnel.Next) {
        tunnel.next = next
        fail(UpstreamError(.tunnelInterrupted, "the parent \(tunnel.parent) closed the connection"))
    }

    private func send(_ field: (any SecretFieldValue)?) {
        guard channel != nil else { return }
        let request = client.request(field)
        client.requestSent()
        hasAsked = true
        output.write(about: request.size, isSecret: field != nil, request.write)
        output.flush()
    }

    // MARK: Responses

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        guard chain != nil else { return }
        if client.state == .opened {
            tunnel.early.writeImmutableBuffer(bytes)
        } else if isDeciding {
            // The next response must not begin with this.
            abandonConnection()
        } else {
            react { () throws(ParentsError) in try client.received(bytes.readableBytesView) }
        }
    }

    /// The parent's response is complete, and the decision about it is not known yet.
    private var isDeciding: Bool {
        switch client.state {
        case .idle: hasAsked
        case .failed: true
        case .waitingForHead, .waitingForBody, .opened: false
        }
    }

    /// The parent has sent unrequested bytes, or the connection has failed. The next request goes out on another.
    private func abandonConnection() {
        guard !hasEnded else { return }
        hasEnded = true
        channel?.close(promise: nil)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event { inputEnded() } else { context.fireUserInboundEventTriggered(event) }
    }

    func channelInactive(context: ChannelHandlerContext) { inputEnded() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard chain != nil else { return }
        switch error {
        case _ where isDeciding: abandonConnection()
        case is IOError: inputEnded()
        case let error as UpstreamError: lost(error)
        default: lost(UpstreamError(.tunnelFailed, "the parent \(tunnel.parent): \(error)"))
        }
    }

    private func inputEnded() {
        guard chain != nil else { return }
        hasEnded = true
        // A response may be about to be answered on another connection.
        switch client.state {
        case .waitingForHead, .waitingForBody: react { () throws(ParentsError) in try client.connectionEnded() }
        case .opened: refuse("the parent \(tunnel.parent) closed the tunnel at once", nil)
        case .idle, .failed: break
        }
    }

    private func react(_ step: () throws(ParentsError) -> ConnectClient.Action) {
        do throws(ParentsError) {
            switch try step() {
            case .needMore: break
            case .opened(let head, let rest): opened(head, rest)
            case .responded(let response):
                tunnel.answerer.received(response) { self.perform($0, after: response) }
            }
        } catch {
            lost(UpstreamError(.tunnelFailed, error.detail, status: error.status))
        }
    }

    /// The connection was lost before a response.
    private func lost(_ error: UpstreamError) {
        let answerer = tunnel.answerer
        let mayRepeat = error.status.map { answerer.connectionLost(afterStatus: $0) } ?? answerer.connectionLost()
        if mayRepeat { fail(error) } else { refuse(error.detail, nil) }
    }

    private func opened(_ head: FieldLines, _ rest: [UInt8]) {
        tunnel.early.writeBytes(rest)
        tunnel.answerer.opened(head) { fault in
            guard let chain = self.chain, let channel = self.channel else { return }
            if let fault { return self.refuse("the parent \(self.tunnel.parent): \(fault)", nil) }
            self.chain = nil
            self.channel = nil
            self.holdReading(false, channel)
            channel.pipeline.syncOperations.removeHandler(self).assumeIsolated().whenComplete { _ in
                chain.stepSucceeded(channel)
            }
        }
        // The parent's proof is being verified, and the other end of the tunnel may send without limit meanwhile.
        if chain != nil, let channel { holdReading(true, channel) }
    }

    private func holdReading(_ isHeld: Bool, _ channel: any Channel) {
        guard isHeld != readingIsHeld else { return }
        readingIsHeld = isHeld
        try? channel.syncOptions?.setOption(.autoRead, value: !isHeld)
    }

    /// The parent has decided.
    private func refuse(_ reason: String?, _ response: ConnectResponse?) {
        var detail = "the parent \(tunnel.parent)"
        if let response {
            detail += " refuses the connection to \(client.authority): \(response.status) \(response.reason)"
            if let reason { detail += " (\(reason))" }
        } else {
            detail = reason ?? "\(detail) does not open the connection"
        }
        fail(UpstreamError(.tunnelRefused, detail, response: response))
    }

    private func fail(_ error: UpstreamError) {
        let chain = self.chain
        self.chain = nil
        channel = nil
        chain?.stepFailed(error)
    }
}
