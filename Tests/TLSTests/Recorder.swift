// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import NIOConcurrencyHelpers
import NIOCore

@testable import CountersignChannelTLS
@testable import CountersignTLS

/// The events that a handler after TLS gets, in order. Consecutive plaintext is one entry.
enum Heard: Equatable, Sendable {
    case trust(Bool)
    case trustAsked([ServerTrust.Reason])
    case asked(isPostHandshake: Bool)
    case completed(identity: String?)
    case bytes(String)
    case tlsInputClosed
    case channelInputClosed
    case error(TLSError.Code)
    case otherError
    case inactive
}

/// Records events, answers certificate requests and trust questions, and optionally echoes.
final class Recorder: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Answer: Sendable {
        case never
        case now(Identity?)
        /// Answers after that many turns of the event loop, of one millisecond each.
        case later(Identity?, turns: Int)
    }

    enum TrustReply: Sendable {
        case never
        /// The answers to successive questions, each given during its event. The last one is repeated.
        case now([TrustAnswer])
        /// Answers after that many turns of the event loop, of one millisecond each.
        case later(TrustAnswer, turns: Int)
    }

    /// The state that may be read from any thread.
    struct Log: Sendable {
        var heard: [Heard] = []
        var summary: TLSSummary?
        var requests: [CertificateRequest] = []
        var trustQuestions = 0
        var byteCount = 0
        /// How many turns of the event loop passed between a request and its answer.
        var turnsWhileAsked = 0
    }

    let log = NIOLockedValueBox(Log())
    private let tls: TLSHandler
    private let answer: Answer
    private let trustReply: TrustReply
    private let keepsBytes: Bool
    var onCompleted: ((ChannelHandlerContext) -> Void)?
    var onBytes: ((ChannelHandlerContext, ByteBuffer) -> Void)?

    init(
        _ tls: TLSHandler, answer: Answer = .never, trustReply: TrustReply = .never, keepsBytes: Bool = true
    ) {
        self.tls = tls
        self.answer = answer
        self.trustReply = trustReply
        self.keepsBytes = keepsBytes
    }

    private func note(_ entry: Heard) { log.withLockedValue { $0.heard.append(entry) } }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        let keepsBytes = keepsBytes
        log.withLockedValue { log in
            log.byteCount += bytes.readableBytes
            guard keepsBytes else { return }
            let text = String(buffer: bytes)
            if case .bytes(let before) = log.heard.last {
                log.heard[log.heard.count - 1] = .bytes(before + text)
            } else {
                log.heard.append(.bytes(text))
            }
        }
        onBytes?(context, bytes)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSEvent.serverTrustEvaluated(let trust):
            note(.trust(trust.isTrusted))
        case TLSEvent.serverTrustAsked(let trust):
            note(.trustAsked(trust.reasons))
            log.withLockedValue { $0.trustQuestions += 1 }
            replyAboutTrust(context)
        case TLSEvent.certificateRequested(let request):
            note(.asked(isPostHandshake: request.isPostHandshake))
            log.withLockedValue { $0.requests.append(request) }
            reply(context)
        case TLSEvent.handshakeCompleted(let summary):
            log.withLockedValue { $0.summary = summary }
            note(.completed(identity: summary.clientIdentity))
            onCompleted?(context)
        case TLSEvent.inputClosed:
            note(.tlsInputClosed)
        case ChannelEvent.inputClosed:
            note(.channelInputClosed)
        default:
            break
        }
        context.fireUserInboundEventTriggered(event)
    }

    private func reply(_ context: ChannelHandlerContext) {
        switch answer {
        case .never:
            break
        case .now(let identity):
            tls.answerCertificateRequest(with: identity)
        case .later(let identity, let turns):
            reply(with: identity, after: turns, context.eventLoop)
        }
    }

    private func reply(with identity: Identity?, after turns: Int, _ loop: any EventLoop) {
        guard turns > 0 else { return tls.answerCertificateRequest(with: identity) }
        log.withLockedValue { $0.turnsWhileAsked += 1 }
        loop.assumeIsolated().scheduleTask(in: .milliseconds(1)) { [self] in
            reply(with: identity, after: turns - 1, loop)
        }
    }

    private func replyAboutTrust(_ context: ChannelHandlerContext) {
        switch trustReply {
        case .never:
            break
        case .now(let answers):
            let asked = log.withLockedValue { $0.trustQuestions }
            if let last = answers.last {
                tls.answerTrustQuestion(with: asked <= answers.count ? answers[asked - 1] : last)
            }
        case .later(let answer, let turns):
            replyAboutTrust(with: answer, after: turns, context.eventLoop)
        }
    }

    private func replyAboutTrust(with answer: TrustAnswer, after turns: Int, _ loop: any EventLoop) {
        guard turns > 0 else { return tls.answerTrustQuestion(with: answer) }
        log.withLockedValue { $0.turnsWhileAsked += 1 }
        loop.assumeIsolated().scheduleTask(in: .milliseconds(1)) { [self] in
            replyAboutTrust(with: answer, after: turns - 1, loop)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        note((error as? TLSError).map { .error($0.code) } ?? .otherError)
    }

    func channelInactive(context: ChannelHandlerContext) { note(.inactive) }
}

/// Counts the operations between TLS and the network.
final class WireCounter: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer

    private(set) var writes = 0
    private(set) var flushes = 0
    private(set) var reads = 0
    /// Called after a flush.
    var onFlush: (() -> Void)?

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        writes += 1
        context.write(data, promise: promise)
    }

    func flush(context: ChannelHandlerContext) {
        flushes += 1
        context.flush()
        onFlush?()
    }

    func read(context: ChannelHandlerContext) {
        reads += 1
        context.read()
    }

    func reset() { (writes, flushes, reads) = (0, 0, 0) }
}
