// SPDX-License-Identifier: Apache-2.0

import CMeter
import CountersignCertificates
import CountersignCryptography
import NIOCore
import NIOEmbedded
import CountersignChannelTLS
import CountersignTLS

/// A TLS client and a TLS origin with the proxy between them. Only the proxy's allocations are counted.
final class DataPathPeers {
    private let path: DataPath
    private let client: EmbeddedChannel
    private let origin: EmbeddedChannel
    private let request: ByteBuffer
    private let response: ByteBuffer

    /// The origin answers each `request` with `response`. `options` are those of its line in the list. Performs both
    /// handshakes.
    init(request: [UInt8], response: [UInt8], options: String = "answer=basic") throws {
        self.request = ByteBuffer(bytes: request)
        self.response = ByteBuffer(bytes: response)
        let authority = try InterceptionAuthority.create(permitting: [DataPath.host], at: DataPath.now)
        let key = try PrivateKey.generateP256()
        let chain = try authority.mintLeaf(host: DataPath.host, key: key, at: DataPath.now)
        // The proxy presents this leaf to the client, and the origin presents it to the proxy.
        let leaf = try TLSServerContext(chain: chain, key: key, host: DataPath.host)
        let anchors = try TrustAnchors(system: false, additional: [authority.root])
        let trusting = try TLSClientContext(verifier: ChainVerifier(anchors: anchors)) { DataPath.now }

        path = try DataPath(sites: "https://\(DataPath.host) \(options)\n", originTLS: trusting)
        let loop = path.client.embeddedEventLoop
        origin = try EmbeddedChannel.connected(on: loop)
        try origin.pipeline.syncOperations.addHandler(TLSHandler(server: leaf))
        try Self.settle(path.origin, origin)
        guard path.originConnection.tls?.serverTrust?.isTrusted == true else {
            throw SetUpFailure("the origin is not trusted")
        }
        path.makeOriginIdle()

        try path.intercept(with: leaf)
        client = try EmbeddedChannel.connected(on: loop)
        try client.pipeline.syncOperations.addHandler(
            TLSHandler(client: trusting, host: DataPath.host, alpn: ["http/1.1"], session: nil))
        try Self.settle(client, path.client)
        guard path.isIntercepted else {
            throw SetUpFailure("the client's handshake is not complete")
        }
    }

    /// Carries one request to the origin and its response to the client.
    func exchange() throws {
        let asked = try uncounted {
            client.pipeline.syncOperations.writeAndFlush(NIOAny(request), promise: nil)
            return try Self.take(client)
        }
        path.client.receive(asked)
        let passed = try Self.take(path.origin)
        let answered = try uncounted {
            origin.receive(passed)
            guard try Self.plaintextBytes(origin) > 0 else { throw SetUpFailure("the origin receives nothing") }
            origin.pipeline.syncOperations.writeAndFlush(NIOAny(response), promise: nil)
            return try Self.take(origin)
        }
        path.origin.receive(answered)
        let delivered = try Self.take(path.client)
        try uncounted {
            client.receive(delivered)
            guard try Self.plaintextBytes(client) > 1024 else { throw SetUpFailure("the client receives nothing") }
        }
    }

    /// The origin challenges a request with `head`, which has no content, and accepts the proxy's answer. The next
    /// request then carries the answer at once.
    func learn(_ head: [UInt8]) throws {
        func send(_ bytes: ByteBuffer) throws -> (requestBytes: Int, client: ByteBuffer) {
            origin.pipeline.syncOperations.writeAndFlush(NIOAny(bytes), promise: nil)
            path.origin.receive(try Self.take(origin))
            origin.receive(try Self.take(path.origin))
            return (try Self.plaintextBytes(origin), try Self.take(path.client))
        }
        client.pipeline.syncOperations.writeAndFlush(NIOAny(request), promise: nil)
        path.client.receive(try Self.take(client))
        origin.receive(try Self.take(path.origin))
        let unasked = try Self.plaintextBytes(origin)
        let answer = try send(ByteBuffer(bytes: head))
        let delivered = try send(response).client
        client.receive(delivered)
        guard unasked > 0, answer.requestBytes > unasked, try Self.plaintextBytes(client) > 1024 else {
            throw SetUpFailure("the challenge is not answered")
        }
        client.pipeline.syncOperations.writeAndFlush(NIOAny(request), promise: nil)
        path.client.receive(try Self.take(client))
        origin.receive(try Self.take(path.origin))
        guard try Self.plaintextBytes(origin) == answer.requestBytes else {
            throw SetUpFailure("the accepted credential is not sent")
        }
        client.receive(try send(response).client)
        _ = try Self.plaintextBytes(client)
    }

    private func uncounted<Value>(_ body: () throws -> Value) rethrows -> Value {
        meter_pause()
        defer { meter_resume() }
        return try body()
    }

    /// Carries bytes between the two until neither sends any.
    private static func settle(_ one: EmbeddedChannel, _ other: EmbeddedChannel) throws {
        while true {
            let (there, back) = (try take(one), try take(other))
            if there.readableBytes == 0, back.readableBytes == 0 { return }
            if there.readableBytes > 0 { other.receive(there) }
            if back.readableBytes > 0 { one.receive(back) }
        }
    }

    /// The bytes flushed to the network. They are copied only if there was more than one write.
    private static func take(_ channel: EmbeddedChannel) throws -> ByteBuffer {
        guard var all = try channel.readOutbound(as: ByteBuffer.self) else { return ByteBuffer() }
        while var more = try channel.readOutbound(as: ByteBuffer.self) { all.writeBuffer(&more) }
        return all
    }

    private static func plaintextBytes(_ channel: EmbeddedChannel) throws -> Int {
        var count = 0
        while let piece = try channel.readInbound(as: ByteBuffer.self) { count += piece.readableBytes }
        return count
    }
}
