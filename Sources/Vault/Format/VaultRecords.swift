// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCookies
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
        guard contents.recordCount <= VaultLimits.records else {
            throw VaultError(.tooLarge, "\(contents.recordCount) records, the limit is \(VaultLimits.records)")
        }
        var measure = RecordWriter(output: nil)
        write(contents, to: &measure)
        let whole = VaultHeader.bytes + measure.count + AESGCM.tagBytes
        guard whole <= VaultLimits.fileBytes else {
            throw VaultError(.tooLarge, "the vault would have \(whole) bytes, the limit is \(VaultLimits.fileBytes)")
        }
        return Secret(count: measure.count) { output in
            var writer = RecordWriter(output: output)
            write(contents, to: &writer)
        }
    }

    static func decode(_ payload: Secret) throws(VaultError) -> VaultContents {
        try payload.withBytes { bytes throws(VaultError) in
            var reader = RecordReader(bytes)
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
                // Every credential in the vault has a generation.
                writer.append(credential.generation ?? 0)
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
        for exception in contents.trustExceptions {
            writer.record(.trustException) { $0.append(exception) }
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
        for (kind, records) in contents.serverAnchors {
            for (name, anchors) in records {
                writer.record(kind) { $0.append(anchors, of: name) }
            }
        }
        for key in contents.pendingTokens { writer.record(.pendingToken) { $0.append(key) } }
        for (name, token) in contents.tokens.sorted(by: { $0.key < $1.key }) {
            writer.record(.bearerToken) { writer in
                writer.field(name)
                writer.field(token.stored)
                // Every token in the vault has a generation.
                writer.append(token.generation ?? 0)
            }
        }
        for (_, credential) in contents.principals.sorted(by: { $0.key < $1.key }) {
            writer.record(.principal) { $0.append(credential) }
        }
        for (_, record) in contents.signIns.sorted(by: { $0.key < $1.key }) {
            writer.record(.signIn) { $0.append(record) }
        }
        for (_, session) in contents.sessions.sorted(by: { $0.key < $1.key }) {
            writer.record(.session) { $0.append(session) }
        }
        if contents.hasOwnOrder {
            writer.record(.identityOrder) { writer in
                writer.append(UInt32(contents.identityOrder.count))
                for name in contents.identityOrder { writer.field(name) }
            }
        }
        if let key = contents.tagKey { writer.record(.tagKey) { $0.field(key) } }
        for (kind, records) in contents.owners {
            for (name, owner) in records {
                writer.record(kind) { $0.append(owner, of: name) }
            }
        }
        for (_, record) in contents.profiles.sorted(by: { $0.key < $1.key }) {
            writer.record(.profile) { $0.append(record) }
        }
        for (_, record) in contents.compliance.sorted(by: { $0.key < $1.key }) {
            writer.record(.compliance) { $0.append(record) }
        }
        for (_, record) in contents.wipes.sorted(by: { $0.key < $1.key }) {
            writer.record(.wipe) { $0.append(record) }
        }
        for (_, record) in contents.tokenPermissions.sorted(by: { $0.key < $1.key }) {
            writer.record(.tokenPermission) { $0.append(record) }
        }
        let programs = contents.programs.sorted { $0.key < $1.key }.map(\.value)
        for program in programs where program.written != .awsKeys { writer.record(.program) { $0.append(program) } }
        for (_, keys) in contents.awsKeys.sorted(by: { $0.key < $1.key }) {
            writer.record(.awsKeys) { $0.append(keys) }
        }
        for program in programs where program.written == .awsKeys {
            writer.record(.programOfAWSKeys) { $0.append(program) }
        }
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
        var parts = DecodedRecords()
        for _ in 0..<count {
            try readRecord(&reader, into: &parts, writtenIn: generation)
        }
        guard reader.isAtEnd else { throw RecordReader.malformed("bytes after the last record") }
        guard parts.pendingEnrollments.values.allSatisfy(VaultLimits.hasKey) else {
            throw RecordReader.malformed("a request without a key")
        }
        var contents = VaultContents(
            generation: generation, credentials: parts.credentials, identityKeys: parts.identityKeys,
            interception: parts.interception, trustExceptions: parts.trustExceptions)
        contents.principals = parts.principals
        contents.enrollments = parts.enrollments
        contents.pendingEnrollments = parts.pendingEnrollments
        contents.tokenKeys = parts.tokenKeys
        contents.tokens = parts.tokens
        contents.signIns = parts.signIns
        contents.sessions = parts.sessions
        contents.tagKey = parts.tagKey
        contents.profiles = parts.profiles
        contents.compliance = parts.compliance
        contents.wipes = parts.wipes
        contents.tokenPermissions = parts.tokenPermissions
        contents.programs = parts.programs
        contents.awsKeys = parts.awsKeys
        let names = (Array(parts.identityKeys.keys) + parts.tokenKeys.keys).sorted()
        contents.identityOrder = parts.identityOrder ?? names
        guard contents.identityOrder.sorted() == names else { throw RecordReader.malformed("the order of identities") }
        return contents
    }

    private static func readRecord(
        _ reader: inout RecordReader, into parts: inout DecodedRecords, writtenIn vaultGeneration: UInt64
    ) throws(VaultError) {
        let code = try reader.number(UInt8.self)
        var body = try reader.field()
        guard let kind = RecordKind(rawValue: code) else {
            throw VaultError(
                .newerVersion, "a record of kind \(code), which is unknown to this version of Countersign",
                hint: "use the version of Countersign that wrote it, or a newer one")
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
            let digest = Array(try body.bytes(VaultLimits.digestBytes))
            parts.identityKeys[name] = IdentityKey(name: name, privateKey: key, leafSHA256: digest)
        case .interception:
            try parts.advance(to: (kind, ""))
            parts.interception = InterceptionKeys(
                rootKey: try body.secret(upTo: VaultLimits.keyBytes),
                issuingKey: try body.secret(upTo: VaultLimits.keyBytes))
        case .trustException:
            let exception = try body.trustException()
            try parts.advance(to: (kind, exception.order))
            parts.trustExceptions.append(exception)
        case .enrollment:
            let name = try parts.name(of: kind, in: &body)
            parts.enrollments[name] = try body.enrollment(named: name)
        case .pendingEnrollment:
            let name = try parts.name(of: kind, in: &body)
            parts.pendingEnrollments[name] = try body.pendingEnrollment(named: name)
        case .tokenKey:
            let name = try parts.name(of: kind, in: &body)
            guard parts.identityKeys[name] == nil else { throw RecordReader.malformed("two keys for one identity") }
            parts.tokenKeys[name] = try body.tokenKey(named: name)
        case .enrollmentServer:
            let name = try parts.name(of: kind, in: &body)
            let anchors = try body.serverAnchors()
            guard parts.enrollments[name] != nil else { throw RecordReader.malformed("a server without an enrolment") }
            parts.enrollments[name]?.serverAnchors = anchors
        case .pendingServer:
            let name = try parts.name(of: kind, in: &body)
            let anchors = try body.serverAnchors()
            guard parts.pendingEnrollments[name]?.plan != nil else {
                throw RecordReader.malformed("a server without an enrolment")
            }
            parts.pendingEnrollments[name]?.plan?.serverAnchors = anchors
        case .pendingToken:
            let name = try parts.name(of: kind, in: &body)
            let key = try body.tokenKey(named: name)
            guard parts.pendingEnrollments[name]?.privateKey == PendingEnrollment.keyInToken else {
                throw RecordReader.malformed("a key in a token without a request")
            }
            parts.pendingEnrollments[name]?.set(token: key)
        case .bearerToken:
            let name = try parts.name(of: kind, in: &body)
            let token = try body.secret(upTo: VaultLimits.passwordBytes)
            let generation = try body.number(UInt64.self)
            guard generation <= vaultGeneration else { throw RecordReader.malformed("a credential's generation") }
            guard parts.credentials[name] == nil else { throw RecordReader.malformed("two credentials of one name") }
            guard TokenCredential.isStorable(token) else { throw RecordReader.malformed("a token") }
            parts.tokens[name] = TokenCredential(name: name, token: token, generation: generation)
        case .principal:
            let name = try parts.name(of: kind, in: &body)
            let credential = try body.principal(named: name, writtenIn: vaultGeneration)
            guard parts.credentials[name] == nil, parts.tokens[name] == nil else {
                throw RecordReader.malformed("two credentials of one name")
            }
            parts.principals[name] = credential
        case .signIn:
            let name = try parts.name(of: kind, in: &body)
            guard parts.tokens[name] != nil else { throw RecordReader.malformed("a sign-in without a token") }
            parts.signIns[name] = try body.signIn(named: name)
        case .session:
            let session = try body.session()
            // No group contains a space, and a space sorts before every character of a group.
            try parts.advance(to: (kind, "\(session.key.group) \(session.key.host)"))
            parts.sessions[session.key] = session
        case .identityOrder:
            try parts.advance(to: (kind, ""))
            var names: [String] = []
            for _ in 0..<(try body.number(UInt32.self)) { names.append(try body.text()) }
            guard names != names.sorted() else { throw RecordReader.malformed("the order of identities") }
            parts.identityOrder = names
        case .tagKey:
            try parts.advance(to: (kind, ""))
            let key = try body.secret(upTo: VaultLimits.digestBytes)
            guard key.count == VaultLimits.digestBytes else { throw RecordReader.malformed("the key of tags") }
            parts.tagKey = key
        case .enrollmentOwner:
            let name = try parts.name(of: kind, in: &body)
            let owner = try body.owner()
            guard parts.enrollments[name] != nil else { throw RecordReader.malformed("an owner without an enrolment") }
            parts.enrollments[name]?.owner = owner
        case .pendingOwner:
            let name = try parts.name(of: kind, in: &body)
            let owner = try body.owner()
            guard parts.pendingEnrollments[name]?.plan != nil else {
                throw RecordReader.malformed("an owner without an enrolment")
            }
            parts.pendingEnrollments[name]?.plan?.owner = owner
        case .profile:
            let record = try body.profile()
            try parts.advance(to: (kind, record.identifier))
            parts.profiles[record.identifier] = record
        case .compliance:
            let name = try parts.name(of: kind, in: &body)
            guard parts.signIns[name] != nil else { throw RecordReader.malformed("compliance without a sign-in") }
            parts.compliance[name] = try body.compliance(named: name)
        case .wipe:
            let name = try parts.name(of: kind, in: &body)
            parts.wipes[name] = try body.wipe(named: name)
        case .tokenPermission:
            let name = try parts.name(of: kind, in: &body)
            guard parts.signIns[name] != nil else { throw RecordReader.malformed("a permission without a sign-in") }
            parts.tokenPermissions[name] = TokenPermission(name: name, permitted: try body.time())
        case .program, .programOfAWSKeys:
            let name = try parts.newCredentialName(of: kind, in: &body)
            parts.programs[name] = try body.program(
                named: name, writesAWSKeys: kind == .programOfAWSKeys, writtenIn: vaultGeneration)
        case .awsKeys:
            let name = try parts.newCredentialName(of: kind, in: &body)
            parts.awsKeys[name] = try body.awsKeys(named: name, writtenIn: vaultGeneration)
        }
        guard body.isAtEnd else { throw RecordReader.malformed("a record of kind \(code) is too long") }
    }
}

/// The records read so far, and the kind and name that the next one must sort after.
private struct DecodedRecords {
    var credentials: [String: PasswordCredential] = [:]
    var principals: [String: PrincipalCredential] = [:]
    var identityKeys: [String: IdentityKey] = [:]
    var interception: InterceptionKeys?
    var trustExceptions: [TrustExceptionRecord] = []
    var enrollments: [String: EnrollmentRecord] = [:]
    var pendingEnrollments: [String: PendingEnrollment] = [:]
    var tokenKeys: [String: TokenKey] = [:]
    var tokens: [String: TokenCredential] = [:]
    var signIns: [String: SignInRecord] = [:]
    var sessions: [SharedSession.Key: SharedSession] = [:]
    var identityOrder: [String]?
    var tagKey: Secret?
    var profiles: [String: ProfileRecord] = [:]
    var compliance: [String: ComplianceRecord] = [:]
    var wipes: [String: WipeRecord] = [:]
    var tokenPermissions: [String: TokenPermission] = [:]
    var programs: [String: ProgramCredential] = [:]
    var awsKeys: [String: AWSCredential] = [:]
    var last: (kind: RecordKind, name: String) = (.password, "")

    mutating func name(of kind: RecordKind, in body: inout RecordReader) throws(VaultError) -> String {
        let name = try body.text()
        guard VaultLimits.isName(name) else { throw RecordReader.malformed("a record's name") }
        try advance(to: (kind, name))
        return name
    }

    /// A name that no credential has yet.
    mutating func newCredentialName(
        of kind: RecordKind, in body: inout RecordReader
    ) throws(VaultError) -> String {
        let name = try name(of: kind, in: &body)
        guard credentials[name] == nil, tokens[name] == nil, principals[name] == nil, programs[name] == nil,
            awsKeys[name] == nil
        else { throw RecordReader.malformed("two credentials of one name") }
        return name
    }

    mutating func advance(to next: (kind: RecordKind, name: String)) throws(VaultError) {
        guard (last.kind.rawValue, last.name) < (next.kind.rawValue, next.name) else {
            throw RecordReader.malformed("records out of order")
        }
        last = next
    }
}

// MARK: Kerberos principals

extension RecordWriter {
    mutating func append(_ credential: PrincipalCredential) {
        field(credential.name)
        field(credential.principal)
        if case .keys = credential.proof { append(1 as UInt8) } else { append(0 as UInt8) }
        field(credential.proof.secret)
        // Every credential in the vault has a generation.
        append(credential.generation ?? 0)
    }
}

extension RecordReader {
    /// The fields after the name.
    mutating func principal(
        named name: String, writtenIn vaultGeneration: UInt64
    ) throws(VaultError) -> PrincipalCredential {
        let principal = try text()
        let hasKeys = try flag()
        let secret = try secret(upTo: VaultLimits.passwordBytes)
        let generation = try number(UInt64.self)
        guard generation <= vaultGeneration else { throw Self.malformed("a principal's generation") }
        guard VaultLimits.isPrincipal(principal) else { throw Self.malformed("a principal") }
        return PrincipalCredential(
            name: name, principal: principal, proof: hasKeys ? .keys(secret) : .password(secret),
            source: .vault(generation: generation))
    }
}

// MARK: Trust exceptions

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

// MARK: Keys in tokens

extension RecordWriter {
    mutating func append(_ key: TokenKey) {
        field(key.name)
        field(key.uri)
        field(key.pin)
        for byte in key.leafSHA256 { append(byte) }
        append(UInt8(key.isPINRefused ? 1 : 0))
    }
}

extension RecordReader {
    /// The fields after the name.
    mutating func tokenKey(named name: String) throws(VaultError) -> TokenKey {
        let uri = try text()
        let pin = try secret(upTo: VaultLimits.pinBytes)
        var key = TokenKey(name: name, uri: uri, pin: pin, leafSHA256: Array(try bytes(VaultLimits.digestBytes)))
        key.isPINRefused = try flag()
        if let fault = key.fault { throw Self.malformed(fault) }
        return key
    }
}
