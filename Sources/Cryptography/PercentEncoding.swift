// SPDX-License-Identifier: Apache-2.0

/// Octets of URLs (RFC 3986 §2) and of field parameters (RFC 8187 §3.2.1) as text.
package enum PercentEncoding {
    /// A letter, a digit, or one of `-._~` (RFC 3986 §2.3).
    @inlinable
    package static func isUnreserved(_ octet: UInt8) -> Bool {
        switch octet {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
        default: false
        }
    }

    /// Appends `octets`, with `%` and two upper-case digits for each that is not plain.
    package static func append(
        _ octets: some Sequence<UInt8>, to text: inout [UInt8], isPlain: (UInt8) -> Bool = isUnreserved
    ) {
        for octet in octets {
            if isPlain(octet) {
                text.append(octet)
            } else {
                text.append(UInt8(ascii: "%"))
                text.append(digit(octet >> 4))
                text.append(digit(octet & 15))
            }
        }
    }

    /// `octets`, with `%` and two upper-case digits for each that is not plain.
    package static func encode(
        _ octets: some Sequence<UInt8>, isPlain: (UInt8) -> Bool = isUnreserved
    ) -> [UInt8] {
        var text: [UInt8] = []
        append(octets, to: &text, isPlain: isPlain)
        return text
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }
}
