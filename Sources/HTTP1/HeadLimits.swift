// SPDX-License-Identifier: Apache-2.0

/// The largest head and chunk framing that are accepted. Each limit is inclusive.
package struct HeadLimits: Sendable {
    /// The request-line or status-line, without its CRLF. A longer request-line is answered with 414.
    package let requestLineBytes: Int
    /// The whole head, including the start-line and the final empty line. A larger one is answered with 431.
    package let headBytes: Int
    /// Field lines in a head, and in a trailer section. More are answered with 431.
    package let fieldCount: Int
    /// The trailer section of a chunked body, without its final empty line.
    package let trailerBytes: Int
    /// All chunk extensions of one message together, including their semicolons.
    package let chunkExtensionBytes: Int

    package static let standard = HeadLimits()

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
}
