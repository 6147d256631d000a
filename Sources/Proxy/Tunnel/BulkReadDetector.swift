// SPDX-License-Identifier: Apache-2.0

/// Detects a bulk transfer in one direction of a tunnel, for which it pays to read larger pieces less often.
///
/// Otherwise a fast sender is read as often as it writes, one TLS record at a time, and most of the cost is waking this
/// process and the receiver. Request and response traffic must not be delayed, so counting starts again whenever the
/// other direction carries bytes.
struct BulkReadDetector {
    /// How much one direction must carry, while the other carries nothing, before reads are delayed.
    static let leastBytes = 512 * 1024
    /// How much a delayed read must bring to justify the next delay.
    static let leastRoundBytes = 32 * 1024
    /// Slightly less than NIO reads from one channel in a turn, without TLS overhead: after that much, more is waiting.
    static let fullRoundBytes = 240 * 1024

    private var runBytes = 0
    private var roundBytes = 0
    private var hasWaited = false

    mutating func bytesRead(_ count: Int) {
        runBytes += count
        roundBytes += count
    }

    mutating func oppositeDirectionCarried() {
        runBytes = 0
        hasWaited = false
    }

    /// The direction carries a bulk transfer.
    var isBulk: Bool { runBytes >= Self.leastBytes }

    /// A round of reads has ended, because nothing more was available or because it reached `full` bytes. True if the
    /// next round should be delayed.
    mutating func roundEnded(full: Int = fullRoundBytes) -> Bool {
        defer { roundBytes = 0 }
        if hasWaited, roundBytes < Self.leastRoundBytes { runBytes = 0 }
        hasWaited = isBulk && roundBytes < full
        return hasWaited
    }
}
