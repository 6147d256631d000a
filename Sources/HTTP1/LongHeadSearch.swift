// SPDX-License-Identifier: Apache-2.0

/// Decides whether to parse a response's head again if it arrives in pieces. Each attempt begins at its start, so that
/// the work would grow with the square of its length. Beyond 8 KiB, there is one only if another line has ended.
package struct LongHeadSearch: Sendable {
    private static let shortBytes = 8 * 1024
    /// The bytes of the head that have been searched without success.
    private var searchedBytes = 0

    package init() {}

    /// Whether `bytes`, which begin with the head and have grown since the last call, may have its end now.
    package mutating func mayEnd(in bytes: RawSpan) -> Bool {
        let searched = searchedBytes
        searchedBytes = bytes.byteCount
        guard searched > Self.shortBytes, bytes.byteCount <= HeadLimits.response.headBytes else { return true }
        for position in searched..<bytes.byteCount where bytes.byte(position) == Octet.lineFeed { return true }
        return false
    }
}
