// SPDX-License-Identifier: Apache-2.0

/// Cuts a stream of bytes into lines that end with LF.
package struct LineSplitter {
    private var pending: [UInt8] = []

    package init() {}

    /// The lines that `bytes` complete, without their ends.
    /// - Throws: `ProtocolError` when a line is longer than `Limits.lineBytes`, even if it is not complete.
    package mutating func split(_ bytes: some Sequence<UInt8>) throws(ProtocolError) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                lines.append(pending)
                pending = []
            } else if pending.count == Limits.lineBytes {
                throw ProtocolError("a line is longer than \(Limits.lineBytes) bytes")
            } else {
                pending.append(byte)
            }
        }
        return lines
    }
}
