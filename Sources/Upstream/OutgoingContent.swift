// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1

/// How much of a request's content may still be sent.
///
/// An origin takes bytes after the content for the next request, so the author of the content could forge a request. So
/// each byte is counted before it is sent.
struct OutgoingContent {
    /// The last request was sent to its end.
    private(set) var isWhole = true
    /// The content goes out in chunks.
    private(set) var isChunked = false
    /// Bytes; for chunks, the number is not known.
    private var rest: UInt64 = 0

    /// A request's head is sent, which announces `framing`.
    mutating func begin(_ framing: BodyFraming) {
        isWhole = false
        isChunked = framing.isChunked
        rest = if case .length(let count) = framing { count } else { 0 }
    }

    /// Counts a part of the content that is about to be sent. False if it is not part of it.
    mutating func take(_ count: Int) -> Bool {
        guard !isWhole else { return false }
        if isChunked { return true }
        guard rest >= UInt64(count) else { return false }
        rest -= UInt64(count)
        return true
    }

    /// The request ends here. False if it has ended before, or if content is missing.
    mutating func end() -> Bool {
        guard !isWhole, rest == 0 else { return false }
        isWhole = true
        return true
    }
}
