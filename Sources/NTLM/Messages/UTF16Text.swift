// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Text as NTLM writes it once Unicode is negotiated: UTF-16, little-endian, no terminator. MS-NLMP §2.2.
package enum UTF16Text {
    /// `text` in UTF-16LE.
    package static func encode(_ text: some StringProtocol) -> [UInt8] {
        text.utf16.flatMap(\.littleEndianBytes)
    }

    /// The text of UTF-16LE bytes, or nil if they are not that.
    package static func decode(_ bytes: some Collection<UInt8>) -> String? {
        guard bytes.count % 2 == 0 else { return nil }
        var units: [UInt16] = []
        var low: UInt8?
        for byte in bytes {
            if let first = low {
                units.append(UInt16(first) | UInt16(byte) << 8)
                low = nil
            } else {
                low = byte
            }
        }
        return String(validating: units, as: UTF16.self)
    }

    /// UTF-8 bytes in UTF-16LE, or nil if they are not UTF-8.
    static func encode(utf8 secret: Secret) -> (bytes: Secret, count: Int)? {
        var count = 0
        var isInvalid = false
        // A scalar never takes more UTF-16 units than UTF-8 bytes.
        let bytes = Secret(count: 2 * secret.count) { output in
            secret.withBytes { utf8 in
                isInvalid = transcode(utf8.makeIterator(), from: UTF8.self, to: UTF16.self, stoppingOnError: true) {
                    unit in
                    output[count] = UInt8(truncatingIfNeeded: unit)
                    output[count + 1] = UInt8(truncatingIfNeeded: unit >> 8)
                    count += 2
                }
            }
        }
        return isInvalid ? nil : (bytes, count)
    }

    /// `text` upper-cased as Windows does for NTOWFv2: unit by unit by the simple mappings of Unicode, so that no mapping
    /// changes the length, supplementary characters stay, and no letter outside of ASCII turns into one inside.
    static func uppercase(_ text: String) -> [UInt8] {
        var units: [UInt16] = []
        for scalar in text.unicodeScalars {
            units += UTF16.encode(simpleUppercase(of: scalar)).map(Array.init) ?? []
        }
        return units.flatMap(\.littleEndianBytes)
    }

    /// Swift gives the full mappings. Where that is several scalars and a simple one exists (U+1FB3, Greek with iota
    /// subscript), the simple one is the title-case mapping.
    private static func simpleUppercase(of scalar: Unicode.Scalar) -> Unicode.Scalar {
        guard scalar.value <= 0xFFFF else { return scalar }
        for mapping in [scalar.properties.uppercaseMapping, scalar.properties.titlecaseMapping] {
            guard mapping.unicodeScalars.count == 1, let upper = mapping.unicodeScalars.first else { continue }
            return upper.isASCII == scalar.isASCII && upper.value <= 0xFFFF ? upper : scalar
        }
        return scalar
    }
}
