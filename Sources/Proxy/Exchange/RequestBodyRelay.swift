// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import NIOCore

/// The request's content between the client and the origin: buffered so that it can be sent again, and held back while
/// the origin is slow.
///
/// It only decides; the driver sends. A call that sends may change writability and re-enter the driver, which must not
/// find this value in the middle of a mutation (exclusivity).
struct RequestBodyRelay {
    private var replay: ReplayBuffer
    /// The next piece of the content in memory to send.
    private var nextPiece = 0
    /// The client has sent the whole request.
    private(set) var hasEnded: Bool
    private(set) var trailers: FieldLines?
    /// Whether the client sends fast enough.
    private(set) var speed = BodyPace()
    /// The request that was sent last takes content as it arrives.
    private(set) var streams = false
    /// A request is being written. Back-pressure must wait until it is complete.
    private var isTransmitting = false
    /// Content arrived while it could not be sent: the request that was sent last will never be complete.
    private var missesContent = false
    /// The content of the request that was sent last waits for the origin's invitation.
    private(set) var isWithheld = false
    /// Content from the spool is being sent. Content that arrives meanwhile comes after it.
    private(set) var isReplaying = false
    /// The response is final, and content that was not sent before will not be.
    private var discards = false
    /// Why the spool was given up.
    private(set) var spoolFailure: String?

    /// `keeps`: the content may have to be sent again. `spool` keeps content beyond the limit.
    init(hasContent: Bool, keeps: Bool, limitBytes: Int, spool: ContentSpool? = nil) {
        hasEnded = !hasContent
        replay = ReplayBuffer(keeps: keeps, limitBytes: limitBytes, spool: spool)
    }

    /// The content can no longer be sent from its start.
    var hasLostItsStart: Bool { replay.hasLostItsStart }
    var limitBytes: Int { replay.limitBytes }

    // MARK: A request goes out

    /// A request's head is about to be sent. `withContent`: the content follows, beginning with ``buffered``.
    /// `isWithheld`: but not before ``release()``. `spools`: it may have to be sent again after this.
    mutating func beginRequest(withContent: Bool, isWithheld: Bool = false, spools: Bool = true) {
        isTransmitting = true
        nextPiece = 0
        streams = withContent && !isWithheld
        self.isWithheld = withContent && isWithheld
        isReplaying = false
        missesContent = false
        replay.spools = spools
    }

    /// The withheld content is about to be sent.
    mutating func release() {
        isTransmitting = true
        nextPiece = 0
        isWithheld = false
        streams = true
    }

    /// The part of the content received so far that is in memory.
    var buffered: [ByteBuffer] { replay.pieces }

    /// The next piece of ``buffered`` to send, before any content that arrives later. Nil after the last one.
    mutating func nextBuffered() -> ByteBuffer? {
        guard nextPiece < replay.pieces.count else { return nil }
        nextPiece += 1
        return replay.pieces[nextPiece - 1]
    }

    /// Content in a spool follows ``buffered``.
    var hasSpooledContent: Bool { replay.isSpooled }

    /// The content in memory has been sent, and that in the spool is next.
    mutating func beginReplay() { isReplaying = true }

    /// The last of the content received so far is about to be sent.
    mutating func endReplay() {
        isReplaying = false
        if discards { replay.stopKeeping() } else { replay.allSent() }
        discards = false
    }

    /// The content in memory has been sent. Content may follow as it arrives, or from the spool.
    mutating func requestWritten() {
        isTransmitting = false
        if streams, !isReplaying { replay.allSent() }
    }

    /// No further part of that request can be written.
    mutating func interrupted() { isTransmitting = false }

    // MARK: Content arrives

    /// `isOpen`: the request that was sent last takes content. Returns whether the content must be sent now.
    mutating func received(_ content: ByteBuffer, isOpen: Bool) -> Bool {
        speed.received(byteCount: content.readableBytes)
        if discards, !isReplaying { return false }
        let sends = sendsContent(isOpen: isOpen)
        if streams, !sends, !isReplaying { missesContent = true }
        replay.append(content, sent: sends)
        return sends
    }

    /// As ``received(_:isOpen:)``, for the end of the content.
    mutating func ended(trailers: FieldLines?, isOpen: Bool) -> Bool {
        hasEnded = true
        self.trailers = trailers
        return sendsContent(isOpen: isOpen)
    }

    func sendsContent(isOpen: Bool) -> Bool { isOpen && streams && !missesContent && !isReplaying }

    // MARK: Back-pressure

    /// Whether the client may be paused or resumed now.
    var mayPace: Bool { !isTransmitting }

    /// The client has been paused or resumed.
    mutating func heldBack(_ isHeldBack: Bool) { speed.holdBack(isHeldBack) }

    /// Called every second. `isExpected`: the request is out, so the rest of its content is expected. Returns whether
    /// the client sends it too slowly.
    mutating func secondPassed(isExpected: Bool) -> Bool {
        speed.secondPassed(isExpected: isExpected && !hasEnded)
    }

    /// The buffer holds as much as it should while nothing is sent.
    var isFull: Bool { !discards && replay.isFull || isReplaying }

    /// Keeps content beyond the limit; nil once that is no longer kept. Nothing else may hold it for longer, because it
    /// occupies a part of the disk.
    var spool: ContentSpool? { replay.spool }

    /// The spool is slower than the client.
    var isSpoolBehind: Bool { replay.spool?.isBehind ?? false }

    // MARK: Repeats

    /// No origin may challenge the request after all. Content that has not been sent is kept until it is.
    mutating func wantNoRepeat() { replay.wantNoRepeat() }

    /// The response is final: only the content that is being sent is still needed.
    mutating func stopKeeping() {
        discards = isReplaying || !streams || missesContent
        if !isReplaying { replay.stopKeeping() }
    }

    /// The spool has failed for this reason, so the content cannot be sent again.
    mutating func giveUpRepeats(because reason: String) {
        spoolFailure = reason
        replay.giveUp()
    }

    /// Why the content can no longer be sent from its start.
    var lossReason: String {
        if let spoolFailure { return "the request body could not be stored: \(spoolFailure)" }
        return "the request body is larger than what can be kept to send it again: use --spool SIZE"
    }
}
