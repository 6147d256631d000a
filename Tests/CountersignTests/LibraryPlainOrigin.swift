// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOPosix
import Synchronization

/// A plaintext server that sends prepared responses, or none, and records the requests.
final class PlainOrigin: Sendable {
    /// The heads of all requests.
    var requests: [String] { record.requests.withLock { $0 } }
    /// The number of open connections.
    var openConnections: Int { record.open.withLock { $0 } }
    let port: Int
    var site: String { "http://127.0.0.1:\(port)" }

    private let channel: any Channel
    private let record = Record()

    private final class Record: Sendable {
        let requests = Mutex<[String]>([])
        let open = Mutex(0)
    }

    /// `answer` returns the response to a request's head, or nil to send nothing.
    init(port: Int = 0, _ answer: @escaping @Sendable (String) -> String?) async throws {
        let record = record
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Connection(record, answer))
                }
            }
            .bind(host: "127.0.0.1", port: port).get()
        self.port = channel.localAddress?.port ?? 0
    }

    /// Sends the same response to all requests. `response` excludes Content-Length and the body.
    convenience init(port: Int = 0, head: String, body: String = "") async throws {
        try await self.init(port: port) { _ in Self.response(head, body) }
    }

    static func response(_ head: String, _ body: String = "") -> String {
        "HTTP/1.1 \(head)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    func stop() async throws { try await channel.close().get() }

    private final class Connection: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let record: Record
        private let answer: @Sendable (String) -> String?
        private var input = ""
        private var content = Content.none

        /// The rest of a request's content, which is skipped.
        private enum Content {
            case none
            case bytes(Int)
            case chunks
        }

        init(_ record: Record, _ answer: @escaping @Sendable (String) -> String?) {
            self.record = record
            self.answer = answer
        }

        func channelActive(context: ChannelHandlerContext) { record.open.withLock { $0 += 1 } }

        func channelInactive(context: ChannelHandlerContext) { record.open.withLock { $0 -= 1 } }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            input += String(buffer: unwrapInboundIn(data))
            while skipContent(), let end = input.range(of: "\r\n\r\n") {
                let request = String(input[..<end.upperBound])
                input.removeSubrange(..<end.upperBound)
                content = Self.content(of: request)
                record.requests.withLock { $0.append(request) }
                guard let response = answer(request) else { continue }
                context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: response)), promise: nil)
            }
        }

        private static func content(of request: String) -> Content {
            if request.contains("Transfer-Encoding: chunked\r\n") { return .chunks }
            let length = request.split(separator: "Content-Length: ").dropFirst().first?.prefix { $0 != "\r\n" }
            return length.flatMap { Int($0) }.map { .bytes($0) } ?? .none
        }

        /// Returns whether the content has ended.
        private func skipContent() -> Bool {
            switch content {
            case .none: return true
            case .bytes(let rest):
                let skipped = min(rest, input.utf8.count)
                input = String(decoding: input.utf8.dropFirst(skipped), as: UTF8.self)
                content = skipped == rest ? .none : .bytes(rest - skipped)
                return skipped == rest
            case .chunks:
                guard let end = input.range(of: "0\r\n\r\n") else { return false }
                input.removeSubrange(..<end.upperBound)
                content = .none
                return true
            }
        }
    }
}
