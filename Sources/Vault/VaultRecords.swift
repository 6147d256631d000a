// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography

/// The payload of a vault, integers big-endian:
///
///     2 bytes format, 1 · 8 bytes generation · 4 bytes number of records · the records
///     a record: 1 byte kind · 4 bytes length · its fields
///     a field of bytes: 4 bytes length · the bytes
///
///     kind 1, a password: name, user, password, 8 bytes generation
///     kind 2, an identity's key: name, PKCS#8 DER, 32 bytes SHA-256 of the leaf
///     kind 3, the interception CA: root key, issuing key, both PKCS#8 DER
///     kind 4, a trust decision: host, 2 bytes port, 32 bytes SHA-256 of the leaf, 1 byte answers (0 or 1), 8 bytes made,
///         1 byte whether there is an end (0 or 1), 8 bytes until where there is; both times in seconds since 1970
///     kind 5, an enrolment: name, server, subject, alternative names, kind of key, anchors, credential, identity, chain, 1 byte
///         whether a previous identity is kept (0 or 1) and then its PKCS#8 DER and chain, 8 bytes generation of the refused
///         credential, 4 bytes failures, 8 bytes last failure; several of a thing are 4 bytes number, then a field each
///     kind 6, a pending enrolment: name, PKCS#8 DER, 8 bytes created, 8 bytes retry at, 4 bytes attempts, 1 byte whether
///         it is a first one (0 or 1), PKCS#10 DER or nothing, 1 byte whether it is issued (0 or 1) and then its chain
///     kind 7, a key that stays in a token: name, URI, PIN, 32 bytes SHA-256 of the leaf; of an identity without a key of kind 2
///
/// Records stand in the order of their kinds, then of their names (kind 4: host, port and leaf), none twice: contents have one
/// encoding. A kind that is not known is refused, since a vault that dropped it when it is next written would lose what it
/// holds.
enum VaultRecords {
    static let format: UInt16 = 1

    enum Kind: UInt8 {
        case password = 1
        case identityKey = 2
        case interception = 3
        case trustDecision = 4
        case enrollment = 5
        case pendingEnrollment = 6
        case tokenKey = 7
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
        for decision in contents.trustDecisions {
            writer.record(.trustDecision) { writer in decision.write(to: &writer) }
        }
        for (_, record) in contents.enrollments.sorted(by: { $0.key < $1.key }) {
            writer.record(.enrollment) { $0.append(record) }
        }
        for (_, record) in contents.pendingEnrollments.sorted(by: { $0.key < $1.key }) {
            writer.record(.pendingEnrollment) { $0.append(record) }
        }
        for (_, key) in contents.tokenKeys.sorted(by: { $0.key < $1.key }) {
            writer.record(.tokenKey) { $0.append(key) }
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
        var contents = VaultContents(
            generation: generation, credentials: parts.credentials, identityKeys: parts.identityKeys,
            interception: parts.interception, trustDecisions: parts.trustDecisions)
        contents.enrollments = parts.enrollments
        contents.pendingEnrollments = parts.pendingEnrollments
        contents.tokenKeys = parts.tokenKeys
        return contents
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
            try parts.advance(to: (kind, ""))
            parts.interception = InterceptionKeys(
                rootKey: try body.secret(upTo: VaultLimits.keyBytes),
                issuingKey: try body.secret(upTo: VaultLimits.keyBytes))
        case .trustDecision:
            let decision = try TrustDecision(from: &body)
            try parts.advance(to: (kind, decision.order))
            parts.trustDecisions.append(decision)
        case .enrollment:
            let name = try parts.name(of: kind, in: &body)
            parts.enrollments[name] = try body.enrollment(named: name)
        case .pendingEnrollment:
            let name = try parts.name(of: kind, in: &body)
            parts.pendingEnrollments[name] = try body.pendingEnrollment(named: name)
        case .tokenKey:
            let name = try parts.name(of: kind, in: &body)
            guard parts.identityKeys[name] == nil else { throw RecordReader.malformed("two keys of one identity") }
            parts.tokenKeys[name] = try body.tokenKey(named: name)
        }
        guard body.isAtEnd else { throw RecordReader.malformed("a record of kind \(code) is too long") }
    }
}

/// What has been read so far, and the record that must come before the next one.
private struct DecodedRecords {
    var credentials: [String: PasswordCredential] = [:]
    var identityKeys: [String: IdentityKey] = [:]
    var interception: InterceptionKeys?
    var trustDecisions: [TrustDecision] = []
    var enrollments: [String: EnrollmentRecord] = [:]
    var pendingEnrollments: [String: PendingEnrollment] = [:]
    var tokenKeys: [String: TokenKey] = [:]
    var last: (kind: VaultRecords.Kind, name: String) = (.password, "")

    mutating func name(of kind: VaultRecords.Kind, in body: inout RecordReader) throws(VaultError) -> String {
        let name = try body.text()
        guard VaultLimits.isName(name) else { throw RecordReader.malformed("a record's name") }
        try advance(to: (kind, name))
        return name
    }

    mutating func advance(to next: (kind: VaultRecords.Kind, name: String)) throws(VaultError) {
        guard (last.kind.rawValue, last.name) < (next.kind.rawValue, next.name) else {
            throw RecordReader.malformed("records out of order")
        }
        last = next
    }
}
