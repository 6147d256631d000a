// SPDX-License-Identifier: Apache-2.0

/// The largest head and chunk framing that are accepted. Each limit is inclusive.
package struct HeadLimits: Sendable {
    /// The request-line or status-line, without its CRLF. A longer request-line is answered with 414.
    package let requestLineBytes: Int
    /// The whole head, including the start-line and the final empty line. A larger request is answered with 431.
    package let headBytes: Int
    /// Field lines in a head, and in a trailer section. More are answered with 431.
    package let fieldCount: Int
    /// The trailer section of a chunked body, without its final empty line.
    package let trailerBytes: Int
    /// The chunk extensions, including their semicolons: of a client's whole message, of each chunk of an origin's.
    package let chunkExtensionBytes: Int

    package static let standard = HeadLimits()
    /// Of responses: an origin may set many cookies, and a high limit reserves no memory. Its chunk extensions are not
    /// kept at all.
    package static let response = HeadLimits(
        headBytes: 256 * 1024, fieldCount: 1_000, chunkExtensionBytes: 16 * 1024)

    package init(
        requestLineBytes: Int = 16 * 1024, headBytes: Int = 64 * 1024, fieldCount: Int = 128,
        trailerBytes: Int = 8 * 1024, chunkExtensionBytes: Int = 256
    ) {
        precondition(headBytes <= 1 << 24 && trailerBytes <= 1 << 24, "offsets in a head are 32 bits")
        self.requestLineBytes = requestLineBytes
        self.headBytes = headBytes
        self.fieldCount = fieldCount
        self.trailerBytes = trailerBytes
        self.chunkExtensionBytes = chunkExtensionBytes
    }

    /// The same limits for a head that was repaired: it may be longer than it was, and have a line of ours.
    func permitting(headBytes bytes: Int) -> HeadLimits {
        HeadLimits(
            requestLineBytes: requestLineBytes, headBytes: Swift.max(bytes, headBytes), fieldCount: fieldCount + 1,
            trailerBytes: trailerBytes, chunkExtensionBytes: chunkExtensionBytes)
    }
}
