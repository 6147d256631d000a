// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignChannelTLS
@testable import CountersignTLS

struct TLSHandlerTests {
    private func pair(
        version: Int32, name: String = "origin-ec", authorities: [String] = [], isRequired: Bool = false,
        answer: Recorder.Answer = .never, halfCloses: Bool = false
    ) throws -> HandlerPair {
        try HandlerPair(
            client: Fixture.client(version: version),
            server: Fixture.server(name, authorities: authorities, isRequired: isRequired), answer: answer,
            halfCloses: halfCloses)
    }

    @Test(arguments: Fixture.bothVersions, [Int.max, 1])
    func bytesAfterTheLastFlightAreDeliveredAfterTheHandshake(version: Int32, chunk: Int) throws {
        let pair = try pair(version: version)
        pair.server.recorder.onCompleted = { context in
            context.writeAndFlush(NIOAny(ByteBuffer(string: "at once")), promise: nil)
        }
        try pair.run(chunk: chunk)
        #expect(pair.client.heard == [.trust(true), .completed(identity: nil), .bytes("at once")])
        #expect(pair.server.heard == [.completed(identity: nil)])
        #expect(pair.client.tls.summary?.version == pair.client.summary?.version && pair.client.tls.session != nil)
    }

    @Test(arguments: Fixture.bothVersions)
    func writesBeforeTheHandshakeWaitForIt(version: Int32) throws {
        let pair = try pair(version: version)
        let written = Outcome(of: pair.client.write("early"))
        let unflushed = Outcome(of: pair.client.channel.write(ByteBuffer(string: " unflushed")))
        #expect(!written.isThere)
        try pair.run()
        #expect(pair.server.heard.last == .bytes("early"))
        #expect(written.isThere && !unflushed.isThere)
        pair.client.channel.flush()
        try pair.run()
        #expect(pair.server.heard.last == .bytes("early unflushed"))
        #expect(unflushed.isThere)
    }

    /// A burst of ciphertext is 128 KiB. Nothing follows the last burst here that would flush it.
    @Test(arguments: Fixture.bothVersions, [1, 2])
    func writesBeforeTheHandshakeAreSentCompletely(version: Int32, bursts: Int) throws {
        let pair = try pair(version: version)
        let size = bursts * PendingWrites.burstBytes
        pair.client.channel.writeAndFlush(ByteBuffer(repeating: 0x61, count: size), promise: nil)
        try pair.run()
        #expect(pair.server.heard.last == .bytes(String(repeating: "a", count: size)))
    }

    @Test(arguments: Fixture.bothVersions)
    func burstStaysBelowTheHighWaterMark(version: Int32) throws {
        let pair = try pair(version: version)
        let marks = pair.client.channel.options.compactMap { $0.value as? ChannelOptions.Types.WriteBufferWaterMark }
        #expect(marks.map(\.high) == [2 * PendingWrites.burstBytes] && marks.map(\.low) == [64 * 1024])
    }

    /// A handler that keeps the plaintext, to send it again, must not hold much more memory than that. Reads of any
    /// size split records anywhere.
    @Test(arguments: Fixture.bothVersions, [1000, 16 * 1024, 64 * 1024])
    func deliveredPlaintextDoesNotHoldExcessMemory(version: Int32, chunk: Int) throws {
        let pair = try pair(version: version)
        try pair.run()
        let size = 1 << 20
        var kept: [ByteBuffer] = []
        pair.client.recorder.onBytes = { _, bytes in kept.append(bytes) }
        let bytes = (0..<size).map { UInt8(truncatingIfNeeded: 0x61 + $0 % 26) }
        pair.server.channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
        try pair.run(chunk: chunk)
        #expect(kept.flatMap(\.readableBytesView) == bytes)
        #expect(kept.allSatisfy { $0.capacity <= max(chunk, 16 * 1024) }, "\(kept.map(\.capacity))")
    }

    /// The connection ends while the first plaintext is delivered, as it does if a write in response fails.
    @Test(arguments: Fixture.bothVersions)
    func receivedPlaintextIsDeliveredAlthoughTheConnectionEndsMeanwhile(version: Int32) throws {
        let pair = try pair(version: version)
        try pair.run()
        let client = pair.client
        pair.server.channel.writeAndFlush(ByteBuffer(repeating: 0x61, count: 16 * 1024), promise: nil)
        var record = try pair.server.takeOutbound()
        // In small pieces, so that the buffer for the last of them is smaller than the record.
        while record.readableBytes > 1000, let piece = record.readSlice(length: 1000) {
            client.channel.pipeline.fireChannelRead(piece)
        }
        client.recorder.onBytes = { [unowned client] _, _ in
            client.recorder.onBytes = nil
            client.channel.pipeline.fireChannelInactive()
        }
        client.channel.pipeline.fireChannelRead(record)
        #expect(client.heard.contains(.bytes(String(repeating: "a", count: 16 * 1024))))
    }

    @Test(arguments: Fixture.bothVersions)
    func errorIsReportedAlthoughTheConnectionEndsMeanwhile(version: Int32) throws {
        let pair = try pair(version: version)
        try pair.run()
        let client = pair.client
        pair.server.channel.writeAndFlush(ByteBuffer(string: "last words"), promise: nil)
        var bytes = try pair.server.takeOutbound()
        bytes.writeBytes([0x17, 3, 3, 0, 24] + [UInt8](repeating: 0, count: 24))
        client.recorder.onBytes = { [unowned client] _, _ in client.channel.pipeline.fireChannelInactive() }
        client.channel.pipeline.fireChannelRead(bytes)
        #expect(client.heard.dropFirst(2).prefix(2) == [.bytes("last words"), .error(.protocolViolation)])
    }

    @Test(arguments: Fixture.bothVersions)
    func manySmallWritesBecomeOneWriteOfFullRecords(version: Int32) throws {
        let pair = try pair(version: version)
        try pair.run()
        pair.client.counter.reset()
        for _ in 0..<400 { pair.client.channel.write(ByteBuffer(repeating: 0x61, count: 100), promise: nil) }
        #expect(pair.client.counter.writes == 0)
        pair.client.channel.flush()
        #expect(pair.client.counter.writes == 1 && pair.client.counter.flushes == 1)
        var bytes = try pair.client.takeOutbound()
        var records = 0
        while let header = bytes.readBytes(length: 5) {
            bytes.moveReaderIndex(forwardBy: Int(header[3]) << 8 | Int(header[4]))
            records += 1
        }
        #expect(records == 3 && bytes.readableBytes == 0)
    }

    /// A channel reports that its buffer is full during a write.
    @Test(arguments: Fixture.bothVersions)
    func writeInResponseToWritabilityIsSentOnce(version: Int32) throws {
        let pair = try pair(version: version)
        try pair.run()
        try pair.client.channel.pipeline.syncOperations.addHandler(Filling(), position: .first)
        try pair.client.channel.pipeline.syncOperations.addHandler(FlushingOnWritability())
        _ = pair.client.write("one")
        try pair.run()
        #expect(pair.server.heard.last == .bytes("one two"))
    }

    @Test func oneReadCompleteCausesOneFlush() throws {
        let pair = try pair(version: TLS1_3_VERSION)
        pair.server.counter.reset()
        try pair.run()
        #expect(pair.server.counter.flushes == 2, "the server's flight and its ticket")
        pair.client.counter.reset()
        _ = pair.server.write("answer")
        try pair.run()
        #expect(pair.client.counter.writes == 0 && pair.client.counter.flushes == 0)
    }

    @Test func ticketIsSentWithTheResponseToAnEarlyRequest() throws {
        let pair = try pair(version: TLS1_3_VERSION)
        pair.server.counter.reset()
        _ = pair.client.write("request")
        try pair.run()
        #expect(pair.server.heard.last == .bytes("request"))
        #expect(pair.server.counter.flushes == 1 && pair.client.tls.session == nil)
        _ = pair.server.write("answer")
        try pair.run()
        #expect(pair.server.counter.flushes == 2)
        #expect(pair.client.heard.last == .bytes("answer") && pair.client.tls.session != nil)
    }

    @Test(arguments: Fixture.bothVersions, ["greeting", ""])
    func earlyWritesOfAServerAreSentAtTheEndOfTheHandshake(version: Int32, text: String) throws {
        let pair = try pair(version: version)
        let (greeting, request) = (pair.server.write(text), pair.client.write("request"))
        let (isGreeted, isAsked) = (Outcome(of: greeting), Outcome(of: request))
        try pair.run()
        #expect(pair.server.heard.last == .bytes("request"))
        #expect(text.isEmpty || pair.client.heard.last == .bytes(text))
        #expect(isGreeted.isThere && isAsked.isThere)
    }

    @Test func onlyPlaintextSatisfiesARead() throws {
        let pair = try pair(version: TLS1_3_VERSION)
        try pair.run()
        _ = pair.server.write("answer")
        var bytes = try pair.server.takeOutbound()
        pair.client.counter.reset()
        pair.client.channel.read()
        for _ in 0..<3 {
            let slice = bytes.readSlice(length: 5)
            let part = try #require(slice)
            pair.client.channel.pipeline.fireChannelRead(part)
            pair.client.channel.pipeline.fireChannelReadComplete()
        }
        #expect(pair.client.counter.reads == 4)
        pair.client.channel.pipeline.fireChannelRead(bytes)
        pair.client.channel.pipeline.fireChannelReadComplete()
        #expect(pair.client.counter.reads == 4 && pair.client.heard.last == .bytes("answer"))
    }

    // MARK: Certificate requests

    @Test(arguments: Fixture.bothVersions)
    func requestSuspendsUntilItsLateAnswer(version: Int32) throws {
        let pair = try pair(version: version, authorities: ["client-a-root"], isRequired: true)
        let written = Outcome(of: pair.client.write("kept"))
        try pair.run()
        #expect(pair.client.heard == [.trust(true), .asked(isPostHandshake: false)])
        #expect(!written.isThere)

        pair.client.counter.reset()
        pair.client.channel.read()
        #expect(pair.client.counter.reads == 0, "nothing more is read until there is an answer")
        pair.client.tls.answerCertificateRequest(with: try Fixture.identity("client-a"))
        #expect(pair.client.counter.reads > 0)
        try pair.run()
        #expect(pair.client.heard.last == .completed(identity: "client-a"))
        #expect(pair.server.heard.last == .bytes("kept") && written.isThere)
        let root = try Fixture.leaf("client-a-root")
        #expect(pair.server.summary?.verifiedClientChain == (try Fixture.chain("client-a")) + [root])
    }

    @Test(arguments: Fixture.bothVersions)
    func sentAndWrittenBytesKeepTheirOrder(version: Int32) throws {
        let pair = try pair(version: version, authorities: ["client-a-root"], isRequired: true)
        let (client, channel) = (pair.client.tls, pair.client.channel)
        client.send(ByteBuffer(string: "before the handshake, "))
        _ = pair.client.write("written, ")
        try pair.run()
        client.send(ByteBuffer(string: "while asked, "))
        #expect(pair.client.heard.last == .asked(isPostHandshake: false))
        client.answerCertificateRequest(with: try Fixture.identity("client-a"))
        try pair.run()
        client.send(ByteBuffer(string: "at once, "))
        channel.write(ByteBuffer(string: "not flushed, "), promise: nil)
        client.send(ByteBuffer(string: "flushed, "))
        let written = Outcome(of: pair.client.write("told of"))
        client.send(ByteBuffer(string: ", the last"))
        try pair.run()
        #expect(
            pair.server.heard.last
                == .bytes(
                    "before the handshake, written, while asked, at once, not flushed, flushed, told of, the last"))
        #expect(written.isThere)
    }

    @Test(arguments: Fixture.bothVersions)
    func requestMayBeAnsweredInsideItsEvent(version: Int32) throws {
        let identity = try Fixture.identity("client-b")
        let pair = try pair(
            version: version, authorities: ["client-b-root"], isRequired: true, answer: .now(identity))
        try pair.run()
        #expect(
            pair.client.heard == [.trust(true), .asked(isPostHandshake: false), .completed(identity: "client-b")])
        #expect(pair.server.summary?.peerCertificate == identity.leaf)
    }

    @Test func missingCertificateEndsTLS13ConnectionsWithTheServersAlert() throws {
        let pair = try pair(
            version: TLS1_3_VERSION, authorities: ["client-a-root"], isRequired: true, answer: .now(nil))
        try pair.run()
        #expect(
            pair.client.heard == [
                .trust(true), .asked(isPostHandshake: false), .completed(identity: nil),
                .error(.peerAlert(116, name: "certificate_required")), .inactive,
            ])
        #expect(pair.server.heard == [.error(.handshakeFailed), .inactive])
    }

    /// A failing write makes NIO read the remaining input during the write, here after the first of two bursts.
    @Test func serversAlertIsReportedDuringAFailingWrite() throws {
        let pair = try pair(
            version: TLS1_3_VERSION, authorities: ["client-a-root"], isRequired: true, answer: .now(nil))
        let (client, server) = (pair.client, pair.server)
        client.channel.writeAndFlush(ByteBuffer(repeating: 0x61, count: 2 * PendingWrites.burstBytes), promise: nil)
        client.counter.onFlush = {
            guard client.summary != nil, client.isOpen, let flight = try? client.takeOutbound() else { return }
            client.counter.onFlush = nil
            server.channel.pipeline.fireChannelRead(flight)
            guard let alert = try? server.takeOutbound() else { return }
            client.channel.pipeline.fireChannelRead(alert)
            client.channel.pipeline.fireChannelInactive()
        }
        try pair.run()
        #expect(
            Array(client.heard.prefix(4)) == [
                .trust(true), .asked(isPostHandshake: false), .completed(identity: nil),
                .error(.peerAlert(116, name: "certificate_required")),
            ])
    }

    @Test(arguments: Fixture.bothVersions)
    func untrustedServersRequestFiresNoEvent(version: Int32) throws {
        let pair = try pair(version: version, name: "origin-self-signed", authorities: ["client-a-root"])
        try pair.run()
        #expect(pair.client.heard == [.trust(false), .completed(identity: nil)])
        #expect(pair.server.summary?.peerCertificate == nil)
    }

    /// The request is found together with the plaintext before it and fired when that is answered. Plaintext after it
    /// is not lost.
    @Test func requestBetweenPlaintextIsFiredDuringASend() throws {
        let tls = try TLSHandler(
            client: Fixture.client(version: TLS1_3_VERSION), host: "localhost", alpn: [], session: nil)
        let client = try HandlerSide(tls, answer: .now(nil), halfCloses: false)
        let server = EngineSide(try TLSEngine(server: Fixture.server()))
        client.recorder.onBytes = { _, _ in tls.send(ByteBuffer(string: "answer")) }
        client.channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
        func carry() throws {
            server.incoming += Array(buffer: try client.takeOutbound())
            _ = server.turn(chunk: .max)
            client.channel.pipeline.fireChannelRead(ByteBuffer(bytes: server.outgoing))
            client.channel.pipeline.fireChannelReadComplete()
            server.outgoing = []
        }
        while client.summary == nil || !server.engine.isEstablished { try carry() }
        _ = try server.write("first")
        SSL_set_verify(server.engine.ssl, SSL_VERIFY_PEER | SSL_VERIFY_POST_HANDSHAKE, nil)
        SSL_verify_client_post_handshake(server.engine.ssl)
        SSL_do_handshake(server.engine.ssl)
        _ = try server.write("second")
        try carry()
        #expect(
            client.heard == [
                .trust(true), .completed(identity: nil), .bytes("first"), .asked(isPostHandshake: true),
                .bytes("second"),
            ])
        try carry()
        #expect(server.text == "answeranswer")
    }

    @Test func answerWithoutRequestIsIgnored() throws {
        let pair = try pair(version: TLS1_3_VERSION)
        try pair.run()
        pair.client.tls.answerCertificateRequest(with: try Fixture.identity("client-a"))
        _ = pair.client.write("goes on")
        try pair.run()
        #expect(pair.server.heard.last == .bytes("goes on") && pair.client.tls.summary?.clientIdentity == nil)
    }

    // MARK: Ends

    @Test(arguments: Fixture.bothVersions)
    func closeSendsCloseNotify(version: Int32) throws {
        let pair = try pair(version: version)
        try pair.run()
        _ = pair.server.write("last")
        pair.server.channel.close(promise: nil)
        try pair.run()
        #expect(
            pair.client.heard == [.trust(true), .completed(identity: nil), .bytes("last"), .tlsInputClosed, .inactive])
        #expect(!pair.client.isOpen)
        #expect(throws: ChannelError.ioOnClosedChannel) { try pair.client.write("late").wait() }
    }

    @Test(arguments: [true, false])
    func callbackOfAFailedWriteMayWriteAndClose(closesOutput: Bool) throws {
        let pair = try pair(version: TLS1_3_VERSION, halfCloses: true)
        try pair.run()
        let channel = pair.client.channel
        let written = channel.write(ByteBuffer(string: "not flushed"))
        written.whenFailure { _ in
            channel.writeAndFlush(ByteBuffer(string: "late"), promise: nil)
            channel.close(promise: nil)
        }
        if closesOutput { channel.close(mode: .output, promise: nil) } else { pair.client.tls.abort() }
        try pair.run()
        #expect(throws: closesOutput ? ChannelError.outputClosed : .ioOnClosedChannel) { try written.wait() }
        #expect(!pair.client.isOpen && !pair.server.heard.contains(.bytes("late")))
    }

    @Test func closeNotifyIsAHalfCloseIfTheChannelAllowsIt() throws {
        let pair = try pair(version: TLS1_3_VERSION, halfCloses: true)
        try pair.run()
        pair.server.channel.close(promise: nil)
        let bytes = try pair.server.takeOutbound()
        pair.client.channel.pipeline.fireChannelRead(bytes)
        pair.client.channel.pipeline.fireChannelReadComplete()
        pair.endInput(of: pair.client)
        #expect(
            pair.client.heard == [.trust(true), .completed(identity: nil), .tlsInputClosed, .channelInputClosed])
        #expect(pair.client.isOpen)
        pair.client.channel.close(promise: nil)
        #expect(pair.client.heard.last == .inactive)
    }

    @Test(arguments: Fixture.bothVersions)
    func streamThatEndsWithoutCloseNotifyIsAnError(version: Int32) throws {
        let closed = try pair(version: version)
        try closed.run()
        _ = closed.server.write("par")
        try closed.run()
        closed.client.channel.pipeline.fireChannelInactive()
        #expect(
            closed.client.heard == [
                .trust(true), .completed(identity: nil), .bytes("par"), .error(.truncated), .inactive,
            ])

        let half = try pair(version: version, halfCloses: true)
        try half.run()
        half.endInput(of: half.client)
        #expect(
            half.client.heard == [.trust(true), .completed(identity: nil), .error(.truncated), .channelInputClosed])
        half.client.channel.pipeline.fireChannelInactive()
        #expect(half.client.heard.last == .inactive && half.client.heard.count == 5, "reported once")
    }

    @Test(arguments: Fixture.bothVersions)
    func outputIsClosedAfterFlushedWrites(version: Int32) throws {
        let pair = try pair(version: version, authorities: ["client-a-root"])
        _ = pair.client.write("early")
        let closed = Outcome(of: pair.client.channel.close(mode: .output))
        #expect(throws: ChannelError.outputClosed) { try pair.client.write("late").wait() }
        try pair.run()
        #expect(pair.client.heard == [.trust(true), .asked(isPostHandshake: false)] && !closed.isThere)
        pair.client.tls.answerCertificateRequest(with: nil)
        try pair.run()
        #expect(Array(pair.server.heard.prefix(3)) == [.completed(identity: nil), .bytes("early"), .tlsInputClosed])
        #expect(closed.isThere)
    }

    @Test func closingTheOutputFailsWithTheHandshake() throws {
        let pair = try pair(version: TLS1_3_VERSION)
        let closed = pair.client.channel.close(mode: .output)
        pair.client.channel.pipeline.fireChannelRead(ByteBuffer(string: "HTTP/1.1 400 Bad Request"))
        #expect(throws: TLSError(.notTLS, "")) { try closed.wait() }
    }

    @Test func peerSeesAnAbortAsATruncation() throws {
        let pair = try pair(version: TLS1_3_VERSION)
        try pair.run()
        pair.server.tls.abort()
        #expect(try pair.server.takeOutbound().readableBytes == 0 && !pair.server.isOpen)
    }

    @Test(arguments: [true, false])
    func streamThatEndsInTheHandshakeFailsIt(halfCloses: Bool) throws {
        let pair = try pair(version: TLS1_3_VERSION, halfCloses: halfCloses)
        let written = pair.client.write("never")
        if halfCloses { pair.endInput(of: pair.client) } else { pair.client.channel.pipeline.fireChannelInactive() }
        #expect(Array(pair.client.heard.prefix(2)) == [.error(.truncated), .inactive])
        #expect(throws: TLSError(.truncated, "")) { try written.wait() }
    }

    @Test func plaintextToAServerIsRefused() throws {
        let pair = try pair(version: TLS1_3_VERSION)
        pair.server.channel.pipeline.fireChannelRead(ByteBuffer(string: "GET / HTTP/1.1\r\n\r\n"))
        pair.server.channel.pipeline.fireChannelReadComplete()
        #expect(pair.server.heard == [.error(.notTLS), .inactive])
        #expect(try pair.server.takeOutbound().readableBytes == 0 && !pair.server.isOpen)
    }

    @Test func errorSendsAnAlertAndClosesTheChannel() throws {
        let pair = try pair(version: TLS1_3_VERSION)
        try pair.run()
        _ = pair.server.write("answer")
        var bytes = try pair.server.takeOutbound()
        let last = bytes.writerIndex - 1
        bytes.setInteger(bytes.getInteger(at: last, as: UInt8.self)! ^ 1, at: last)
        pair.client.channel.pipeline.fireChannelRead(bytes)
        #expect(pair.client.heard.suffix(2) == [.error(.protocolViolation), .inactive])
        try pair.run()
        #expect(pair.server.heard.suffix(2) == [.error(.peerAlert(20, name: "bad_record_mac")), .inactive])
    }
}

/// Fires writability changes during each write.
private final class Filling: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        context.write(data, promise: promise)
        context.fireChannelWritabilityChanged()
    }
}

/// Writes more at the first writability change.
private final class FlushingOnWritability: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer
    private var hasHeard = false

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        guard !hasHeard else { return }
        hasHeard = true
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: " two")), promise: nil)
    }
}
