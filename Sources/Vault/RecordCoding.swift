// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Writes integers and fields one behind the other, or only counts the bytes where it has no output.
struct RecordWriter {
    let output: UnsafeMutableRawBufferPointer?
    private(set) var count = 0

    init(output: UnsafeMutableRawBufferPointer?) {
        self.output = output
    }

    mutating func append(_ byte: UInt8) {
        output?[count] = byte
        count += 1
    }

    mutating func append(_ value: some FixedWidthInteger & UnsignedInteger) {
        withUnsafeBytes(of: value.bigEndian) { for byte in $0 { append(byte) } }
    }

    mutating func field(_ text: String) {
        append(UInt32(text.utf8.count))
        for byte in text.utf8 { append(byte) }
    }

    mutating func field(_ secret: Secret) {
        append(UInt32(secret.count))
        secret.withBytes { for byte in $0 { append(byte) } }
    }

    mutating func record(_ kind: VaultRecords.Kind, body: (inout RecordWriter) -> Void) {
        var measure = RecordWriter(output: nil)
        body(&measure)
        append(kind.rawValue)
        append(UInt32(measure.count))
        body(&self)
    }
}

/// Takes integers and fields off the front of bytes; every one of them is refused where it is not there whole.
struct RecordReader {
    private let bytes: UnsafeRawBufferPointer
    private var offset = 0

    init(bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    var isAtEnd: Bool { offset == bytes.count }

    mutating func take(_ count: Int) throws(VaultError) -> UnsafeRawBufferPointer {
        guard count <= bytes.count - offset else { throw Self.malformed("a record ends early") }
        defer { offset += count }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
    }

    mutating func number<Value: FixedWidthInteger & UnsignedInteger>(
        _ type: Value.Type
    ) throws(VaultError) -> Value {
        Value(bigEndian: try take(MemoryLayout<Value>.size).loadUnaligned(as: Value.self))
    }

    mutating func field() throws(VaultError) -> RecordReader {
        RecordReader(bytes: try take(Int(try number(UInt32.self))))
    }

    mutating func text() throws(VaultError) -> String {
        guard let text = String(validating: try field().bytes, as: UTF8.self) else {
            throw Self.malformed("a text that is not UTF-8")
        }
        return text
    }

    mutating func secret(upTo limit: Int) throws(VaultError) -> Secret {
        let bytes = try field().bytes
        guard (1...limit).contains(bytes.count) else {
            throw Self.malformed("a secret of \(bytes.count) bytes")
        }
        return Secret(bytes)
    }

    static func malformed(_ what: String) -> VaultError {
        VaultError(.altered, "the vault's contents do not parse: \(what)", hint: VaultHeader.restore)
    }
}
