// SPDX-License-Identifier: Apache-2.0

/// Finds the heads of a peer's frames, including the frames that nghttp2 drops without a report.
struct FrameWalk {
    /// The type and stream of a frame (RFC 9113 §4.1).
    struct Head {
        let type: UInt8
        let streamID: Int32
    }

    private static let headBytes = 9

    /// Octets of the preface or of a payload that are still to come.
    private var left: Int
    private var head: UInt64 = 0
    private var headCount = 0
    private var length = 0

    /// `prefaceBytes` come before the first frame.
    init(prefaceBytes: Int) { left = prefaceBytes }

    /// Follows `octets`, and passes each head that is complete to `visit`.
    mutating func follow(_ octets: UnsafeRawBufferPointer, _ visit: (Head) -> Void) {
        var position = 0
        while position < octets.count {
            let skipped = min(left, octets.count - position)
            left -= skipped
            position += skipped
            guard left == 0, position < octets.count else { return }
            while headCount < FrameWalk.headBytes, position < octets.count {
                add(octets[position])
                position += 1
            }
            guard headCount == FrameWalk.headBytes else { return }
            left = length
            let id = Int32(truncatingIfNeeded: head & 0x7FFF_FFFF)
            visit(Head(type: UInt8(truncatingIfNeeded: head >> 40), streamID: id))
            headCount = 0
            length = 0
            head = 0
        }
    }

    /// The first three octets of a head are the length; the others are kept in ``head``.
    private mutating func add(_ octet: UInt8) {
        if headCount < 3 { length = length << 8 | Int(octet) } else { head = head << 8 | UInt64(octet) }
        headCount += 1
    }
}
