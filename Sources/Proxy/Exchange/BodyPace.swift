// SPDX-License-Identifier: Apache-2.0

/// Whether a client sends a request's content fast enough: at least 240 bytes per second, averaged over a
/// minute.
///
/// Only seconds in which the proxy waits for the client count. It does not wait while the origin is slow to read, while
/// a connection is being made, and once the response has begun: both sides may then send as they like. There is no such
/// limit for the origin's content, because event streams and long polls are slow by design, and a slow origin occupies
/// only the client that asked for it.
struct BodyPace {
    static let minimumBytesPerSecond = 240
    /// The seconds over which the rate is averaged.
    static let periodSeconds = 60

    /// Some of the content has arrived.
    var hasBegun: Bool { receivedBytes > 0 }
    /// In all.
    private(set) var receivedBytes = 0
    /// Before the present period.
    private var earlierBytes = 0
    private var waitedSeconds: UInt16 = 0
    /// Whether the client was held back since the last second.
    private var wasHeldBack = false
    /// The client must not send now, because the origin is slow or enough is buffered.
    private(set) var isHeldBack = false

    mutating func received(byteCount: Int) {
        receivedBytes &+= byteCount
    }

    mutating func holdBack(_ isHeldBack: Bool) {
        self.isHeldBack = isHeldBack
        if isHeldBack { wasHeldBack = true }
    }

    /// Called every second. `isExpected`: the rest of the content is expected now. Returns whether the client is too
    /// slow.
    mutating func secondPassed(isExpected: Bool) -> Bool {
        defer { wasHeldBack = isHeldBack }
        guard isExpected, !wasHeldBack else { return false }
        waitedSeconds += 1
        guard Int(waitedSeconds) >= Self.periodSeconds else { return false }
        defer { (earlierBytes, waitedSeconds) = (receivedBytes, 0) }
        return receivedBytes - earlierBytes < Self.minimumBytesPerSecond * Self.periodSeconds
    }
}
