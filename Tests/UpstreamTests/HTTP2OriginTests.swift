// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignHTTP1
import CountersignHTTP2
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignUpstream

/// Records the events of one lease.
private final class Holder: OriginStreamDelegate {
    private(set) var events: [String] = []
    private(set) var byteCount = 0
    /// Called with each event, after it is recorded.
    var then: (String) -> Void = { _ in }

    private func note(_ event: String) {
        events.append(event)
        then(event)
    }

    func originResponded(_ head: consuming ResponseHead, content: ContentEnd) { note("\(head.status)") }
    func originSent(_ content: ByteBuffer) { byteCount += content.readableBytes }
    func originResponseEnded(trailers: FieldLines?) { note("end") }
    func originReadCompleted() {}
    func originFailed(_ error: UpstreamError) { note("\(error.code)") }
    func originWritabilityChanged(_ isWritable: Bool) {}
}

/// An HTTP/2 connection to an origin, in memory. The origin's end is a session of our own.
private final class Stage: HTTP2SessionDelegate {
    let channel = EmbeddedChannel()
    let connection = HTTP2OriginConnection(place: "a.example:443")
    let pool = UpstreamPool()
    let slot: UpstreamPool.Slot
    /// The requests that the origin has received.
    private(set) var requests: [HTTP2Stream] = []
    private(set) var ends: [String] = []
    private var origin: HTTP2Session?
    private var output = ByteBuffer()
    private var queued: [Int32: ByteBuffer] = [:]

    static let site = Origin(scheme: .https, host: "a.example", port: 443)

    init(maximumStreams: UInt32 = 100, isShared: Bool = true) throws {
        slot = pool.slot(
            for: UpstreamKey(origin: Self.site, trust: .verified, credential: nil, principal: 1, settings: 0))
        try channel.pipeline.syncOperations.addHandler(connection)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        var settings = HTTP2Settings.server
        settings.maximumStreams = maximumStreams
        origin = HTTP2Session(.server, settings: settings, delegate: self, at: 0)
        connection.write()
        try exchange()
        if isShared { slot.share(connection) }
    }

    /// A lease with a holder.
    func lease() throws -> (HTTP2OriginStream, Holder) {
        let lease = try #require(slot.lease(now: 0) as? HTTP2OriginStream)
        let holder = Holder()
        lease.delegate = holder
        return (lease, holder)
    }

    func send(_ lease: HTTP2OriginStream, _ method: String = "GET", length: Int? = nil) throws {
        let field = length.map { "Content-Length: \($0)\r\n" } ?? ""
        let text = "\(method) /x HTTP/1.1\r\nHost: a.example\r\n\(field)\r\n"
        let buffer = ByteBuffer(string: text)
        let head = try #require(try RequestHead.parse(buffer.readableBytesSpan)).head
        lease.send(
            head,
            RequestChanges(
                target: head.targetBytes, authority: "a.example", withholdsContent: false, authorization: nil,
                via: ViaField("1.1 test"), maxForwards: nil))
        if length == nil { lease.finish(trailers: nil) }
        lease.flush()
        try exchange()
    }

    func answer(_ stream: HTTP2Stream, _ status: Int = 200, _ text: String = "") throws {
        stream.send(status: status, fields: [], contentLength: text.utf8.count, endsStream: text.isEmpty)
        if !text.isEmpty {
            queued[stream.id, default: ByteBuffer()].writeString(text)
            stream.queueContent(text.utf8.count)
            stream.finish()
        }
        try exchange()
    }

    func refuseNewStreams() throws {
        origin?.refuseNewStreams()
        try exchange()
    }

    func fail(_ code: HTTP2ErrorCode) throws {
        origin?.fail(code)
        try exchange()
    }

    /// Transfers octets until both ends wait.
    func exchange() throws {
        guard let origin else { return }
        var isMore = true
        while isMore {
            isMore = false
            channel.embeddedEventLoop.run()
            while origin.drain() {}
            if output.readableBytes > 0 {
                let sent = output
                output = ByteBuffer()
                isMore = true
                if channel.isActive { try channel.writeInbound(sent) }
            }
            while let piece = try channel.readOutbound(as: ByteBuffer.self) {
                piece.withUnsafeReadableBytes { origin.receive($0, at: 0) }
                isMore = true
            }
        }
    }

    // MARK: The origin

    func write(_ octets: UnsafeRawBufferPointer) { output.writeBytes(octets) }

    func writeContent(of stream: HTTP2Stream, byteCount: Int) {
        guard var waiting = queued[stream.id], let part = waiting.readSlice(length: byteCount) else { return }
        output.writeImmutableBuffer(part)
        queued[stream.id] = waiting
    }

    func becameWritable(_ stream: HTTP2Stream) {}
    func received(_ request: consuming RequestHead, on stream: HTTP2Stream) { requests.append(stream) }
    func received(_ content: UnsafeRawBufferPointer, on stream: HTTP2Stream) { stream.consume(content.count) }
    func receivedEnd(trailers: FieldLines?, on stream: HTTP2Stream) {}
    func ended(_ stream: HTTP2Stream, _ end: HTTP2StreamEnd) { ends.append("\(end)") }
}

@Suite struct HTTP2OriginTests {
    @Test func manyLeasesShareTheConnection() throws {
        let stage = try Stage()
        let leases = try (0..<10).map { _ in try stage.lease() }
        for (lease, _) in leases { try stage.send(lease) }
        #expect(stage.requests.map(\.id) == [1, 3, 5, 7, 9, 11, 13, 15, 17, 19])
        for stream in stage.requests.reversed() { try stage.answer(stream, 200, "content") }
        for (lease, holder) in leases {
            #expect(holder.events == ["200", "end"] && holder.byteCount == 7)
            stage.slot.giveBack(lease, now: 0)
        }
        #expect(stage.channel.isActive && stage.connection.isReusable)
    }

    /// The origin asked for a certificate in the handshake and got none, for a reason of one client.
    @Test func aConnectionThatLacksItsIdentityIsNotShared() throws {
        let stage = try Stage(isShared: false)
        let lease = try #require(stage.connection.newLease())
        lease.lacksIdentity = true
        stage.slot.giveBack(lease, now: 0)
        #expect(stage.slot.lease(now: 0) == nil && !stage.connection.isReusable)
    }

    /// A lease carries the rounds of its exchange one after the other.
    @Test func aLeaseCarriesFurtherRequests() throws {
        let stage = try Stage()
        let (lease, holder) = try stage.lease()
        for number in 1...3 {
            #expect(lease.isReusable)
            try stage.send(lease)
            #expect(!lease.isReusable && lease.requestCount == number)
            try stage.answer(stage.requests[number - 1], 401)
        }
        #expect(holder.events == ["401", "end", "401", "end", "401", "end"])
    }

    @Test func theOriginsLimitIsShared() throws {
        let stage = try Stage(maximumStreams: 2)
        let (first, _) = try stage.lease()
        let (second, _) = try stage.lease()
        // Neither has sent anything, but both may.
        #expect(stage.slot.lease(now: 0) == nil)
        try stage.send(first)
        try stage.send(second)
        #expect(stage.requests.count == 2 && stage.slot.lease(now: 0) == nil)
        try stage.answer(stage.requests[0])
        #expect(stage.slot.lease(now: 0) == nil)
        stage.slot.giveBack(first, now: 0)
        #expect(stage.slot.lease(now: 0) != nil)
    }

    /// What the holder does not take waits, and then comes in order.
    @Test func aPausedLeaseGetsNothing() throws {
        let stage = try Stage()
        let (lease, holder) = try stage.lease()
        holder.then = { if $0 == "200" { lease.pauseReading() } }
        try stage.send(lease)
        try stage.answer(stage.requests[0], 200, String(repeating: "x", count: 1_000_000))
        #expect(holder.events == ["200"] && holder.byteCount == 0)
        let (other, otherHolder) = try stage.lease()
        try stage.send(other)
        try stage.answer(stage.requests[1], 200, "content")
        #expect(otherHolder.events == ["200", "end"])
        lease.resumeReading()
        try stage.exchange()
        #expect(holder.events == ["200", "end"] && holder.byteCount == 1_000_000)
    }

    @Test func anAbandonedRequestIsReset() throws {
        let stage = try Stage()
        let (lease, holder) = try stage.lease()
        try stage.send(lease, "POST", length: 100)
        lease.send(ByteBuffer(string: "some"))
        lease.close()
        try stage.exchange()
        #expect(stage.ends == ["resetByPeer(CANCEL)"] && holder.events.isEmpty)
        #expect(stage.channel.isActive && stage.connection.link.queuedBytes == 0)
    }

    @Test func contentBeyondItsLengthIsOurOwnFault() throws {
        let stage = try Stage()
        let (lease, holder) = try stage.lease()
        try stage.send(lease, "POST", length: 3)
        lease.send(ByteBuffer(string: "four"))
        try stage.exchange()
        #expect(holder.events == ["ownFault"] && stage.ends == ["resetByPeer(INTERNAL_ERROR)"])
    }

    @Test(arguments: [
        (HTTP2ErrorCode.refusedStream, "notProcessed"), (.http11Required, "needsHTTP1"),
        (.internalError, "closedBeforeResponse"),
    ])
    func theReasonForAResetDecidesWhetherTheRequestMayBeRepeated(code: HTTP2ErrorCode, failure: String) throws {
        let stage = try Stage()
        let (lease, holder) = try stage.lease()
        try stage.send(lease)
        stage.requests[0].reset(code)
        try stage.exchange()
        #expect(holder.events == [failure])
        #expect(stage.connection.isReusable)
    }

    /// GOAWAY lets the requests in progress end and takes no further one.
    @Test func aConnectionThatGoesAwayLeavesThePool() throws {
        let stage = try Stage()
        let (lease, holder) = try stage.lease()
        let (late, lateHolder) = try stage.lease()
        try stage.send(lease)
        try stage.refuseNewStreams()
        #expect(stage.slot.lease(now: 0) == nil && stage.slot.isEmpty)
        try stage.send(late)
        #expect(lateHolder.events == ["notProcessed"])
        try stage.answer(stage.requests[0], 200, "content")
        #expect(holder.events == ["200", "end"])
        stage.slot.giveBack(lease, now: 0)
        #expect(!stage.channel.isActive)
    }

    /// RFC 9113 §9.2.2: the origin may find TLS too weak for HTTP/2.
    @Test func anOriginMayWantHTTP1ForTheWholeConnection() throws {
        let stage = try Stage()
        let (lease, holder) = try stage.lease()
        try stage.send(lease)
        try stage.fail(.inadequateSecurity)
        try stage.channel.close().wait()
        #expect(holder.events == ["needsHTTP1"])
    }

    @Test func aLostConnectionFailsItsRequests() throws {
        let stage = try Stage()
        let (lease, holder) = try stage.lease()
        let (other, otherHolder) = try stage.lease()
        try stage.send(lease)
        try stage.send(other)
        stage.requests[1].send(status: 200, fields: [], contentLength: 100, endsStream: false)
        try stage.exchange()
        try stage.channel.close().wait()
        #expect(holder.events == ["closedBeforeResponse"])
        #expect(otherHolder.events == ["200", "closedInResponse"])
        #expect(stage.slot.isEmpty)
    }

    /// Once it acts for one client, the pool does not lend it to others.
    @Test func anAuthenticatedConnectionLeavesThePool() throws {
        let stage = try Stage()
        let (lease, _) = try stage.lease()
        try stage.send(lease)
        lease.isAuthenticated = true
        #expect(stage.slot.lease(now: 0) == nil)
        try stage.answer(stage.requests[0])
        let kept = try #require(lease.keep())
        #expect(kept === stage.connection && stage.channel.isActive)
        let again = try #require(kept.lease())
        #expect(again.stays && again.lease.isAuthenticated)
        again.lease.close()
        #expect(stage.channel.isActive)
        kept.close()
        #expect(!stage.channel.isActive)
    }

    @Test func anIdleConnectionIsClosedInTime() throws {
        let stage = try Stage()
        let (lease, _) = try stage.lease()
        try stage.send(lease)
        stage.pool.timePassed(now: 1000)
        #expect(stage.channel.isActive)
        try stage.answer(stage.requests[0])
        stage.slot.giveBack(lease, now: 1000)
        stage.pool.timePassed(now: 1055)
        #expect(stage.channel.isActive)
        stage.pool.timePassed(now: 1056)
        #expect(!stage.channel.isActive && stage.slot.isEmpty)
    }

    /// The settings have changed: requests in progress are completed, others get another connection.
    @Test func aConnectionWithOldSettingsEndsAfterItsRequests() throws {
        let stage = try Stage()
        let (lease, holder) = try stage.lease()
        try stage.send(lease)
        stage.pool.keepOnly(settings: 1)
        #expect(stage.slot.lease(now: 0) == nil && stage.channel.isActive)
        try stage.answer(stage.requests[0])
        #expect(holder.events == ["200", "end"])
        lease.close()
        #expect(!stage.channel.isActive)
    }

    /// While one exchange opens a connection that all can use, the others wait for it.
    @Test func onlyOneExchangeOpensAConnection() throws {
        let stage = try Stage()
        stage.connection.close()
        #expect(stage.slot.speaksHTTP2)
        var retries = 0
        #expect(stage.slot.mayOpen { retries += 1 })
        for _ in 1...3 { #expect(!stage.slot.mayOpen { retries += 1 }) }
        stage.slot.hasOpened(isHTTP2: nil)
        #expect(retries == 3 && stage.slot.mayOpen { retries += 1 })
        stage.slot.hasOpened(isHTTP2: false)
        #expect(stage.slot.mayOpen { retries += 1 } && stage.slot.mayOpen { retries += 1 })
    }

    // MARK: Liveness

    private func pass15Seconds(on stage: Stage) {
        stage.channel.embeddedEventLoop.advanceTime(by: .seconds(HTTP2Liveness.tickSeconds))
    }

    @Test func originThatAnswersNoPingIsGivenUp() throws {
        let stage = try Stage()
        let (lease, holder) = try stage.lease()
        try stage.send(lease)
        for _ in 0..<3 { pass15Seconds(on: stage) }
        #expect(holder.events == ["closedBeforeResponse"])
        #expect(!stage.connection.isReusable)
    }

    @Test func originThatAnswersPingMayTakeItsTime() throws {
        let stage = try Stage()
        let (lease, holder) = try stage.lease()
        try stage.send(lease)
        for _ in 0..<30 {
            pass15Seconds(on: stage)
            try stage.exchange()
        }
        #expect(holder.events.isEmpty)
        try stage.answer(stage.requests[0])
        #expect(holder.events == ["200", "end"])
    }
}
