// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography

/// Limits of a vault and its records.
package enum VaultLimits {
    package static let fileBytes = 16 << 20
    package static let records = 10_000
    package static let nameBytes = 128
    package static let userBytes = 1024
    package static let hostBytes = 253
    package static let passwordBytes = 16 << 10
    package static let keyBytes = 64 << 10
    /// Half of the range of 64 bits, so that incrementing a stored generation cannot overflow.
    static let generation = UInt64(Int64.max)
    static let keyFileBytes = 4096
    static let digestBytes = 32

    /// Whether `name` is a valid name of a record: 1 to 128 of `A–Z a–z 0–9 . _ - @ +`, the first a letter or digit, so
    /// that it can also be a file name and a word in the allowed-sites list.
    package static func isName(_ name: some StringProtocol) -> Bool {
        guard let first = name.utf8.first, isAlphanumeric(first), name.utf8.count <= nameBytes else { return false }
        return name.utf8.allSatisfy { isAlphanumeric($0) || ".-_@+".utf8.contains($0) }
    }

    static func check(name: String) throws(VaultError) {
        guard isName(name) else {
            throw VaultError(
                .invalidRecord, "\(name.debugDescription) is not a name",
                hint: "a name has 1 to \(nameBytes) letters, digits and . _ - @ +, and begins with a letter or digit")
        }
    }

    /// Whether a record may name that host: 1 to 253 bytes of `a–z 0–9 - . _`, or an IPv6 address without brackets.
    /// Does not check that this is the canonical spelling.
    package static func isHost(_ host: some StringProtocol) -> Bool {
        (1...hostBytes).contains(host.utf8.count)
            && host.utf8.allSatisfy { isAlphanumeric($0) && !(0x41...0x5A).contains($0) || "-._:".utf8.contains($0) }
    }

    /// Whether a credential may have that user name: 1 to 1,024 bytes without control characters.
    package static func isUser(_ user: some StringProtocol) -> Bool {
        (1...userBytes).contains(user.utf8.count) && !user.utf8.contains { $0 < 0x20 || $0 == 0x7F }
    }

    static func check(user: String) throws(VaultError) {
        guard isUser(user) else {
            throw VaultError(
                .invalidRecord, "the user name is empty, longer than \(userBytes) bytes, or has a control character")
        }
    }

    /// Whether a credential may be for that Kerberos principal: a name, an `@` and a realm, as for a user name.
    package static func isPrincipal(_ principal: String) -> Bool {
        isUser(principal) && PrincipalCredential.realm(of: principal) != nil
    }

    static func check(principal: String) throws(VaultError) {
        guard isPrincipal(principal) else {
            throw VaultError(
                .invalidRecord, "\(principal.debugDescription) is not a Kerberos principal",
                hint: "a principal has a name and a realm: jdoe@CORP.EXAMPLE")
        }
    }

    static func check(_ secret: Secret, _ what: String, upTo limit: Int) throws(VaultError) {
        guard (1...limit).contains(secret.count) else {
            throw VaultError(.invalidRecord, "the \(what) is empty or longer than \(limit) bytes")
        }
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: false
        }
    }
}

// MARK: Enrolments and tokens

extension VaultLimits {
    package static let tokenURIBytes = 4096
    package static let pinBytes = 256
    static let serverBytes = 2048
    static let subjectBytes = 1024
    static let alternativeNames = 64
    static let alternativeNameBytes = 1100
    static let keySpecificationBytes = 32
    /// In a chain, or among the trust anchors of a server.
    package static let certificates = 32
    package static let certificateBytes = 64 << 10

    static func check(_ record: EnrollmentRecord) throws(VaultError) {
        try check(name: record.name)
        for name in [record.credential, record.identity] {
            if let name { try check(name: name) }
        }
        if let previous = record.previous {
            try check(previous.privateKey, "private key", upTo: keyBytes)
        }
        guard let fault = fault(of: record) else { return }
        throw VaultError(.invalidRecord, "the enrolment of \(record.name.debugDescription) has \(fault)")
    }

    static func check(_ record: PendingEnrollment) throws(VaultError) {
        try check(name: record.name)
        try check(record.privateKey, "private key", upTo: keyBytes)
        if let plan = record.plan { try check(plan) }
        guard hasKey(record) else {
            throw VaultError(.invalidRecord, "the request for \(record.name.debugDescription) has no key")
        }
        if let token = record.token {
            try check(token.pin, "PIN", upTo: pinBytes)
            if let fault = token.fault { throw VaultError(.invalidRecord, fault) }
        }
        guard let fault = fault(of: record) else { return }
        throw VaultError(.invalidRecord, "the request for \(record.name.debugDescription) has \(fault)")
    }

    /// Why the record cannot be stored, names and secrets not considered; nil if it can.
    static func fault(of record: EnrollmentRecord) -> String? {
        if !isLine(record.server, upTo: serverBytes) { return "a server that is not one line of text" }
        if !isLine(record.subject, upTo: subjectBytes) { return "a subject that is not one line of text" }
        if !isLine(record.keySpecification, upTo: keySpecificationBytes) {
            return "a kind of key that is not one line of text"
        }
        if record.alternativeNames.count > alternativeNames { return "more than \(alternativeNames) alternative names" }
        if !record.alternativeNames.allSatisfy({ isLine($0, upTo: alternativeNameBytes) }) {
            return "an alternative name that is not one line of text"
        }
        if !isCertificates(record.anchors, atLeast: 0) || !isCertificates(record.chain, atLeast: 0) {
            return "too many or too large certificates"
        }
        if !areValid(record.serverAnchors) { return "too many or too large anchors of its server" }
        if let previous = record.previous, !isCertificates(previous.chain, atLeast: 1) {
            return "a previous identity without a valid chain"
        }
        if let owner = record.owner, !isValid(owner) { return "a sign-in without an identifier" }
        if record.refusedCredential > generation || record.lastFailure < 0 { return "a number out of range" }
        return nil
    }

    static func fault(of record: PendingEnrollment) -> String? {
        if case .issued(let chain) = record.state, !isCertificates(chain, atLeast: 1) {
            return "too many or too large certificates"
        }
        if record.request.count > certificateBytes { return "a certification request that is too large" }
        if let plan = record.plan, plan.name != record.name { return "a plan for another name" }
        if let token = record.token, token.name != record.name { return "a token's key for another name" }
        return record.created < 0 || record.retryAt < 0 ? "a number out of range" : nil
    }

    /// Whether the key is in the vault or in a token, and not both.
    static func hasKey(_ record: PendingEnrollment) -> Bool {
        (record.privateKey == PendingEnrollment.keyInToken) == (record.token != nil)
    }

    static func areValid(_ anchors: EnrollmentRecord.ServerAnchors) -> Bool {
        if case .own(let certificates) = anchors { isCertificates(certificates, atLeast: 1) } else { true }
    }

    static func isValid(_ owner: EnrollmentRecord.Owner) -> Bool {
        isLine(owner.signIn, upTo: signInLineBytes) && owner.refusedToken <= generation
    }

    private static func isLine(_ text: String, upTo limitBytes: Int) -> Bool {
        (1...limitBytes).contains(text.utf8.count) && !text.utf8.contains { $0 < 0x20 || $0 == 0x7F }
    }

    private static func isCertificates(_ certificates: [[UInt8]], atLeast least: Int) -> Bool {
        (least...Self.certificates).contains(certificates.count)
            && certificates.allSatisfy { (1...certificateBytes).contains($0.count) }
    }
}
