// SPDX-License-Identifier: Apache-2.0

/// Builds one NTLM message: the header fields are written in order, and the payload is collected separately.
struct MessageWriter {
    private let headerBytes: Int
    private var header: [UInt8]
    private var payload: [UInt8] = []

    init(messageType: UInt32, headerBytes: Int) {
        self.headerBytes = headerBytes
        header = MessageReader.signature + messageType.littleEndianBytes
    }

    mutating func put(_ bytes: [UInt8]) {
        header += bytes
    }

    /// Writes a field header (Len, MaxLen, BufferOffset) for the payload at `field`, which may be placed later.
    mutating func put(_ field: Field) {
        header += field.length.littleEndianBytes + field.length.littleEndianBytes + field.offset.littleEndianBytes
    }

    /// Appends `bytes` to the payload and returns their position.
    mutating func place(_ bytes: [UInt8], named name: String) throws(NTLMError) -> Field {
        let offset = headerBytes + payload.count
        guard let length = UInt16(exactly: bytes.count), let offset = UInt32(exactly: offset) else {
            throw NTLMError(.unusableCredential, "\(name) of \(bytes.count) bytes is too long for an NTLM message")
        }
        payload += bytes
        return Field(length: length, offset: offset)
    }

    /// The complete message.
    var bytes: [UInt8] {
        precondition(header.count == headerBytes, "the header's fields do not fill its \(headerBytes) bytes")
        return header + payload
    }

    struct Field {
        static let empty = Field(length: 0, offset: 0)

        let length: UInt16
        let offset: UInt32
    }
}

extension FixedWidthInteger where Self: UnsignedInteger {
    var littleEndianBytes: [UInt8] {
        (0..<Self.bitWidth / 8).map { UInt8(truncatingIfNeeded: self >> (8 * $0)) }
    }
}
