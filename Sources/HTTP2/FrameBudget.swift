// SPDX-License-Identifier: Apache-2.0

/// How many frames that carry nothing a peer may send on one connection: a bucket of tokens that refills with time and
/// with useful work.
///
/// Each PING, SETTINGS, PRIORITY, RST_STREAM, empty DATA, tiny WINDOW_UPDATE and unknown frame costs a token, and so
/// does each RST_STREAM that the peer makes us send. The connection of a peer without tokens ends with
/// ENHANCE_YOUR_CALM (RFC 9113 §10.5). Content and complete exchanges return tokens: gRPC replies to each message that
/// it receives with small WINDOW_UPDATEs and with a PING, which measures the bandwidth.
package struct FrameBudget: Hashable, Sendable {
    /// The tokens of a fresh connection, and the most that it can have.
    package static let capacity = 400
    /// Tokens returned per second.
    package static let refillPerSecond = 50
    /// Octets of content, in either direction, that return one token.
    package static let contentBytesPerToken = 4096
    /// Tokens returned when everything that is queued on a stream goes out in a DATA frame: for a WINDOW_UPDATE of the
    /// stream, one of the connection, and a PING.
    package static let tokensPerPiece = 3
    /// Increments of WINDOW_UPDATE below this number of octets cost a token.
    package static let tinyWindowBytes: UInt32 = 1024

    private static let nanosecondsPerToken = 1_000_000_000 / UInt64(refillPerSecond)

    package private(set) var tokens = FrameBudget.capacity
    /// The time up to which tokens have been returned, in nanoseconds of a monotonic clock.
    private var refilledAt: UInt64
    private var unpaidContentBytes = 0

    package init(at now: UInt64) { refilledAt = now }

    /// Takes one token; false if none is left at `now`, in nanoseconds of the same clock.
    package mutating func spend(at now: UInt64) -> Bool {
        if tokens < FrameBudget.capacity { refill(at: now) } else { refilledAt = max(refilledAt, now) }
        guard tokens > 0 else { return false }
        tokens -= 1
        return true
    }

    /// Content of `byteCount` octets went through.
    package mutating func contentPassed(_ byteCount: Int) {
        unpaidContentBytes += byteCount
        guard unpaidContentBytes >= FrameBudget.contentBytesPerToken else { return }
        earn(unpaidContentBytes / FrameBudget.contentBytesPerToken)
        unpaidContentBytes %= FrameBudget.contentBytesPerToken
    }

    /// A DATA frame to the peer carries the rest of the content queued on its stream. A frame that the peer's window
    /// has cut returns nothing, or a peer that opens it octet by octet would be paid for that.
    package mutating func pieceSent() { earn(FrameBudget.tokensPerPiece) }

    /// A message was sent to its end.
    package mutating func exchangeCompleted() { earn(1) }

    private mutating func refill(at now: UInt64) {
        guard now > refilledAt else { return }
        let due = (now - refilledAt) / FrameBudget.nanosecondsPerToken
        earn(Int(min(due, UInt64(FrameBudget.capacity))))
        refilledAt += due * FrameBudget.nanosecondsPerToken
    }

    private mutating func earn(_ count: Int) { tokens = min(FrameBudget.capacity, tokens + count) }
}
