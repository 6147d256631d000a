// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The content of a request, kept so that it can be sent again: up to a limit in memory, and beyond it in a
/// ``ContentSpool`` if there is one. Beyond both, only content that has not been sent is kept.
struct ReplayBuffer {
    /// The content in memory, which precedes that in ``spool``.
    private(set) var pieces: [ByteBuffer] = []
    /// Content bytes in ``pieces``.
    private(set) var heldBytes = 0
    /// The content after ``pieces``; nil if it is not kept.
    private(set) var spool: ContentSpool?
    /// Whether content beyond the limit goes to ``spool``: the last request may have to be sent again.
    var spools = true
    /// The content can no longer be sent from its start.
    private(set) var hasLostItsStart = false
    private var keeps: Bool
    let limitBytes: Int

    /// `keeps`: whether the content may have to be sent again.
    init(keeps: Bool, limitBytes: Int, spool: ContentSpool? = nil) {
        self.keeps = keeps
        self.limitBytes = limitBytes
        self.spool = spool
    }

    /// The buffer holds as much as it should. If nothing is being sent, the client must be paused.
    var isFull: Bool { heldBytes >= (keeps ? limitBytes : 64 * 1024) }

    /// Some of the content is in ``spool``.
    var isSpooled: Bool { spool.map { !$0.isEmpty } ?? false }

    /// Adds content that is being sent right now (`sent`), or will be sent later.
    mutating func append(_ piece: ByteBuffer, sent: Bool) {
        if sent && !keeps {
            hasLostItsStart = true
            return
        }
        if let spool, !spool.isEmpty || sent && spools && heldBytes >= limitBytes {
            guard spools || !sent else { return forget() }
            if !spool.append(piece), sent { forget() }
            return
        }
        pieces.append(piece)
        heldBytes += piece.readableBytes
        if sent && heldBytes > limitBytes { forgetUnlessSpooled() }
    }

    /// All content has been sent. It is dropped unless it may have to be sent again.
    mutating func allSent() {
        if !keeps && !pieces.isEmpty { return forget() }
        if heldBytes > limitBytes || isSpooled { forgetUnlessSpooled() }
    }

    /// The content will not be sent again. Content that has not been sent at all is kept until it is.
    mutating func wantNoRepeat() {
        keeps = false
    }

    /// The content is no longer needed.
    mutating func stopKeeping() {
        keeps = false
        pieces = []
        heldBytes = 0
        spool = nil
    }

    /// The content cannot be sent again, because its rest is lost.
    mutating func giveUp() { forget() }

    private mutating func forgetUnlessSpooled() {
        if !keeps || !spools || spool?.canKeepMore != true { forget() }
    }

    private mutating func forget() {
        stopKeeping()
        hasLostItsStart = true
    }
}
