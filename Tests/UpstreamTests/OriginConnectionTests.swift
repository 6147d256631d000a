// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignTLS
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignUpstream

/// Records the events of a connection.
private final class Listener: OriginStreamDelegate {
    var heads: [Int] = []
    var contentEnds: [ContentEnd] = []
    var content = ""
    var ends = 0
    var flushes = 0
    var failures: [UpstreamError.Code] = []
    var onHead: (() -> Void)?
    var onContent: (() -> Void)?
    var onEnd: (() -> Void)?

    func originResponded(_ head: ResponseHead, content: ContentEnd) {
        heads.append(head.status)
        contentEnds.append(content)
        onHead?()
    }

    func originSent(_ content: ByteBuffer) {
        self.content += String(buffer: content)
        onContent?()
    }

    func originResponseEnded(trailers: FieldLines?) {
        ends += 1
        onEnd?()
    }

    func originReadCompleted() { flushes += 1 }
    func originFailed(_ error: UpstreamError) { failures.append(error.code) }
    func originWritabilityChanged(_ isWritable: Bool) {}
}

/// An origin connection without a network.
private final class Wire {
    let channel = EmbeddedChannel()
    let connection = OriginConnection(place: "a.example:80", tlsHandler: nil)
    let listener = Listener()

    init() throws {
        try channel.pipeline.syncOperations.addHandler(connection)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 80)).wait()
        connection.delegate = listener
    }

    func send(_ method: Method = .get, whole: Bool = true) {
        connection.send(head: Array("\(method.rawValue) / HTTP/1.1\r\nHost: a\r\n\r\n".utf8), method: method)
        if whole { connection.finish(trailers: nil) }
        connection.flush()
    }

    func origin(_ text: String) throws {
        try channel.writeInbound(ByteBuffer(string: text))
    }

    func originEnds() {
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }
}

@Suite struct OriginConnectionTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let response: String
        let content: String
        var method = Method.get
        var heads = [200]
        var testDescription: String { response.prefix(60).debugDescription }
    }

    static let responses: [Row] = [
        Row(response: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", content: "hello"),
        Row(response: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", content: ""),
        Row(
            response:
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nA: b\r\n\r\n",
            content: "hello"),
        Row(response: "HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", content: "", heads: [204]),
        Row(response: "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", content: "", heads: [304]),
        Row(response: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", content: "", method: .head),
        Row(
            response:
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n"
                + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            content: "ok", heads: [100, 103, 200]),
    ]

    @Test(arguments: responses) func responseMayArriveInAnyPieces(_ row: Row) throws {
        for splits in [true, false] {
            let wire = try Wire()
            wire.send(row.method)
            if splits {
                for octet in row.response.utf8 { try wire.origin(String(decoding: [octet], as: UTF8.self)) }
            } else {
                try wire.origin(row.response)
            }
            #expect(wire.listener.heads == row.heads)
            #expect(wire.listener.content == row.content)
            #expect(wire.listener.ends == 1)
            #expect(wire.listener.failures.isEmpty)
            #expect(wire.connection.isReusable)
        }
    }

    @Test func connectionServesASecondRequest() throws {
        let wire = try Wire()
        for count in 1...2 {
            wire.send()
            #expect(!wire.connection.isReusable)
            try wire.origin("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
            #expect(wire.connection.requestCount == count)
        }
        #expect(wire.listener.content == "xx")
    }

    static let repaired: [(String, HTTP1Error.Code)] = [
        ("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", .bareLineFeed),
        ("HTTP/1.1 103 x\n\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", .bareLineFeed),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n", .malformedChunk),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\n\n", .bareLineFeed),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 05\r\n\r\nhello", .invalidContentLength),
    ]

    /// The rest of a handshake may go on behind it.
    @Test(arguments: repaired) func aRepairedResponseEndsTheUseOfItsConnection(
        _ response: String, _ repair: HTTP1Error.Code
    ) throws {
        let wire = try Wire()
        for _ in 1...2 {
            wire.send()
            for octet in response.utf8 { try wire.origin(String(decoding: [octet], as: UTF8.self)) }
            #expect(wire.connection.repair == repair)
            #expect(!wire.connection.isReusable)
            wire.connection.carriesHandshake = true
            #expect(wire.connection.isReusable)
            wire.connection.carriesHandshake = false
        }
        #expect(wire.listener.content == "hellohello" && wire.listener.ends == 2)
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 0\nConnection: close\n\n",
    ])
    func noHandshakeGoesOnBehindAResponseThatEndsTheConnection(response: String) throws {
        let wire = try Wire()
        wire.send()
        try wire.origin(response)
        #expect(wire.listener.ends == 1)
        wire.connection.carriesHandshake = true
        #expect(!wire.connection.isReusable)
    }

    @Test func unsolicitedBytesCloseTheConnection() throws {
        let wire = try Wire()
        try wire.origin("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        #expect(wire.listener.failures == [.malformedResponse])
        #expect(wire.listener.heads.isEmpty)
        #expect(!wire.channel.isActive)
    }

    @Test func bytesAfterAResponseMakeTheConnectionUnusable() throws {
        let wire = try Wire()
        wire.send()
        try wire.origin("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
        #expect(wire.listener.heads == [200])
        #expect(wire.listener.ends == 1)
        #expect(!wire.connection.isReusable)
    }

    @Test func responseBeforeTheEndOfTheRequestMakesTheConnectionUnusable() throws {
        let wire = try Wire()
        wire.send(.put, whole: false)
        try wire.origin("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n")
        #expect(wire.listener.ends == 1)
        #expect(!wire.connection.requestIsWhole)
        #expect(!wire.connection.isReusable)
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    ]) func connectionThatTheOriginWillCloseIsNotReused(_ response: String) throws {
        let wire = try Wire()
        wire.send()
        try wire.origin(response)
        #expect(wire.listener.ends == 1)
        #expect(!wire.connection.isReusable)
    }

    static let cuts: [(String, UpstreamError.Code)] = [
        ("", .closedBeforeResponse),
        ("HTTP/1.1 20", .closedInResponse),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", .closedInResponse),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", .closedInResponse),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", .closedInResponse),
    ]

    @Test(arguments: cuts) func truncatedResponseFails(_ text: String, _ code: UpstreamError.Code) throws {
        let wire = try Wire()
        wire.send()
        if !text.isEmpty { try wire.origin(text) }
        wire.originEnds()
        #expect(wire.listener.failures == [code])
        #expect(wire.listener.ends == 0)
        #expect(!wire.channel.isActive)
    }

    @Test func responseWithoutALengthEndsWithTheConnection() throws {
        let wire = try Wire()
        wire.send()
        try wire.origin("HTTP/1.1 200 OK\r\n\r\nhello")
        #expect(wire.listener.ends == 0)
        wire.originEnds()
        #expect(wire.listener.contentEnds == [.connectionClose])
        #expect(wire.listener.content == "hello")
        #expect(wire.listener.ends == 1)
        #expect(wire.listener.failures.isEmpty)
        #expect(!wire.connection.isReusable)
    }

    @Test func resetDoesNotEndAResponseWithoutALength() throws {
        let wire = try Wire()
        wire.send()
        try wire.origin("HTTP/1.1 200 OK\r\n\r\nhello")
        wire.channel.pipeline.fireErrorCaught(IOError(errnoCode: 104, reason: "read"))
        #expect(wire.listener.ends == 0)
        #expect(wire.listener.failures == [.closedInResponse])
    }

    @Test func lostConnectionDoesNotEndAResponseWithoutALength() throws {
        let wire = try Wire()
        wire.send()
        try wire.origin("HTTP/1.1 200 OK\r\n\r\nhello")
        wire.channel.pipeline.fireChannelInactive()
        #expect(wire.listener.ends == 0)
        #expect(wire.listener.failures == [.closedInResponse])
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nA b: c\r\n\r\n",
        "hello\r\n",
    ]) func malformedResponseClosesTheConnection(_ text: String) throws {
        let wire = try Wire()
        wire.send()
        try wire.origin(text)
        #expect(wire.listener.failures == [.malformedResponse])
        #expect(wire.listener.ends == 0)
        #expect(!wire.channel.isActive)
    }

    @Test func tunnelGetsTheBytesAfterThe101() throws {
        let wire = try Wire()
        wire.send()
        try wire.origin("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nraw")
        #expect(wire.listener.heads == [101])
        #expect(wire.connection.upgrade()?.received == ByteBuffer(string: "raw"))
        try wire.origin("more")
        #expect(try wire.channel.readInbound(as: ByteBuffer.self) == ByteBuffer(string: "more"))
    }

    @Test func heldResponseIsDeliveredOnResumingAndThenFlushed() throws {
        let wire = try Wire()
        wire.send()
        wire.listener.onHead = { wire.connection.pauseReading() }
        try wire.origin("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")
        #expect(wire.listener.content == "")
        wire.listener.flushes = 0
        wire.connection.resumeReading()
        #expect(wire.listener.content == "hello")
        #expect(wire.listener.flushes == 1)
    }

    @Test func endDuringAPauseIsReportedAfterTheHeldResponse() throws {
        let wire = try Wire()
        wire.send()
        wire.listener.onHead = { wire.connection.pauseReading() }
        try wire.origin("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        wire.originEnds()
        #expect(wire.listener.failures.isEmpty)
        wire.connection.resumeReading()
        #expect(wire.listener.content == "hello")
        #expect(wire.listener.ends == 1)
        #expect(wire.listener.failures.isEmpty)
    }

    @Test func pausingAndResumingDuringDeliveryLosesNothing() throws {
        let wire = try Wire()
        wire.send()
        wire.listener.onHead = { wire.connection.pauseReading() }
        wire.listener.onContent = {
            wire.connection.pauseReading()
            wire.connection.resumeReading()
        }
        try wire.origin("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n")
        wire.originEnds()
        wire.connection.resumeReading()
        #expect(wire.listener.content == "hello")
        #expect(wire.listener.ends == 1)
        #expect(wire.listener.failures.isEmpty)
    }

    @Test func closingDuringDeliveryStopsIt() throws {
        let wire = try Wire()
        wire.send()
        wire.listener.onContent = { wire.connection.close() }
        try wire.origin("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n")
        #expect(wire.listener.content == "a")
        #expect(wire.listener.ends == 0)
        #expect(wire.listener.failures.isEmpty)
    }

    @Test func poolForgetsAConnectionThatTheOriginCloses() throws {
        let wire = try Wire()
        let pool = UpstreamPool()
        let key = UpstreamKey(
            origin: .init(scheme: .http, host: "a.example", port: 80), trust: .verified, credential: nil,
            principal: nil,
            settings: 1)
        pool.slot(for: key).giveBack(wire.connection, now: 0)
        wire.originEnds()
        #expect(pool.slot(for: key).lease(now: 0) == nil)
    }

    @Test func poolClosesConnectionsWithOtherSettings() throws {
        let (old, new) = (try Wire(), try Wire())
        let pool = UpstreamPool()
        func key(_ settings: UInt64) -> UpstreamKey {
            UpstreamKey(
                origin: .init(scheme: .http, host: "a.example", port: 80),
                trust: .accepted(leaf: [1], answering: true), credential: nil, principal: nil, settings: settings)
        }
        pool.slot(for: key(1)).giveBack(old.connection, now: 0)
        pool.slot(for: key(2)).giveBack(new.connection, now: 0)
        pool.keepOnly(settings: 2)
        #expect(!old.channel.isActive && new.channel.isActive)
        #expect(pool.slot(for: key(1)).lease(now: 0) == nil)
        #expect(pool.slot(for: key(2)).lease(now: 0) === new.connection)
    }

    @Test func poolLeasesAConnectionAgain() throws {
        let wire = try Wire()
        let pool = UpstreamPool()
        let key = UpstreamKey(
            origin: .init(scheme: .http, host: "a.example", port: 80), trust: .verified, credential: nil,
            principal: nil,
            settings: 1)
        pool.slot(for: key).giveBack(wire.connection, now: 0)
        #expect(pool.slot(for: key).lease(now: 0) === wire.connection)
        wire.send()
        pool.slot(for: key).giveBack(wire.connection, now: 0)
        #expect(pool.slot(for: key).lease(now: 0) == nil)
        #expect(!wire.channel.isActive)
    }

    @Test func retainedSlotLeasesConnectionsOfItsSuccessor() throws {
        let (first, second) = (try Wire(), try Wire())
        let pool = UpstreamPool()
        let key = UpstreamKey(
            origin: .init(scheme: .http, host: "a.example", port: 80), trust: .verified, credential: nil,
            principal: nil, settings: 1)
        let kept = pool.slot(for: key)
        kept.giveBack(first.connection, now: 0)
        // The slot is empty, so the pool removes it and later makes another one.
        #expect(kept.lease(now: 0) === first.connection)
        pool.timePassed(now: 0)
        pool.slot(for: key).giveBack(second.connection, now: 0)
        kept.giveBack(first.connection, now: 0)
        #expect(pool.slot(for: key).lease(now: 0) === first.connection)
        // The pool closes connections that were given back to the retained slot as well.
        pool.slot(for: key).giveBack(first.connection, now: 0)
        pool.timePassed(now: 100)
        #expect(!first.connection.isReusable && !second.connection.isReusable)
    }

    @Test func connectionGivenBackAfterTheShutdownIsClosed() throws {
        let wire = try Wire()
        let pool = UpstreamPool()
        let slot = pool.slot(
            for: UpstreamKey(
                origin: .init(scheme: .http, host: "a.example", port: 80), trust: .verified, credential: nil,
                principal: nil, settings: 1))
        pool.shutDown()
        slot.giveBack(wire.connection, now: 0)
        #expect(!wire.connection.isReusable)
    }

    /// The origin asked for a certificate and got none, for a reason of one client.
    @Test func connectionThatLacksItsIdentityIsNotKept() throws {
        let (lacking, idle) = (try Wire(), try Wire())
        let pool = UpstreamPool()
        let slot = pool.slot(
            for: UpstreamKey(
                origin: .init(scheme: .http, host: "a.example", port: 80), trust: .verified, credential: nil,
                principal: nil, settings: 1))
        lacking.connection.lacksIdentity = true
        slot.giveBack(lacking.connection, now: 0)
        #expect(!lacking.connection.isReusable)
        slot.giveBack(idle.connection, now: 0)
        // Asked while it is idle.
        let request = CertificateRequest(acceptableIssuers: [], signatureAlgorithms: [0x0403], isPostHandshake: true)
        idle.channel.pipeline.fireUserInboundEventTriggered(TLSEvent.certificateRequested(request))
        #expect(slot.lease(now: 0) == nil)
        #expect(!idle.connection.isReusable)
    }
}
