// SPDX-License-Identifier: Apache-2.0

/// Encodes the ASN.1 values that certificate extensions need, in DER (X.690 §8, §10).
package enum DEREncoding {
    package static func sequence(_ items: [[UInt8]]) -> [UInt8] { value(tag: 0x30, items) }

    static func octets(_ bytes: [UInt8]) -> [UInt8] { value(tag: 0x04, bytes) }

    static let isTrue: [UInt8] = [0x01, 0x01, 0xFF]

    /// An INTEGER from 0 to 127.
    static func integer(_ number: UInt8) -> [UInt8] { value(tag: 0x02, [number & 0x7F]) }

    /// A BIT STRING of at most eight named bits, bit 0 the highest.
    package static func namedBits(_ bits: UInt8) -> [UInt8] {
        value(tag: 0x03, [UInt8(bits == 0 ? 0 : bits.trailingZeroBitCount), bits])
    }

    /// A context-specific tag from 0 to 30.
    static func tagged(_ number: UInt8, constructed: Bool = false, _ bytes: [UInt8]) -> [UInt8] {
        value(tag: (constructed ? 0xA0 : 0x80) | number, bytes)
    }

    static func set(_ items: [[UInt8]]) -> [UInt8] {
        value(tag: 0x31, items.sorted { $0.lexicographicallyPrecedes($1) })
    }

    /// A string of the universal type `tag`.
    static func string(tag: UInt8, _ text: some StringProtocol) -> [UInt8] { value(tag: tag, Array(text.utf8)) }

    static func value(tag: UInt8, _ bytes: [UInt8]) -> [UInt8] { value(tag: tag, [bytes]) }

    /// A value whose content is the concatenation of `parts`.
    private static func value(tag: UInt8, _ parts: [[UInt8]]) -> [UInt8] {
        let count = parts.reduce(0) { $0 + $1.count }
        var encoded: [UInt8] = []
        encoded.reserveCapacity(count + 10)
        encoded.append(tag)
        if count < 0x80 {
            encoded.append(UInt8(count))
        } else {
            let length = UInt64(count)
            let lengthBytes = 8 - length.leadingZeroBitCount / 8
            encoded.append(0x80 | UInt8(lengthBytes))
            for place in (0..<lengthBytes).reversed() {
                encoded.append(UInt8(truncatingIfNeeded: length >> (8 * place)))
            }
        }
        for part in parts { encoded += part }
        return encoded
    }
}
