// SPDX-License-Identifier: Apache-2.0

import CountersignCNGHTTP2
import CountersignHTTP1

/// The fields of a head to be sent, as pointers. Their octets must stay in place until the list has been passed to
/// nghttp2, which copies it and writes the names in lower case.
struct FieldList: ~Copyable {
    private var entries: [nghttp2_nv] = []
    private let neverIndexed: [[UInt8]]

    /// `neverIndexed`: further names that stay out of compression tables.
    init(about count: Int, neverIndexed: [[UInt8]]) {
        self.neverIndexed = neverIndexed
        entries.reserveCapacity(count)
    }

    /// A length of compressed fields would tell something of a secret that is in the table (RFC 7541 §7.1).
    static func isSecret(_ name: UnsafeRawBufferPointer) -> Bool {
        switch name.count {
        case 6: equals(name, "cookie")
        case 10: equals(name, "set-cookie")
        case 13: equals(name, "authorization")
        case 19: equals(name, "proxy-authorization")
        default: false
        }
    }

    private static func equals(_ name: UnsafeRawBufferPointer, _ other: StaticString) -> Bool {
        name.elementsEqual(other.octets) { $0 | 0x20 == $1 }
    }

    mutating func add(_ name: StaticString, _ value: UnsafeRawBufferPointer, isSecret: Bool = false) {
        add(name.octets, value, isSecret: isSecret)
    }

    mutating func add(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, isSecret: Bool = false) {
        let isNeverIndexed =
            isSecret || FieldList.isSecret(name)
            || neverIndexed.contains { other in
                other.count == name.count && zip(name, other).allSatisfy { $0 | 0x20 == $1 | 0x20 }
            }
        let flags = isNeverIndexed ? NGHTTP2_NV_FLAG_NO_INDEX.rawValue : NGHTTP2_NV_FLAG_NONE.rawValue
        entries.append(
            nghttp2_nv(
                name: FieldList.pointer(name), value: FieldList.pointer(value), namelen: name.count,
                valuelen: value.count, flags: UInt8(flags)))
    }

    /// Adds a line of `section`, whose octets are at `bytes`.
    mutating func add(_ line: FieldLine, of bytes: UnsafeRawBufferPointer) {
        add(
            UnsafeRawBufferPointer(rebasing: bytes[Int(line.name.lowerBound)..<Int(line.name.upperBound)]),
            UnsafeRawBufferPointer(rebasing: bytes[Int(line.value.lowerBound)..<Int(line.value.upperBound)]))
    }

    /// Adds lines that were written by us: `Name: value` and CRLF.
    mutating func add(lines: UnsafeRawBufferPointer) {
        var start = 0
        while start < lines.count {
            guard let colon = lines[start...].firstIndex(of: UInt8(ascii: ":")),
                let end = lines[colon...].firstIndex(of: UInt8(ascii: "\r"))
            else { preconditionFailure("a line of our own without a colon or an end") }
            let name = UnsafeRawBufferPointer(rebasing: lines[start..<colon])
            if !FieldList.isConnectionField(name) {
                add(name, UnsafeRawBufferPointer(rebasing: lines[min(colon + 2, end)..<end]))
            }
            start = end + 2
        }
    }

    private static func isConnectionField(_ name: UnsafeRawBufferPointer) -> Bool {
        switch name.count {
        case 7: equals(name, "upgrade")
        case 10: equals(name, "connection") || equals(name, "keep-alive")
        case 16: equals(name, "proxy-connection")
        case 17: equals(name, "transfer-encoding")
        default: false
        }
    }

    /// nghttp2 does not write to the octets, but its type says that it may.
    private static func pointer(_ octets: UnsafeRawBufferPointer) -> UnsafeMutablePointer<UInt8>? {
        octets.baseAddress.map { UnsafeMutablePointer(mutating: $0.assumingMemoryBound(to: UInt8.self)) }
    }

    func withEntries<Result>(_ body: (UnsafePointer<nghttp2_nv>?, Int) -> Result) -> Result {
        entries.withUnsafeBufferPointer { body($0.baseAddress, $0.count) }
    }
}
