// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The encrypted payload of a vault. Integers are big-endian:
///
///     2 bytes format, 1 · 8 bytes generation · 4 bytes number of records · the records
///     a record: 1 byte kind · 4 bytes length · its fields
///     a field of bytes: 4 bytes length · the bytes
///
///     kind 1, a password: name, user, password, 8 bytes generation
///     kind 2, an identity's key: name, PKCS#8 DER, 32 bytes SHA-256 of the leaf
///     kind 3, the interception CA: root key, issuing key, both PKCS#8 DER
///     kind 4, a trust exception: host, 2 bytes port, 32 bytes SHA-256 of the leaf, 1 byte answers (0 or 1),
///         8 bytes made, 1 byte whether it ends (0 or 1), 8 bytes until if it does; both times in seconds since 1970
///     kind 5, an enrolment: name, server, subject, alternative names, kind of key, anchors, credential, identity,
///         chain, 1 byte whether there is a previous identity (0 or 1) and then its PKCS#8 DER and chain, 8 bytes
///         generation of the refused credential, 4 bytes failures, 8 bytes last failure; a list is 4 bytes number,
///         then one field per element
///     kind 6, a pending enrolment: name, PKCS#8 DER, 8 bytes created, 8 bytes retry at, 4 bytes attempts, 1 byte
///         whether it has an enrolment of its own (0 or 1) and then that as in kind 5, PKCS#10 DER or nothing, 1 byte
///         whether it is issued (0 or 1) and then its chain
///     kind 7, a key that stays in a token: name, URI, PIN, 32 bytes SHA-256 of the leaf, 1 byte whether the token
///         has refused the PIN (0 or 1); only for an identity without a key of kind 2
///     kind 8, what verifies the server of an enrolment of kind 5, unless its anchors do: name, 1 byte 1 for other
///         anchors or 2 for the system's, list of the other anchors
///     kind 9, the same for the enrolment in a record of kind 6
///     kind 10, the key of a record of kind 6 that stays in a token, with the fields of kind 7; the PKCS#8 in kind 6 is
///         one zero byte then, and only then
///     kind 11, a bearer token: name, token, 8 bytes generation; no password has the same name
///     kind 12, a Kerberos principal: name, principal, 1 byte whether it has keys in place of a password (0 or 1), the
///         password or the keys, 8 bytes generation; no password or token has the same name
///     kind 13, a sign-in: name, profile, source, issuer, subject, account, scope, list of lines for sites, refresh
///         token and ID token, each after 1 byte whether there is one (0 or 1), 8 bytes signed in, 8 bytes expires,
///         why it has ended, 4 bytes failures, 8 bytes last failure, 8 bytes obtained, identifier, 8 bytes renewed,
///         1 byte whether the list of sites is not written (0 or 1) and then a list of former lines, the kind of user
///         agent if it is known; 1 byte whether the client has a secret (0 or 1), the secret, and a list of tokens for
///         one site, if there is either; earlier versions end at last failure, at obtained or at the user agent; there
///         is a token of kind 11 with the same name
///     kind 14, a shared session: group, host, list of cookies: name, value, domain, path, 1 byte each whether it is
///         for the host only, Secure and HttpOnly (0 or 1), 1 byte SameSite (0 not given, 1 None, 2 Lax, 3 Strict), 1
///         byte whether it expires (0 or 1), 8 bytes expires if it does, 8 bytes stored; at least one cookie
///     kind 16, the order in which the identities with a key were added, if that is not the order of their names: a
///         list of all their names
///     kind 17, the key of the breaker's tags: 32 bytes in a field; only in a vault that has been rekeyed
///     kind 18, the sign-in that an enrolment of kind 5 belongs to: name, identifier of the sign-in, 8 bytes generation
///         of the refused access token
///     kind 19, the same for the enrolment in a record of kind 6
///     kind 20, a configuration profile: identifier, name, organization, 1 byte whether it is signed (0 or 1) and then
///         the signer's subject, 32 bytes SHA-256 of the signer's certificate and 1 byte whether that was trusted (0 or
///         1), 8 bytes installed, 1 byte whether a sign-in has brought it (0 or 1) and then that sign-in's name and 1
///         byte whether it is not stored yet (0 or 1), list of anchors: 32 bytes SHA-256 and the file or nothing, list
///         of identities: name, 32 bytes SHA-256 of the leaf and 1 byte whether the profile has brought it (0 or 1), 1
///         byte whether it has an enrolment (0 or 1) and then name and server, 1 byte whether files are to be changed
///         (0 or 1) and then a list of files to write: name and bytes, a list of files to remove, 1 byte whether the
///         record is to be removed afterwards (0 or 1)
///     kind 21, whether the device complies, of a sign-in of kind 13: name, home account, 1 byte status (0 to 5),
///         title, message, page, 8 bytes checked, 8 bytes confirmed; earlier versions end at checked
///     kind 22, a wipe that has begun: name, identifier of the sign-in, 8 bytes begun, list of lines for sites, group
///         and host of a shared session, both empty without one
///     kind 24, the permission to give out the access token of a sign-in of kind 13: name, 8 bytes permitted
///     kind 25, a password or bearer token that a program writes: name, user or nothing for a token, list of words, 8
///         bytes seconds for which it is kept or 0 without an end, 8 bytes generation; no password, token or principal
///         has the same name
///     kind 26, keys of AWS: name, access key ID, secret access key, 1 byte whether there is a session token (0 or 1)
///         and then the token, 1 byte whether they expire (0 or 1) and then 8 bytes expires, 8 bytes generation; no
///         credential of another kind has the same name
///     kind 27, keys of AWS that a program writes: as kind 25 without the user
///
/// Records are sorted by kind, then by name (kind 4: host, port and leaf; kind 14: group and host; kind 20:
/// identifier), and no two are the same in these: contents have exactly one encoding. An unknown kind is an error.
/// Ignoring it would lose the record when the vault is written again.
enum VaultRecords {
    static let format: UInt16 = 1

    static func encode(_ contents: VaultContents) throws(VaultError) -> Secret {
        let recordCount = contents.recordCount
        guard recordCount <= VaultLimits.records else {
            throw VaultError(.tooLarge, "\(recordCount) records, the limit is \(VaultLimits.records)")
        }
        var measure = RecordWriter(output: nil)
        write(contents, recordCount, to: &measure)
        let whole = VaultHeader.bytes + measure.count + AESGCM.tagBytes
        guard whole <= VaultLimits.fileBytes else {
            throw VaultError(.tooLarge, "the vault would have \(whole) bytes, the limit is \(VaultLimits.fileBytes)")
        }
        return Secret(count: measure.count) { output in
            var writer = RecordWriter(output: output)
            write(contents, recordCount, to: &writer)
        }
    }

    static func decode(_ payload: Secret) throws(VaultError) -> VaultContents {
        try payload.withBytes { bytes throws(VaultError) in
            var reader = RecordReader(bytes)
            return try read(&reader)
        }
    }

    private static func write(_ contents: VaultContents, _ recordCount: Int, to writer: inout RecordWriter) {
        writer.append(format)
        writer.append(contents.generation)
        writer.append(UInt32(recordCount))
        for records in RecordFormat.all { records.write(contents, &writer) }
    }

    private static func read(_ reader: inout RecordReader) throws(VaultError) -> VaultContents {
        let written = try reader.number(UInt16.self)
        guard written == format else {
            throw VaultError(
                .newerVersion,
                "the vault's contents have format \(written), this version of Countersign reads format \(format)",
                hint: "use the version of Countersign that wrote it, or a newer one")
        }
        let generation = try reader.number(UInt64.self)
        let count = try reader.number(UInt32.self)
        guard generation <= VaultLimits.generation else { throw RecordReader.malformed("generation \(generation)") }
        guard count <= VaultLimits.records else {
            throw VaultError(.tooLarge, "\(count) records, the limit is \(VaultLimits.records)")
        }
        var parts = DecodedRecords(generation: generation)
        for _ in 0..<count { try readRecord(&reader, into: &parts) }
        guard reader.isAtEnd else { throw RecordReader.malformed("bytes after the last record") }
        return try parts.contents()
    }

    private static func readRecord(
        _ reader: inout RecordReader, into parts: inout DecodedRecords
    ) throws(VaultError) {
        let code = try reader.number(UInt8.self)
        var body = try reader.field()
        guard let records = RecordFormat.of(code) else {
            throw VaultError(
                .newerVersion, "a record of kind \(code), which is unknown to this version of Countersign",
                hint: "use the version of Countersign that wrote it, or a newer one")
        }
        try records.read(&body, &parts)
        guard body.isAtEnd else { throw RecordReader.malformed("a record of kind \(code) is too long") }
    }
}

extension VaultContents {
    /// The number of records in the encoded contents.
    package var recordCount: Int {
        var measure = RecordWriter(output: nil)
        for records in RecordFormat.all { records.write(self, &measure) }
        return measure.recordCount
    }
}
