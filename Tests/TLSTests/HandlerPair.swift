// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOEmbedded

@testable import CountersignChannelTLS
@testable import CountersignTLS

/// One side of a connection in memory: an embedded channel with a counter, TLS and a recorder.
final class HandlerSide {
    let channel = EmbeddedChannel()
    let counter = WireCounter()
    let tls: TLSHandler
    let recorder: Recorder

    init(
        _ tls: TLSHandler, answer: Recorder.Answer, trustReply: Recorder.TrustReply = .never, halfCloses: Bool
    ) throws {
        self.tls = tls
        recorder = Recorder(tls, answer: answer, trustReply: trustReply)
        channel.allowRemoteHalfClosure = halfCloses
        try channel.pipeline.syncOperations.addHandlers([counter, tls, recorder])
    }

    deinit { _ = try? channel.finish(acceptAlreadyClosed: true) }

    var heard: [Heard] { recorder.log.withLockedValue { $0.heard } }
    var summary: TLSSummary? { recorder.log.withLockedValue { $0.summary } }
    var isOpen: Bool { channel.isActive }

    func write(_ text: String) -> EventLoopFuture<Void> {
        channel.writeAndFlush(ByteBuffer(string: text))
    }

    /// Everything that was written to the network, joined.
    func takeOutbound() throws -> ByteBuffer {
        var all = ByteBuffer()
        while var bytes = try channel.readOutbound(as: ByteBuffer.self) { all.writeBuffer(&bytes) }
        return all
    }
}

/// A client and a server, connected in memory.
final class HandlerPair {
    let client: HandlerSide
    let server: HandlerSide

    convenience init(
        client: TLSClientContext, server: TLSServerContext, alpn: [String] = [], answer: Recorder.Answer = .never,
        trustReply: Recorder.TrustReply? = nil, halfCloses: Bool = false
    ) throws {
        let tls = try TLSHandler(
            client: client, host: "localhost", alpn: alpn, session: nil, asksAboutTrust: trustReply != nil)
        try self.init(client: tls, server: server, answer: answer, trustReply: trustReply, halfCloses: halfCloses)
    }

    init(
        client tls: TLSHandler, server: TLSServerContext, answer: Recorder.Answer = .never,
        trustReply: Recorder.TrustReply? = nil, halfCloses: Bool = false
    ) throws {
        self.client = try HandlerSide(
            tls, answer: answer, trustReply: trustReply ?? .never, halfCloses: halfCloses)
        self.server = try HandlerSide(TLSHandler(server: server), answer: .never, halfCloses: halfCloses)
        let address = try SocketAddress(ipAddress: "127.0.0.1", port: 1)
        self.server.channel.connect(to: address, promise: nil)
        self.client.channel.connect(to: address, promise: nil)
    }

    /// Transfers bytes until there are no more, at most `chunk` at a time to the client.
    func run(chunk: Int = .max) throws {
        var goesOn = true
        while goesOn {
            goesOn = try carry(client, server, chunk: .max)
            goesOn = try carry(server, client, chunk: chunk) || goesOn
        }
    }

    private func carry(_ from: HandlerSide, _ to: HandlerSide, chunk: Int) throws -> Bool {
        var bytes = try from.takeOutbound()
        guard bytes.readableBytes > 0 else { return false }
        while to.isOpen, let piece = bytes.readSlice(length: min(chunk, bytes.readableBytes)), piece.readableBytes > 0 {
            to.channel.pipeline.fireChannelRead(piece)
            to.channel.pipeline.fireChannelReadComplete()
        }
        return true
    }

    /// Ends the stream from the network to `side`.
    func endInput(of side: HandlerSide) {
        side.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }
}

/// Whether a future of an embedded loop is complete.
final class Outcome {
    private(set) var isThere = false

    init(of future: EventLoopFuture<Void>) {
        future.assumeIsolated().whenComplete { [unowned self] _ in isThere = true }
    }
}
