// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// A line of an audit under construction. With ``JSONObject``, the line of a use takes 22 µs; with this, 4.5 µs.
struct AuditLine {
    private var bytes: [UInt8]

    init(number: UInt64) {
        bytes = []
        bytes.reserveCapacity(768)
        bytes += "{\"n\":".utf8
        JSONObject.append(number, to: &bytes)
    }

    /// `name` needs no escapes.
    mutating func add(_ name: StaticString, _ value: UInt64) {
        begin(name)
        JSONObject.append(value, to: &bytes)
    }

    mutating func add(_ name: StaticString, _ value: String) {
        begin(name)
        JSONObject.append(value, to: &bytes)
    }

    /// `text` needs no escapes.
    mutating func add(_ name: StaticString, digits text: [UInt8]) {
        begin(name)
        bytes.append(UInt8(ascii: "\""))
        bytes += text
        bytes.append(UInt8(ascii: "\""))
    }

    /// The object so far.
    var object: [UInt8] { bytes + [UInt8(ascii: "}")] }

    /// Adds the hash of the line, in hexadecimal digits, and the line feed.
    consuming func finished() -> (line: [UInt8], hash: [UInt8]) {
        bytes.append(UInt8(ascii: "}"))
        let hash = Self.hash(of: bytes)
        bytes.removeLast()
        add("hash", digits: hash)
        bytes += "}\n".utf8
        return (bytes, hash)
    }

    /// SHA-256 in hexadecimal digits.
    static func hash(of bytes: [UInt8]) -> [UInt8] {
        let digest = Digest.sha256.hash(bytes)
        return [UInt8](unsafeUninitializedCapacity: 2 * digest.count) { output, count in
            for (index, byte) in digest.enumerated() {
                output[2 * index] = digit(byte >> 4)
                output[2 * index + 1] = digit(byte & 15)
            }
            count = 2 * digest.count
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 { value + (value < 10 ? 0x30 : 0x61 - 10) }

    private mutating func begin(_ name: StaticString) {
        bytes += ",\"".utf8
        bytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        bytes += "\":".utf8
    }
}
