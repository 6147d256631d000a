// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignUpstream
import NIOCore

/// A response whose head has arrived, held until the exchange decides whether to deliver it or to send another request.
final class BufferedResponse {
    let head: ResponseHead
    let content: ContentEnd
    /// The content received so far.
    var pieces: [ByteBuffer] = []
    /// No more content will arrive.
    var ended = false
    /// The connection failed inside the content, so the content cannot be ended cleanly.
    var wasCut = false
    var trailers: FieldLines?

    init(head: consuming ResponseHead, content: ContentEnd) {
        self.head = head
        self.content = content
    }
}
