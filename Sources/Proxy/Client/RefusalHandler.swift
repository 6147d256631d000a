// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// Informs a client of another user that it is not served: waits for the first bytes of its request, sends a 403, and
/// closes. Nothing of the request is interpreted.
///
/// Closing the connection without a response would look like a network fault. Clients show the status of a response to
/// CONNECT, and some its reason phrase, so the reason is there, too.
final class RefusalHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Any local user can open connections, so only this many are answered at a time. The others are closed.
    static let limit = 32
    /// The time that a connection stays open, for the request and then for the client to read the response.
    private static let time = TimeAmount.seconds(5)

    private let uid: UInt32
    private let servedUser: UInt32
    private let closed: () -> Void
    private var hasResponded = false
    private var timeout: Scheduled<Void>?

    /// `closed` is called once the connection is closed.
    init(uid: UInt32, servedUser: UInt32, closed: @escaping () -> Void) {
        self.uid = uid
        self.servedUser = servedUser
        self.closed = closed
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        timeout = context.eventLoop.scheduleTask(in: Self.time) { channel.close(promise: nil) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Bytes after the first ones are discarded: closing with unread input would reset the connection.
        guard !hasResponded else { return }
        hasResponded = true
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        let (uid, servedUser) = (uid, servedUser)
        NIOThreadPool.singleton.runIfActive(eventLoop: context.eventLoop) {
            Self.response(
                user: SystemUsers.name(of: uid) ?? String(uid),
                servedUser: SystemUsers.name(of: servedUser) ?? String(servedUser))
        }.whenSuccess { response in
            let context = bound.value
            context.writeAndFlush(NIOAny(ByteBuffer(bytes: response)), promise: nil)
            context.close(mode: .output, promise: nil)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event, hasResponded { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        timeout?.cancel()
        closed()
        context.fireChannelInactive()
    }

    /// The whole response. A HEAD gets the content, too, which its client ignores with the connection.
    static func response(user: String, servedUser: String) -> [UInt8] {
        let detail = "this proxy serves user \(servedUser), not user \(user); see --allow-user"
        let bytes = OwnResponse(status: 403, detail: detail).bytes(keepAlive: false, to: .get)
        let phrase = String(decoding: detail.utf8.map { (0x20..<0x7F).contains($0) ? $0 : 0x3F }, as: UTF8.self)
        let line = "HTTP/1.1 403 Forbidden\r\n".utf8
        guard bytes.starts(with: line) else { return bytes }
        return Array("HTTP/1.1 403 Forbidden: \(phrase)\r\n".utf8) + bytes.dropFirst(line.count)
    }
}
