// SPDX-License-Identifier: Apache-2.0

/// Splits a PEM text (RFC 7468) that contains certificates only, without decoding them.
package enum PEMText {
    /// The bytes of each certificate, in their order. Ignores text between the blocks. Nil if there is another kind of
    /// block, or if a block is not base64 with padding in its last line only.
    package static func certificates(in text: [UInt8]) -> [[UInt8]]? {
        text.withUnsafeBufferPointer { text in
            var certificates: [[UInt8]] = []
            var position = 0
            while let line = nextLine(in: text, at: &position) {
                guard isBoundary(text[line]) else { continue }
                guard text[line].elementsEqual(begin), let block = block(in: text, at: &position) else { return nil }
                certificates.append(block)
            }
            return certificates
        }
    }

    private static let begin = Array("-----BEGIN CERTIFICATE-----".utf8)
    private static let end = Array("-----END CERTIFICATE-----".utf8)

    /// Twice the standard line length (RFC 7468 §2), and within OpenSSL's limit.
    private static let maximumLine = 128

    /// The rest of a block after its first line. Moves `position` past the last line.
    private static func block(in text: UnsafeBufferPointer<UInt8>, at position: inout Int) -> [UInt8]? {
        let start = position
        var end = position
        while let line = nextLine(in: text, at: &position) {
            guard isBoundary(text[line]) else { continue }
            guard text[line].elementsEqual(Self.end) else { return nil }
            end = line.lowerBound
            break
        }
        var isWhole = true
        let block = [UInt8](unsafeUninitializedCapacity: (end - start) / 4 * 3) { bytes, count in
            var position = start
            var isPadded = false
            while isWhole, position < end, let line = nextLine(in: text, at: &position), line.upperBound <= end {
                isWhole = !isPadded && decode(line, of: text, into: bytes, &count)
                isPadded = text[line.upperBound - 1] == padding
            }
        }
        return isWhole && !block.isEmpty ? block : nil
    }

    /// The next non-empty line without its line feed.
    private static func nextLine(in text: UnsafeBufferPointer<UInt8>, at position: inout Int) -> Range<Int>? {
        while position < text.count, text[position] == 0x0A { position += 1 }
        guard position < text.count else { return nil }
        let start = position
        while position < text.count, text[position] != 0x0A { position += 1 }
        return start..<position
    }

    private static func isBoundary(_ line: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        line.first == UInt8(ascii: "-") && line.starts(with: "-----".utf8)
    }

    // MARK: Base64 (RFC 4648 §4)

    private static let padding = UInt8(ascii: "=")

    /// Decodes the line and appends it to the first `count` elements of `bytes`, which has enough space. Returns false
    /// if the line does not consist of whole groups.
    private static func decode(
        _ line: Range<Int>, of text: UnsafeBufferPointer<UInt8>, into bytes: UnsafeMutableBufferPointer<UInt8>,
        _ count: inout Int
    ) -> Bool {
        guard line.count <= maximumLine, line.count.isMultiple(of: 4) else { return false }
        return sextets.withUnsafeBufferPointer { sextets in
            var position = line.lowerBound
            while position < line.upperBound {
                let third = text[position + 2]
                let fourth = text[position + 3]
                var padded = 0
                if fourth == padding, position + 4 == line.upperBound { padded = third == padding ? 2 : 1 }
                let first = sextets[Int(text[position])]
                let second = sextets[Int(text[position + 1])]
                let others = (padded > 1 ? 0 : sextets[Int(third)], padded > 0 ? 0 : sextets[Int(fourth)])
                guard first | second | others.0 | others.1 < 0x40, bytes.count - count >= 3 else { return false }
                bytes[count] = first << 2 | second >> 4
                bytes[count + 1] = second << 4 | others.0 >> 2
                bytes[count + 2] = others.0 << 6 | others.1
                count += 3 - padded
                position += 4
            }
            return true
        }
    }

    /// The value of each base64 character; 0xFF for other bytes.
    private static let sextets: [UInt8] = {
        var sextets = [UInt8](repeating: 0xFF, count: 256)
        let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        for (value, byte) in alphabet.utf8.enumerated() { sextets[Int(byte)] = UInt8(value) }
        return sextets
    }()
}
