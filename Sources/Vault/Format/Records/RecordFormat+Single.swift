// SPDX-License-Identifier: Apache-2.0

extension RecordFormat {
    /// The home's own keys, and the servers that a person trusts.
    static let single: [RecordFormat] = [
        RecordFormat(kind: .interception) { contents, writer in
            guard let keys = contents.interception else { return }
            writer.record(.interception) { writer in
                writer.field(keys.rootKey)
                writer.field(keys.issuingKey)
            }
        } read: { body, parts throws(VaultError) in
            try parts.advance(to: (.interception, ""))
            parts.interception = InterceptionKeys(
                rootKey: try body.secret(upTo: VaultLimits.keyBytes),
                issuingKey: try body.secret(upTo: VaultLimits.keyBytes))
        },
        RecordFormat(kind: .tagKey) { contents, writer in
            guard let key = contents.tagKey else { return }
            writer.record(.tagKey) { $0.field(key) }
        } read: { body, parts throws(VaultError) in
            try parts.advance(to: (.tagKey, ""))
            let key = try body.secret(upTo: VaultLimits.digestBytes)
            guard key.count == VaultLimits.digestBytes else { throw RecordReader.malformed("the key of tags") }
            parts.tagKey = key
        },
        RecordFormat(kind: .trustException) { contents, writer in
            for exception in contents.trustExceptions {
                writer.record(.trustException) { $0.append(exception) }
            }
        } read: { body, parts throws(VaultError) in
            let exception = try body.trustException()
            try parts.advance(to: (.trustException, exception.order))
            parts.trustExceptions.append(exception)
        },
    ]
}

extension RecordWriter {
    mutating func append(_ record: TrustExceptionRecord) {
        field(record.host)
        append(record.port)
        for byte in record.leafSHA256 { append(byte) }
        append(record.answers ? 1 : 0 as UInt8)
        append(UInt64(clamping: record.made))
        append(record.until == nil ? 0 : 1 as UInt8)
        if let until = record.until { append(UInt64(clamping: until)) }
    }
}

extension RecordReader {
    mutating func trustException() throws(VaultError) -> TrustExceptionRecord {
        let (host, port) = (try text(), try number(UInt16.self))
        let leafSHA256 = Array(try bytes(VaultLimits.digestBytes))
        let answers = try flag()
        let made = try time()
        let record = TrustExceptionRecord(
            host: host, port: port, leafSHA256: leafSHA256, until: try flag() ? try time() : nil, answers: answers,
            made: made)
        if let fault = record.fault { throw Self.malformed(fault) }
        return record
    }
}
