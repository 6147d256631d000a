// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCookies
import CountersignCryptography

/// The records read so far, and the kind and name that the next one must sort after.
struct DecodedRecords {
    /// That of the vault: no record has a later one.
    let generation: UInt64
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
    private var last: (kind: RecordKind, name: String) = (.password, "")

    init(generation: UInt64) { self.generation = generation }

    mutating func name(of kind: RecordKind, in body: inout RecordReader) throws(VaultError) -> String {
        let name = try body.text()
        guard VaultLimits.isName(name) else { throw RecordReader.malformed("a record's name") }
        try advance(to: (kind, name))
        return name
    }

    /// Throws `altered` if a credential of any kind has the name.
    func checkIsNewCredential(_ name: String) throws(VaultError) {
        guard credentials[name] == nil, tokens[name] == nil, principals[name] == nil, programs[name] == nil,
            awsKeys[name] == nil
        else { throw RecordReader.malformed("two credentials of one name") }
    }

    mutating func advance(to next: (kind: RecordKind, name: String)) throws(VaultError) {
        guard (last.kind.rawValue, last.name) < (next.kind.rawValue, next.name) else {
            throw RecordReader.malformed("records out of order")
        }
        last = next
    }

    /// A generation, which is not later than the vault's.
    func generation(in body: inout RecordReader) throws(VaultError) -> UInt64 {
        let number = try body.number(UInt64.self)
        guard number <= generation else { throw RecordReader.malformed("a credential's generation") }
        return number
    }

    /// All of them as contents. Throws `altered` if one lacks another.
    func contents() throws(VaultError) -> VaultContents {
        guard pendingEnrollments.values.allSatisfy(VaultLimits.hasKey) else {
            throw RecordReader.malformed("a request without a key")
        }
        var contents = VaultContents(
            generation: generation, credentials: credentials, identityKeys: identityKeys,
            interception: interception, trustExceptions: trustExceptions)
        contents.principals = principals
        contents.enrollments = enrollments
        contents.pendingEnrollments = pendingEnrollments
        contents.tokenKeys = tokenKeys
        contents.tokens = tokens
        contents.signIns = signIns
        contents.sessions = sessions
        contents.tagKey = tagKey
        contents.profiles = profiles
        contents.compliance = compliance
        contents.wipes = wipes
        contents.tokenPermissions = tokenPermissions
        contents.programs = programs
        contents.awsKeys = awsKeys
        let names = (Array(identityKeys.keys) + tokenKeys.keys).sorted()
        contents.identityOrder = identityOrder ?? names
        guard contents.identityOrder.sorted() == names else { throw RecordReader.malformed("the order of identities") }
        return contents
    }
}
