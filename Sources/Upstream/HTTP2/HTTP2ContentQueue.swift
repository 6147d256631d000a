// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The content of one stream that its session has not written yet.
package struct HTTP2ContentQueue {
    /// The next piece first.
    private var pieces = CircularBuffer<ByteBuffer>(initialCapacity: 2)
    package private(set) var byteCount = 0

    package init() {}

    package mutating func append(_ content: ByteBuffer) {
        pieces.append(content)
        byteCount += content.readableBytes
    }

    /// Writes the next `count` octets.
    package mutating func write(_ count: Int, to output: MessageOutput) {
        byteCount -= count
        var left = count
        while left > 0, var piece = pieces.popFirst() {
            if piece.readableBytes > left {
                if let part = piece.readSlice(length: left) { output.write(part) }
                pieces.prepend(piece)
                return
            }
            left -= piece.readableBytes
            output.write(piece)
        }
    }

    package mutating func removeAll() {
        pieces.removeAll()
        byteCount = 0
    }
}
