// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// What has come of a request's body: kept so that it can be sent again, up to a bound; past it, only what was not sent yet.
struct ReplayBuffer {
    private(set) var pieces: [ByteBuffer] = []
    /// Content bytes in ``pieces``.
    private(set) var heldBytes = 0
    /// The body can no longer be sent from its start.
    private(set) var hasLostItsStart = false
    private var keeps: Bool
    let limitBytes: Int

    /// `keeps`: whether anything may want the body again.
    init(keeps: Bool, limitBytes: Int) {
        self.keeps = keeps
        self.limitBytes = limitBytes
    }

    /// The buffer holds as much as it should: pause the client if nothing is being sent.
    var isFull: Bool { heldBytes >= (keeps ? limitBytes : 64 * 1024) }

    /// Takes a piece that is being sent right now (`sent`), or is to be sent later.
    mutating func append(_ piece: ByteBuffer, sent: Bool) {
        if sent && !keeps {
            hasLostItsStart = true
            return
        }
        pieces.append(piece)
        heldBytes += piece.readableBytes
        if sent && heldBytes > limitBytes { forget() }
    }

    /// Everything held has been sent: without a reason to keep it, it goes.
    mutating func allSent() {
        if !keeps && !pieces.isEmpty || heldBytes > limitBytes { forget() }
    }

    /// Nothing may want the body again after all; what has not been sent is kept until it is.
    mutating func wantNoRepeat() {
        keeps = false
    }

    /// Nothing will want the body again.
    mutating func stopKeeping() {
        keeps = false
        pieces = []
        heldBytes = 0
    }

    private mutating func forget() {
        pieces = []
        heldBytes = 0
        keeps = false
        hasLostItsStart = true
    }
}
