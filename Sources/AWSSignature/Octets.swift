// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The classes of octets that the canonical form distinguishes.
enum Octets {
    static func isDigit(_ octet: UInt8) -> Bool { (0x30...0x39).contains(octet) }

    /// RFC 9110 §5.6.2.
    static func isToken(_ octet: UInt8) -> Bool {
        PercentEncoding.isUnreserved(octet) || "!#$%&'*+^`|".utf8.contains(octet)
    }

    /// White space that the values of fields lose: SP, HTAB, and the line ends of folded lines.
    static func isSpace(_ octet: UInt8) -> Bool { [0x20, 0x09, 0x0D, 0x0A].contains(octet) }

    /// `keepsSlashes`: slashes are not encoded either.
    static func percentEncoded(_ octets: some Sequence<UInt8>, keepsSlashes: Bool = false) -> [UInt8] {
        PercentEncoding.encode(octets) {
            PercentEncoding.isUnreserved($0) || keepsSlashes && $0 == UInt8(ascii: "/")
        }
    }

    /// A percent sign without two digits stands for itself.
    static func percentDecoded(_ octets: ArraySlice<UInt8>, plusIsSpace: Bool = false) -> [UInt8] {
        var decoded: [UInt8] = []
        var rest = octets
        while let octet = rest.popFirst() {
            if octet == UInt8(ascii: "%"), rest.count >= 2, let high = Hex.value(of: rest[rest.startIndex]),
                let low = Hex.value(of: rest[rest.startIndex + 1])
            {
                decoded.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                decoded.append(plusIsSpace && octet == UInt8(ascii: "+") ? 0x20 : octet)
            }
        }
        return decoded
    }
}
