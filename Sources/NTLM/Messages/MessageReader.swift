// SPDX-License-Identifier: Apache-2.0

/// Parses one NTLM message. Checks its signature and type, and that each payload field is inside the message, after the
/// header, and does not overlap the others. MS-NLMP §2.2.
///
/// MaxLen and the offset of an empty field are ignored, as §2.2.1 requires.
package struct MessageReader {
    static let limitBytes = 65_536
    package static let signature = Array("NTLMSSP\0".utf8)

    let bytes: [UInt8]
    private let name: String
    private let headerBytes: Int
    private var claimed: [Range<Int>] = []

    init(_ bytes: [UInt8], name: String, messageType: UInt32, headerBytes: Int) throws(NTLMError) {
        guard bytes.count <= Self.limitBytes else {
            throw NTLMError(.malformed, "\(name) of \(bytes.count) bytes exceeds \(Self.limitBytes)")
        }
        guard bytes.count >= headerBytes else {
            throw NTLMError(.malformed, "\(name) of \(bytes.count) bytes is shorter than its header of \(headerBytes)")
        }
        guard bytes.starts(with: Self.signature) else {
            throw NTLMError(.malformed, "\(name) does not begin with \"NTLMSSP\"")
        }
        self.bytes = bytes
        self.name = name
        self.headerBytes = headerBytes
        guard uint32(at: 8) == messageType else {
            throw NTLMError(.malformed, "message type \(uint32(at: 8)) where \(name) (\(messageType)) is due")
        }
    }

    /// The little-endian integer at `offset`, which must be in the header.
    func uint32(at offset: Int) -> UInt32 {
        bytes[offset..<offset + 4].reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// The `count` bytes at `offset`, which must be in the header.
    func fixed(at offset: Int, count: Int) -> [UInt8] {
        Array(bytes[offset..<offset + count])
    }

    /// The bytes to which the field header at `offset` refers (Len 2, MaxLen 2, BufferOffset 4).
    mutating func payload(at offset: Int, named field: String) throws(NTLMError) -> [UInt8] {
        let length = UInt64(uint32(at: offset) & 0xFFFF)
        guard length > 0 else { return [] }
        let start = UInt64(uint32(at: offset + 4))
        guard start >= UInt64(headerBytes), start + length <= UInt64(bytes.count) else {
            throw NTLMError(
                .malformed, "\(name): \(field) at \(start), \(length) bytes long, lies outside of \(bytes.count) bytes")
        }
        let range = Int(start)..<Int(start + length)
        guard !claimed.contains(where: { $0.overlaps(range) }) else {
            throw NTLMError(.malformed, "\(name): \(field) overlaps another field")
        }
        claimed.append(range)
        return Array(bytes[range])
    }

    /// The offset of the first payload, or the end of the message.
    var firstPayload: Int {
        claimed.map(\.lowerBound).min() ?? bytes.count
    }
}
