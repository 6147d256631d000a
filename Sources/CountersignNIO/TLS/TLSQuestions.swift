// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignAddresses
import CountersignCertificates
import CountersignChallenges
import NIOCore
import CountersignAnswering
import CountersignProxy
import CountersignChannelTLS
import CountersignTLS
import CountersignUpstream

/// Answers the questions of TLS on one channel: whether to trust the server, and which client certificate to present.
final class TLSQuestions: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let tls: TLSHandler
    private let origin: Origin
    private let controller: ChallengeController
    private let delegate: (any ServerTrustDelegate)?
    /// The time limit for the handshake, and for the delegate.
    private let limit: TimeAmount
    /// Nil once it has been completed.
    private var verdict: EventLoopPromise<ServerTrustVerdict>?
    private var reasons = ""
    /// The trust exception by which the server is accepted.
    private var exception: TrustException?
    private var shown: Identity?
    private var asking: Task<Void, Never>?
    private var deadline: Scheduled<Void>?

    init(
        _ tls: TLSHandler, _ origin: Origin, controller: ChallengeController, delegate: (any ServerTrustDelegate)?,
        limit: TimeAmount, verdict: EventLoopPromise<ServerTrustVerdict>
    ) {
        self.tls = tls
        self.origin = origin
        self.controller = controller
        self.delegate = delegate
        self.limit = limit
        self.verdict = verdict
    }

    func handlerAdded(context: ChannelHandlerContext) {
        wait(context) { $0.fail(.tlsFailed, "the handshake timed out") }
    }

    func handlerRemoved(context: ChannelHandlerContext) { end() }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSEvent.serverTrustAsked(let trust):
            exception = Self.exception(trust, origin, controller.keeper.policy.current)
            if let exception { return tls.answerTrustQuestion(with: .proceed(answering: exception.answers)) }
            ask(ServerTrustVerdict(trust), context)
        case TLSEvent.certificateRequested(let request):
            answer(request, context)
        case TLSEvent.handshakeCompleted(let summary):
            guard let trust = summary.serverTrust else { return fail(.tlsFailed, "the certificate was not verified") }
            end()
            verdict?.succeed(ServerTrustVerdict(trust, isExcepted: exception?.answers ?? false))
            verdict = nil
        case is TLSEvent:
            break
        default:
            context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? TLSError, error.code != .truncated || verdict != nil else {
            return context.fireErrorCaught(error)
        }
        let meant = UpstreamError.tls(error, at: "\(origin)", shown: shown)
        if let identity = meant.rejectedIdentity {
            let space = AuthenticationSpace(origin: origin, realm: nil, scheme: .certificate)
            controller.report(.rejected(ProtectionSpace(space), credential: identity.name))
        }
        let isUntrusted = error.code == .serverNotTrusted
        let found = ChallengeError(
            isUntrusted ? .serverNotTrusted : .tlsFailed,
            isUntrusted ? "\(origin) is not trusted: \(reasons)" : meant.detail,
            hint: isUntrusted ? ChallengeError.trustHint : nil)
        guard verdict == nil else { return fail(found) }
        context.fireErrorCaught(found)
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail(.tlsFailed, "the connection was closed during the handshake")
        context.fireChannelInactive()
    }

    // MARK: Questions

    /// The trust exception that the user has recorded for a listed server, if there is one.
    private static func exception(_ trust: ServerTrust, _ origin: Origin, _ policy: Policy) -> TrustException? {
        guard let leaf = trust.leaf?.sha256Fingerprint,
            case .answer = policy.sites.verdict(for: origin, client: .anyone)
        else {
            return nil
        }
        return policy.trustException(for: origin, leaf: leaf, now: ChallengeController.now())
    }

    private func ask(_ found: ServerTrustVerdict, _ context: ChannelHandlerContext) {
        reasons = found.description
        guard let delegate else { return tls.answerTrustQuestion(with: .refuse) }
        wait(context) { $0.tls.answerTrustQuestion(with: .refuse) }
        let address = context.remoteAddress.flatMap { remote in
            remote.ipAddress.map { NetworkAddress(host: $0, port: remote.port ?? 0) }
        }
        let question = ServerTrustQuestion(
            host: origin.host, port: Int(origin.port), verdict: found,
            address: address ?? NetworkAddress(host: "", port: 0),
            tlsVersion: tls.version)
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        asking = Task {
            let decision = await delegate.decide(question)
            bound.eventLoop.execute {
                let (questions, context) = bound.value
                questions.wait(context) { $0.fail(.tlsFailed, "the handshake timed out") }
                questions.tls.answerTrustQuestion(
                    with: decision == .proceed ? .proceed(answering: false) : .refuse)
            }
        }
    }

    private func answer(_ request: CertificateRequest, _ context: ChannelHandlerContext) {
        var space = ProtectionSpace(
            host: origin.host, port: Int(origin.port), authenticationMethod: .clientCertificate)
        space.acceptableIssuers = request.acceptableIssuers
        let challenge = AuthenticationChallenge(protectionSpace: space)
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let controller = controller
        asking = Task {
            let (_, credential) = await controller.handle(challenge)
            bound.eventLoop.execute {
                bound.value.shown = if case .identity(let identity)? = credential { identity.stored } else { nil }
                bound.value.tls.answerCertificateRequest(with: bound.value.shown)
            }
        }
    }

    // MARK: Time-out and end

    /// Restarts the time-out. `passed` runs on the event loop if the handshake has not completed by then.
    private func wait(_ context: ChannelHandlerContext, _ passed: @escaping (TLSQuestions) -> Void) {
        deadline?.cancel()
        guard verdict != nil else { return }
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: limit) { [weak self] in
            if let self { passed(self) }
        }
    }

    private func fail(_ code: ChallengeError.Code, _ detail: String) {
        fail(ChallengeError(code, "\(origin): \(detail)"))
    }

    private func fail(_ error: ChallengeError) {
        end()
        verdict?.fail(error)
        verdict = nil
    }

    private func end() {
        asking?.cancel()
        deadline?.cancel()
    }
}
