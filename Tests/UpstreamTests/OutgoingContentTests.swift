// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignUpstream

/// The content sent for a request is the content that its head announces.
@Suite struct OutgoingContentTests {
    private final class Sender: OriginStreamDelegate {
        var failures: [UpstreamError.Code] = []
        var reports: [Bool] = []
        var onWritability: (Bool) -> Void = { _ in }

        func originResponded(_ head: ResponseHead, content: ContentEnd) {}
        func originSent(_ content: ByteBuffer) {}
        func originResponseEnded(trailers: FieldLines?) {}
        func originReadCompleted() {}
        func originFailed(_ error: UpstreamError) { failures.append(error.code) }
        func originWritabilityChanged(_ isWritable: Bool) {
            reports.append(isWritable)
            onWritability(isWritable)
        }
    }

    private let channel = EmbeddedChannel(handler: FullNetwork())
    private let connection = OriginConnection(place: "a.example:80", tlsHandler: nil)
    private let sender = Sender()

    init() throws {
        try channel.pipeline.syncOperations.addHandler(connection)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 80)).wait()
        connection.delegate = sender
    }

    private func begin(_ framing: BodyFraming) throws {
        let field =
            switch framing {
            case .length(let count): "Content-Length: \(count)\r\n"
            case .chunked: "Transfer-Encoding: chunked\r\n"
            case .none, .untilClose: ""
            }
        let head = "POST / HTTP/1.1\r\n\(field)\r\n"
        connection.send(head: Array(head.utf8), method: .post, content: framing)
        connection.flush()
        #expect(try sent() == head)
    }

    private func sent() throws -> String {
        var text = ""
        while let piece = try channel.readOutbound(as: ByteBuffer.self) { text += String(buffer: piece) }
        return text
    }

    private func expectFault() {
        #expect(sender.failures == [.ownFault])
        #expect(!channel.isActive && !connection.isReusable)
    }

    @Test(arguments: [0, 1, 5, 5000] as [UInt64]) func contentBehindTheLengthIsNotSent(_ length: UInt64) throws {
        try begin(.length(length))
        let content = String(repeating: "x", count: Int(length))
        connection.send(ByteBuffer(string: content))
        connection.flush()
        #expect(try sent() == content)
        connection.send(ByteBuffer(string: "GET /smuggled HTTP/1.1\r\n\r\n"))
        connection.flush()
        expectFault()
        connection.finish(trailers: nil)
        #expect(try sent() == "" && sender.failures.count == 1)
    }

    @Test func aPartThatIsTooLongIsNotSentAtAll() throws {
        try begin(.length(5))
        connection.send(ByteBuffer(string: "hello, world"))
        connection.flush()
        expectFault()
        #expect(try sent() == "")
    }

    @Test func aRequestDoesNotEndBeforeItsLength() throws {
        try begin(.length(5))
        connection.send(ByteBuffer(string: "hell"))
        connection.finish(trailers: nil)
        expectFault()
    }

    @Test(arguments: [.none, .length(5), .chunked] as [BodyFraming])
    func contentEndsOnce(_ framing: BodyFraming) throws {
        try begin(framing)
        if framing != .none { connection.send(ByteBuffer(string: "hello")) }
        connection.finish(trailers: nil)
        connection.flush()
        #expect(connection.requestIsWhole && sender.failures.isEmpty)
        let content = framing == .chunked ? "5\r\nhello\r\n0\r\n\r\n" : framing == .none ? "" : "hello"
        #expect(try sent() == content)
        connection.finish(trailers: nil)
        expectFault()
        #expect(try sent() == "")
    }

    @Test(arguments: [.none, .length(5), .chunked] as [BodyFraming])
    func nothingFollowsTheEnd(_ framing: BodyFraming) throws {
        try begin(framing)
        if framing != .none { connection.send(ByteBuffer(string: "hello")) }
        connection.finish(trailers: nil)
        connection.flush()
        _ = try sent()
        connection.send(ByteBuffer(string: "more"))
        connection.flush()
        expectFault()
        #expect(try sent() == "")
    }

    @Test func anEmptyPartDoesNotEndChunkedContent() throws {
        try begin(.chunked)
        connection.send(ByteBuffer())
        connection.send(ByteBuffer(string: "hello"))
        connection.finish(trailers: nil)
        connection.flush()
        #expect(try sent() == "5\r\nhello\r\n0\r\n\r\n")
    }

    /// The network is full after each write, and takes more after each flush, before the call returns.
    @Test(arguments: [.length(40_000), .chunked] as [BodyFraming])
    func partsThatAreSentFromWithinASendFollowIt(_ framing: BodyFraming) throws {
        try begin(framing)
        let letters = ["a", "b", "c", "d"].map { String(repeating: $0, count: 10_000) }
        var next = 0
        func sendNext() {
            guard next < letters.count else { return }
            next += 1
            connection.send(ByteBuffer(string: letters[next - 1]))
            connection.flush()
        }
        sender.onWritability = { [connection] isWritable in
            if isWritable { sendNext() } else { connection.flush() }
        }
        sendNext()
        #expect(next == letters.count)
        connection.finish(trailers: nil)
        connection.flush()
        let chunks = letters.map { "2710\r\n\($0)\r\n" }.joined() + "0\r\n\r\n"
        #expect(try sent() == (framing == .chunked ? chunks : letters.joined()))
        #expect(sender.reports.contains(true) && sender.reports.contains(false) && sender.failures.isEmpty)
    }
}

/// A network that takes one write between two flushes.
private final class FullNetwork: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        context.write(data, promise: promise)
        report(false, context)
    }

    func flush(context: ChannelHandlerContext) {
        context.flush()
        report(true, context)
    }

    private func report(_ isWritable: Bool, _ context: ChannelHandlerContext) {
        guard let channel = context.channel as? EmbeddedChannel, channel.isWritable != isWritable else { return }
        channel.isWritable = isWritable
        context.fireChannelWritabilityChanged()
    }
}
