// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The encoding of text in NTLM if Unicode is negotiated: UTF-16, little-endian, without a terminator. MS-NLMP §2.2.
package enum UTF16Text {
    /// `text` in UTF-16LE.
    package static func encode(_ text: some StringProtocol) -> [UInt8] {
        text.utf16.flatMap(\.littleEndianBytes)
    }

    /// Decodes UTF-16LE, or returns nil if `bytes` is not valid UTF-16LE.
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

    /// Converts UTF-8 to UTF-16LE, or returns nil if `secret` is not valid UTF-8.
    static func encode(utf8 secret: Secret) -> (bytes: Secret, count: Int)? {
        var count = 0
        var isInvalid = false
        // A scalar has at most as many UTF-16 code units as UTF-8 bytes.
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

    /// `text` in upper case as Windows computes it for NTOWFv2: each UTF-16 code unit is converted with Unicode's
    /// simple mapping. The length does not change, supplementary characters stay, and no non-ASCII letter becomes an
    /// ASCII letter.
    static func uppercase(_ text: String) -> [UInt8] {
        var units: [UInt16] = []
        for scalar in text.unicodeScalars {
            units += UTF16.encode(simpleUppercase(of: scalar)).map(Array.init) ?? []
        }
        return units.flatMap(\.littleEndianBytes)
    }

    /// Swift provides only the full mappings. If a full mapping consists of several scalars although a simple one
    /// exists (U+1FB3, Greek with iota subscript), the simple mapping equals the title-case mapping.
    private static func simpleUppercase(of scalar: Unicode.Scalar) -> Unicode.Scalar {
        guard scalar.value <= 0xFFFF else { return scalar }
        for mapping in [scalar.properties.uppercaseMapping, scalar.properties.titlecaseMapping] {
            guard mapping.unicodeScalars.count == 1, let upper = mapping.unicodeScalars.first else { continue }
            return upper.isASCII == scalar.isASCII && upper.value <= 0xFFFF ? upper : scalar
        }
        return scalar
    }
}
