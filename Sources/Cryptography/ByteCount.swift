// SPDX-License-Identifier: Apache-2.0

/// A number of bytes, as people write it: with the suffix K, M or G for powers of 1024.
package struct ByteCount: Equatable, Sendable {
    package let bytes: Int

    package init?(_ text: String) {
        let units: [Character: Int] = ["K": 10, "M": 20, "G": 30]
        let shift = text.last.flatMap { units[Character($0.uppercased())] }
        let digits = shift == nil ? text[...] : text.dropLast()
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let count = Int(digits),
            count <= 1 << 20 || shift == nil
        else { return nil }
        bytes = count << (shift ?? 0)
    }

    package init(bytes: Int) { self.bytes = bytes }

    /// With the largest suffix that leaves a whole number.
    package var text: String {
        for (unit, shift) in [("G", 30), ("M", 20), ("K", 10)] where bytes > 0 && bytes & (1 << shift - 1) == 0 {
            return "\(bytes >> shift)\(unit)"
        }
        return "\(bytes)"
    }
}
