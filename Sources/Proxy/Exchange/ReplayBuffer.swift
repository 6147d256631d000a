// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The content of a request, kept up to a limit so that it can be sent again. Beyond the limit only content that has
/// not been sent is kept.
struct ReplayBuffer {
    private(set) var pieces: [ByteBuffer] = []
    /// Content bytes in ``pieces``.
    private(set) var heldBytes = 0
    /// The content can no longer be sent from its start.
    private(set) var hasLostItsStart = false
    private var keeps: Bool
    let limitBytes: Int

    /// `keeps`: whether the content may have to be sent again.
    init(keeps: Bool, limitBytes: Int) {
        self.keeps = keeps
        self.limitBytes = limitBytes
    }

    /// The buffer holds as much as it should. If nothing is being sent, the client must be paused.
    var isFull: Bool { heldBytes >= (keeps ? limitBytes : 64 * 1024) }

    /// Adds content that is being sent right now (`sent`), or will be sent later.
    mutating func append(_ piece: ByteBuffer, sent: Bool) {
        if sent && !keeps {
            hasLostItsStart = true
            return
        }
        pieces.append(piece)
        heldBytes += piece.readableBytes
        if sent && heldBytes > limitBytes { forget() }
    }

    /// All buffered content has been sent. It is dropped unless it may have to be sent again.
    mutating func allSent() {
        if !keeps && !pieces.isEmpty || heldBytes > limitBytes { forget() }
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
    }

    private mutating func forget() {
        pieces = []
        heldBytes = 0
        keeps = false
        hasLostItsStart = true
    }
}
