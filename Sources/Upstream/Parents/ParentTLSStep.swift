// SPDX-License-Identifier: Apache-2.0

import CountersignChannelTLS
import CountersignParents
import CountersignTLS
import NIOCore

/// How TLS to a parent is verified.
package struct ParentTLS {
    package let parent: ParentProxy
    package let context: TLSClientContext

    package init(_ parent: ParentProxy, _ context: TLSClientContext) {
        self.parent = parent
        self.context = context
    }
}

/// The TLS handshake with a parent, before anything is said to it. A parent that is not trusted gets nothing: there is
/// no way to ask a person about it, and a credential may be meant for it.
///
/// The step leaves two handlers on the channel for all further traffic: the parent's ``TLSHandler``, and this step's
/// own, which hides the events of the parent's TLS from later steps.
final class ParentTLSStep: ConnectionStep, ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    let kind = UpstreamError.Step.parentTLS
    let place: String
    let limit: TimeAmount
    private(set) var summary: TLSSummary?
    private let settings: ParentTLS
    private let spare: SpareBuffer
    /// Only a tunnel follows. Its ends detect by themselves that it was cut.
    private let isTunnel: Bool
    /// Called before the next step begins, and released then, because it may keep a credential.
    private var secured: ((TLSSummary) -> Void)?
    private var handler: TLSHandler?
    private var chain: ConnectionChain?

    init(
        _ settings: ParentTLS, limit: TimeAmount, spare: SpareBuffer, isTunnel: Bool,
        secured: @escaping (TLSSummary) -> Void
    ) {
        self.settings = settings
        self.limit = limit
        self.spare = spare
        self.isTunnel = isTunnel
        self.secured = secured
        place = settings.parent.authority
    }

    func run(on channel: any Channel, in chain: ConnectionChain) {
        self.chain = chain
        do {
            let handler = try TLSHandler(
                client: settings.context, host: settings.parent.host.text, alpn: ["http/1.1"], session: nil,
                asksAboutTrust: true, spare: spare, writesToSocket: true)
            self.handler = handler
            // Added before the TLS handler, so that it sees every event of the handshake.
            try channel.pipeline.syncOperations.addHandler(self)
            try channel.pipeline.syncOperations.addHandler(handler, position: .before(self))
        } catch {
            fail(UpstreamError(.tlsFailed, "the parent \(settings.parent): \(error)"))
        }
    }

    func chainEnded() {
        chain = nil
        secured = nil
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event as? TLSEvent {
        case .handshakeCompleted(let summary): completed(summary, context.channel)
        case .serverTrustAsked: handler?.answerTrustQuestion(with: .refuse)
        case .certificateRequested: handler?.answerCertificateRequest(with: nil)
        // Later handlers learn of the end by the channel's own event.
        case .serverTrustEvaluated, .inputClosed: break
        case nil: context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let tls = error as? TLSError else {
            if chain == nil { return context.fireErrorCaught(error) }
            return fail(UpstreamError(.tlsFailed, "the parent \(settings.parent): \(error)"))
        }
        if chain == nil, tls.code == .truncated {
            if !isTunnel { context.fireErrorCaught(error) }
            return
        }
        let described = UpstreamError(
            tls.code == .serverNotTrusted ? .parentNotTrusted : .tlsFailed,
            "the parent \(settings.parent): \(tls.detail)")
        // Named here, because another step may be running.
        if chain == nil { context.fireErrorCaught(described.inStep(kind, at: place)) } else { fail(described) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail(UpstreamError(.tlsFailed, "the parent \(settings.parent) closed the connection in the TLS handshake"))
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { handler = nil }

    private func completed(_ summary: TLSSummary, _ channel: any Channel) {
        guard let chain else { return }
        guard summary.serverTrust?.isTrusted == true else {
            return fail(UpstreamError(.parentNotTrusted, "the parent \(settings.parent) is not trusted"))
        }
        self.summary = summary
        self.chain = nil
        secured?(summary)
        secured = nil
        chain.stepSucceeded(channel)
    }

    private func fail(_ error: UpstreamError) {
        let chain = self.chain
        chainEnded()
        chain?.stepFailed(error)
    }
}
