// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// `application/x-www-form-urlencoded` (RFC 6749 appendix B).
package enum FormEncoding {
    /// Letters, digits, `-`, `.`, `_` and `*` stay, a space becomes `+`, and all else `%XX`.
    package static func encode(_ bytes: some Collection<UInt8>) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count)
        write(bytes) { text.append($0) }
        return String(decoding: text, as: UTF8.self)
    }

    static func encodeSecret(_ secret: Secret) -> Secret {
        secret.withBytes { bytes in
            var count = 0
            write(bytes) { _ in count += 1 }
            return Secret(count: count) { output in
                var position = 0
                write(bytes) {
                    output[position] = $0
                    position += 1
                }
            }
        }
    }

    static func write(_ bytes: some Collection<UInt8>, _ put: (UInt8) -> Void) {
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "*"):
                put(byte)
            case 0x20:
                put(UInt8(ascii: "+"))
            default:
                put(UInt8(ascii: "%"))
                put(digit(byte >> 4))
                put(digit(byte & 15))
            }
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }

    /// The longest name, in bytes.
    package static let maximumNameBytes = 256

    /// The pairs of `text`, in order, with repeated names. Nil if an escape is incomplete, a value is not UTF-8, a name
    /// is longer than ``maximumNameBytes``, or there are more than `limit` pairs. Empty pieces between two `&` are
    /// skipped.
    package static func decode(_ text: some Collection<UInt8>, limit: Int = 64) -> [(name: String, value: String)]? {
        var pairs: [(name: String, value: String)] = []
        for piece in Array(text).split(separator: UInt8(ascii: "&")) {
            guard pairs.count < limit else { return nil }
            let equals = piece.firstIndex(of: UInt8(ascii: "=")) ?? piece.endIndex
            guard let name = unescape(piece[..<equals]), name.utf8.count <= maximumNameBytes,
                let value = unescape(piece[equals...].dropFirst())
            else { return nil }
            pairs.append((name, value))
        }
        return pairs
    }

    private static func unescape(_ text: ArraySlice<UInt8>) -> String? {
        var bytes: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): bytes.append(0x20)
            case UInt8(ascii: "%"):
                guard let high = rest.popFirst().flatMap(Hex.value), let low = rest.popFirst().flatMap(Hex.value) else {
                    return nil
                }
                bytes.append(high << 4 | low)
            default: bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
