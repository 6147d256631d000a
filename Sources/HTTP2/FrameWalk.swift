// SPDX-License-Identifier: Apache-2.0

/// Finds what nghttp2 does not report about a peer's frames: the heads of those that it drops, and a WINDOW_UPDATE that
/// increments the window of a stream by 0.
struct FrameWalk {
    /// The type and stream of a frame (RFC 9113 §4.1).
    struct Head {
        let type: UInt8
        let streamID: Int32
    }

    /// The last octet of a WINDOW_UPDATE whose increment is 0, on a stream.
    struct NullIncrement {
        let offset: Int
        let streamID: Int32
    }

    private static let headBytes = 9
    private static let windowUpdate: UInt8 = 8
    private static let incrementBytes = 4

    /// Octets of the preface or of a payload that are still to come.
    private var left: Int
    private var head: UInt64 = 0
    private var headCount = 0
    private var length = 0
    /// The stream of the increment that is still to come and has been 0 so far.
    private var incremented: Int32?

    /// `prefaceBytes` come before the first frame.
    init(prefaceBytes: Int) { left = prefaceBytes }

    /// Follows `octets`, and passes each head that is complete to `visit`. Returns the increments of 0.
    mutating func follow(_ octets: UnsafeRawBufferPointer, _ visit: (Head) -> Void) -> [NullIncrement] {
        var found: [NullIncrement] = []
        var position = 0
        while position < octets.count {
            let skipped = min(left, octets.count - position)
            if let incremented, skipped > 0 {
                let end = position + skipped
                if isNull(octets[position..<end]), skipped == left {
                    found.append(NullIncrement(offset: end - 1, streamID: incremented))
                }
            }
            left -= skipped
            position += skipped
            guard left == 0, position < octets.count else { break }
            incremented = nil
            while headCount < FrameWalk.headBytes, position < octets.count {
                add(octets[position])
                position += 1
            }
            guard headCount == FrameWalk.headBytes else { break }
            left = length
            let id = Int32(truncatingIfNeeded: head & 0x7FFF_FFFF)
            let type = UInt8(truncatingIfNeeded: head >> 40)
            if type == FrameWalk.windowUpdate, length == FrameWalk.incrementBytes, id > 0 { incremented = id }
            visit(Head(type: type, streamID: id))
            headCount = 0
            length = 0
            head = 0
        }
        return found
    }

    /// Whether a part of an increment is 0. If not, what follows does not matter. The first bit is reserved.
    private mutating func isNull(_ part: Slice<UnsafeRawBufferPointer>) -> Bool {
        let isStart = left == FrameWalk.incrementBytes
        let isNull = part.indices.allSatisfy { part[$0] & (isStart && $0 == part.startIndex ? 0x7F : 0xFF) == 0 }
        if !isNull { incremented = nil }
        return isNull
    }

    /// The first three octets of a head are the length; the others are kept in ``head``.
    private mutating func add(_ octet: UInt8) {
        if headCount < 3 { length = length << 8 | Int(octet) } else { head = head << 8 | UInt64(octet) }
        headCount += 1
    }
}
