// SPDX-License-Identifier: Apache-2.0

/// What is known of the bytes that go one way through a tunnel: whether they are so many that reading them in larger pieces pays.
///
/// A fast sender is read as often as it writes, a TLS record at a time, and most of that is waking this process and the reader. It
/// costs a fraction to look less often. A dialogue must not wait for that: what counts starts anew whenever the other way
/// carries something.
struct BulkReadDetector {
    /// What has come one way, with nothing the other way, before it is waited for.
    static let leastBytes = 512 * 1024
    /// What a wait must bring for the next one to be worth it.
    static let leastRoundBytes = 32 * 1024
    /// Nearly what NIO reads before it lets others have their turn, TLS taken off: where that much came, more is there.
    static let fullRoundBytes = 240 * 1024

    private var runBytes = 0
    private var roundBytes = 0
    private var hasWaited = false

    mutating func bytesRead(_ count: Int) {
        runBytes += count
        roundBytes += count
    }

    mutating func otherWayCarried() {
        runBytes = 0
        hasWaited = false
    }

    /// It has carried so much that it is waited for.
    var isBulk: Bool { runBytes >= Self.leastBytes }

    /// Nothing more is there, or it was as much as is taken in a round: `full`. True: wait before the next round.
    mutating func roundEnded(full: Int = fullRoundBytes) -> Bool {
        defer { roundBytes = 0 }
        if hasWaited, roundBytes < Self.leastRoundBytes { runBytes = 0 }
        hasWaited = isBulk && roundBytes < full
        return hasWaited
    }
}
