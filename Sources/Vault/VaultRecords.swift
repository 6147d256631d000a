// SPDX-License-Identifier: Apache-2.0

import Challenges
import Cryptography

/// The payload of a vault, integers big-endian:
///
///     2 bytes format, 1 · 8 bytes generation · 4 bytes number of records · the records
///     a record: 1 byte kind · 4 bytes length · its fields
///     a field of bytes: 4 bytes length · the bytes
///
///     kind 1, a password: name, user, password, 8 bytes generation
///     kind 2, an identity's key: name, PKCS#8 DER, 32 bytes SHA-256 of the leaf
///     kind 3, the interception CA: root key, issuing key, both PKCS#8 DER
///
/// Records stand in the order of their kinds, then of their names, none twice: contents have one encoding. A kind that is
/// not known is refused, since a vault that dropped it when it is next written would lose what it holds.
enum VaultRecords {
    static let format: UInt16 = 1

    enum Kind: UInt8 {
        case password = 1
        case identityKey = 2
        case interception = 3
    }

    static func encode(_ contents: VaultContents) throws(VaultError) -> Secret {
        guard contents.recordCount <= VaultLimits.records else {
            throw VaultError(.tooLarge, "\(contents.recordCount) records, a vault holds \(VaultLimits.records)")
        }
        var measure = RecordWriter(output: nil)
        write(contents, to: &measure)
        let whole = VaultHeader.bytes + measure.count + AESGCM.tagBytes
        guard whole <= VaultLimits.fileBytes else {
            throw VaultError(.tooLarge, "the vault would take \(whole) bytes, it may take \(VaultLimits.fileBytes)")
        }
        return Secret(count: measure.count) { output in
            var writer = RecordWriter(output: output)
            write(contents, to: &writer)
        }
    }

    static func decode(_ payload: Secret) throws(VaultError) -> VaultContents {
        try payload.withBytes { bytes throws(VaultError) in
            var reader = RecordReader(bytes: bytes)
            return try read(&reader)
        }
    }

    private static func write(_ contents: VaultContents, to writer: inout RecordWriter) {
        writer.append(format)
        writer.append(contents.generation)
        writer.append(UInt32(contents.recordCount))
        for (name, credential) in contents.credentials.sorted(by: { $0.key < $1.key }) {
            writer.record(.password) { writer in
                writer.field(name)
                writer.field(credential.user)
                writer.field(credential.password)
                writer.append(credential.generation)
            }
        }
        for (name, key) in contents.identityKeys.sorted(by: { $0.key < $1.key }) {
            writer.record(.identityKey) { writer in
                writer.field(name)
                writer.field(key.privateKey)
                for byte in key.leafSHA256 { writer.append(byte) }
            }
        }
        if let keys = contents.interception {
            writer.record(.interception) { writer in
                writer.field(keys.rootKey)
                writer.field(keys.issuingKey)
            }
        }
    }

    private static func read(_ reader: inout RecordReader) throws(VaultError) -> VaultContents {
        let written = try reader.number(UInt16.self)
        guard written == format else {
            throw VaultError(
                .newerVersion, "the vault's contents are in format \(written), this Countersign reads \(format)",
                hint: "use the Countersign that wrote it, or a later one")
        }
        let generation = try reader.number(UInt64.self)
        let count = try reader.number(UInt32.self)
        guard generation <= VaultLimits.generation else { throw RecordReader.malformed("generation \(generation)") }
        guard count <= VaultLimits.records else {
            throw VaultError(.tooLarge, "\(count) records, a vault holds \(VaultLimits.records)")
        }
        var parts = DecodedRecords()
        for _ in 0..<count {
            try readRecord(&reader, into: &parts, writtenIn: generation)
        }
        guard reader.isAtEnd else { throw RecordReader.malformed("bytes behind the last record") }
        return VaultContents(
            generation: generation, credentials: parts.credentials, identityKeys: parts.identityKeys,
            interception: parts.interception)
    }

    private static func readRecord(
        _ reader: inout RecordReader, into parts: inout DecodedRecords, writtenIn vaultGeneration: UInt64
    ) throws(VaultError) {
        let code = try reader.number(UInt8.self)
        var body = try reader.field()
        guard let kind = Kind(rawValue: code) else {
            throw VaultError(
                .newerVersion, "a record of kind \(code), which this Countersign does not know",
                hint: "use the Countersign that wrote it, or a later one")
        }
        switch kind {
        case .password:
            let name = try parts.name(of: kind, in: &body)
            let user = try body.text()
            let password = try body.secret(upTo: VaultLimits.passwordBytes)
            let generation = try body.number(UInt64.self)
            guard generation <= vaultGeneration else { throw RecordReader.malformed("a credential's generation") }
            guard VaultLimits.isUser(user) else { throw RecordReader.malformed("a user name") }
            parts.credentials[name] = PasswordCredential(
                name: name, user: user, password: password, generation: generation)
        case .identityKey:
            let name = try parts.name(of: kind, in: &body)
            let key = try body.secret(upTo: VaultLimits.keyBytes)
            let digest = Array(try body.take(VaultLimits.digestBytes))
            parts.identityKeys[name] = IdentityKey(name: name, privateKey: key, leafSHA256: digest)
        case .interception:
            guard parts.interception == nil else { throw RecordReader.malformed("a second interception CA") }
            parts.last = (kind, "")
            parts.interception = InterceptionKeys(
                rootKey: try body.secret(upTo: VaultLimits.keyBytes),
                issuingKey: try body.secret(upTo: VaultLimits.keyBytes))
        }
        guard body.isAtEnd else { throw RecordReader.malformed("a record of kind \(code) is too long") }
    }
}

/// What has been read so far, and the record that must come before the next one.
private struct DecodedRecords {
    var credentials: [String: PasswordCredential] = [:]
    var identityKeys: [String: IdentityKey] = [:]
    var interception: InterceptionKeys?
    var last: (kind: VaultRecords.Kind, name: String) = (.password, "")

    mutating func name(of kind: VaultRecords.Kind, in body: inout RecordReader) throws(VaultError) -> String {
        let name = try body.text()
        guard VaultLimits.isName(name) else { throw RecordReader.malformed("a record's name") }
        guard (last.kind.rawValue, last.name) < (kind.rawValue, name) else {
            throw RecordReader.malformed("records out of order")
        }
        last = (kind, name)
        return name
    }
}
