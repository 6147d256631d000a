// SPDX-License-Identifier: Apache-2.0

/// How many frames that carry nothing a peer may send on one connection: buckets of tokens that refill with time and
/// with useful work. The connection of a peer without tokens ends with ENHANCE_YOUR_CALM (RFC 9113 §10.5).
///
/// There are two buckets, because the frames of the first kind cost little and those of the second may cost a request:
///
/// - *Replies*, PING and tiny WINDOW_UPDATE. gRPC sends some for every message that it receives, and many at once if
///   messages arrive together. Content pays for them.
/// - *Others*: SETTINGS, PRIORITY, RST_STREAM, empty DATA, unknown frames, and each RST_STREAM that the peer makes us
///   send. Complete exchanges and much content pay for them.
package struct FrameBudget: Hashable, Sendable {
    package enum Kind: Sendable { case reply, other }

    /// Increments of WINDOW_UPDATE below this number of octets cost a token.
    package static let tinyWindowBytes: UInt32 = 1024
    /// Tokens for replies that are returned when everything that is queued on a stream goes out in a DATA frame: for a
    /// WINDOW_UPDATE of the stream, one of the connection, and a PING. An empty message of gRPC has five octets.
    package static let repliesPerPiece = 3

    private var replies: TokenBucket
    private var others: TokenBucket

    package init(at now: UInt64) {
        replies = TokenBucket(.replies, at: now)
        others = TokenBucket(.others, at: now)
    }

    /// Takes one token; false if none is left at `now`, in nanoseconds of a monotonic clock.
    package mutating func spend(_ kind: Kind, at now: UInt64) -> Bool {
        switch kind {
        case .reply: replies.spend(at: now)
        case .other: others.spend(at: now)
        }
    }

    /// Content of `byteCount` octets went through, in either direction.
    package mutating func contentPassed(_ byteCount: Int) {
        replies.contentPassed(byteCount)
        others.contentPassed(byteCount)
    }

    /// A DATA frame to the peer carries the rest of the content queued on its stream. A frame that the peer's window
    /// has cut returns no more than its content, or a peer that opens it octet by octet would be paid for that.
    package mutating func pieceSent() { replies.earn(FrameBudget.repliesPerPiece) }

    /// A message was sent to its end.
    package mutating func messageCompleted() {
        replies.earn(1)
        others.earn(1)
    }
}

/// Tokens that return with time and with content.
package struct TokenBucket: Hashable, Sendable {
    package struct Terms: Hashable, Sendable {
        /// The tokens of a fresh bucket, and the most that it can have.
        package let capacity: Int
        package let refillPerSecond: Int
        /// Octets of content that return one token.
        package let contentBytesPerToken: Int

        /// gRPC with a thousand small messages at once sends some 2,000.
        package static let replies = Terms(capacity: 10_000, refillPerSecond: 1000, contentBytesPerToken: 4)
        package static let others = Terms(capacity: 400, refillPerSecond: 50, contentBytesPerToken: 4096)

        fileprivate var nanosecondsPerToken: UInt64 { 1_000_000_000 / UInt64(refillPerSecond) }
    }

    package let terms: Terms
    package private(set) var tokens: Int
    /// The time up to which tokens have been returned, in nanoseconds of a monotonic clock.
    private var refilledAt: UInt64
    private var unpaidContentBytes = 0

    package init(_ terms: Terms, at now: UInt64) {
        self.terms = terms
        tokens = terms.capacity
        refilledAt = now
    }

    package mutating func spend(at now: UInt64) -> Bool {
        if tokens < terms.capacity { refill(at: now) } else { refilledAt = max(refilledAt, now) }
        guard tokens > 0 else { return false }
        tokens -= 1
        return true
    }

    package mutating func contentPassed(_ byteCount: Int) {
        unpaidContentBytes += byteCount
        guard unpaidContentBytes >= terms.contentBytesPerToken else { return }
        earn(unpaidContentBytes / terms.contentBytesPerToken)
        unpaidContentBytes %= terms.contentBytesPerToken
    }

    package mutating func earn(_ count: Int) { tokens = min(terms.capacity, tokens + count) }

    private mutating func refill(at now: UInt64) {
        guard now > refilledAt else { return }
        let due = (now - refilledAt) / terms.nanosecondsPerToken
        earn(Int(min(due, UInt64(terms.capacity))))
        refilledAt += due * terms.nanosecondsPerToken
    }
}
