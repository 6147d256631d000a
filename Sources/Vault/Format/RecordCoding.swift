// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The first byte of a record. ``VaultRecords`` has the fields of each kind.
enum RecordKind: UInt8, CaseIterable {
    case password = 1
    case identityKey = 2
    case interception = 3
    case trustException = 4
    case enrollment = 5
    case pendingEnrollment = 6
    case tokenKey = 7
    case enrollmentServer = 8
    case pendingServer = 9
    case pendingToken = 10
    case bearerToken = 11
    case principal = 12
    case signIn = 13
    case session = 14
    case identityOrder = 16
    case tagKey = 17
    case enrollmentOwner = 18
    case pendingOwner = 19
    case profile = 20
    case compliance = 21
    case wipe = 22
    case tokenPermission = 24
    case program = 25
    case awsKeys = 26
    case programOfAWSKeys = 27
}

/// Writes integers and fields one after the other. Without an output it only counts the bytes.
struct RecordWriter {
    let output: UnsafeMutableRawBufferPointer?
    private(set) var count = 0
    private(set) var recordCount = 0

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

    mutating func record(_ kind: RecordKind, body: (inout RecordWriter) -> Void) {
        var measure = RecordWriter(output: nil)
        body(&measure)
        append(kind.rawValue)
        append(UInt32(measure.count))
        body(&self)
        recordCount += 1
    }
}

/// Reads integers and fields one after the other, and throws `altered` for any that is incomplete.
struct RecordReader {
    private let input: UnsafeRawBufferPointer
    private var offset = 0

    init(_ input: UnsafeRawBufferPointer) {
        self.input = input
    }

    var isAtEnd: Bool { offset == input.count }

    mutating func bytes(_ count: Int) throws(VaultError) -> UnsafeRawBufferPointer {
        guard count <= input.count - offset else { throw Self.malformed("a record ends early") }
        defer { offset += count }
        return UnsafeRawBufferPointer(rebasing: input[offset..<offset + count])
    }

    mutating func number<Value: FixedWidthInteger & UnsignedInteger>(
        _ type: Value.Type
    ) throws(VaultError) -> Value {
        Value(bigEndian: try bytes(MemoryLayout<Value>.size).loadUnaligned(as: Value.self))
    }

    mutating func field() throws(VaultError) -> RecordReader {
        RecordReader(try bytes(Int(try number(UInt32.self))))
    }

    /// One byte, 0 or 1.
    mutating func flag() throws(VaultError) -> Bool {
        let byte = try number(UInt8.self)
        guard byte <= 1 else { throw Self.malformed("\(byte) instead of 0 or 1") }
        return byte == 1
    }

    /// 8 bytes, seconds since 1970.
    mutating func time() throws(VaultError) -> Int64 {
        guard let seconds = Int64(exactly: try number(UInt64.self)) else { throw Self.malformed("a time out of range") }
        return seconds
    }

    mutating func text() throws(VaultError) -> String {
        guard let text = String(validating: try field().input, as: UTF8.self) else {
            throw Self.malformed("text that is not UTF-8")
        }
        return text
    }

    mutating func secret(upTo limit: Int) throws(VaultError) -> Secret {
        let bytes = try field().input
        guard (1...limit).contains(bytes.count) else {
            throw Self.malformed("a secret of \(bytes.count) bytes")
        }
        return Secret(bytes)
    }

    /// As ``secret(upTo:)``, but the field may be empty.
    mutating func mayBeEmptySecret(upTo limit: Int) throws(VaultError) -> Secret {
        let bytes = try field().input
        guard bytes.count <= limit else { throw Self.malformed("a secret of \(bytes.count) bytes") }
        return Secret(bytes)
    }

    static func malformed(_ what: String) -> VaultError {
        VaultError(.altered, "the vault's contents are malformed: \(what)")
    }
}
