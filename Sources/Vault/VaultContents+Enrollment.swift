// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

extension VaultContents {
    /// Keeps how an identity is enrolled, in the place of any record of that name. Throws `invalidRecord` for a value out of
    /// ``VaultLimits``.
    package mutating func setEnrollment(_ record: EnrollmentRecord) throws(VaultError) {
        try VaultLimits.check(record)
        advance()
        enrollments[record.name] = record
    }

    /// Whether there was an enrolment of that name to remove.
    @discardableResult
    package mutating func removeEnrollment(named name: String) -> Bool {
        guard enrollments.removeValue(forKey: name) != nil else { return false }
        advance()
        return true
    }

    /// Keeps a certificate that is on its way, in the place of any of that name. Throws `invalidRecord` for a value out of
    /// ``VaultLimits``.
    package mutating func setPendingEnrollment(_ record: PendingEnrollment) throws(VaultError) {
        try VaultLimits.check(record)
        advance()
        pendingEnrollments[record.name] = record
    }

    /// Whether there was a certificate of that name on its way.
    @discardableResult
    package mutating func removePendingEnrollment(named name: String) -> Bool {
        guard pendingEnrollments.removeValue(forKey: name) != nil else { return false }
        advance()
        return true
    }
}

extension VaultLimits {
    static let serverBytes = 2048
    static let subjectBytes = 1024
    static let alternativeNames = 64
    static let alternativeNameBytes = 1100
    static let keySpecificationBytes = 32
    /// In a chain, or among a server's anchors.
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
        guard let fault = fault(of: record) else { return }
        throw VaultError(.invalidRecord, "the request for \(record.name.debugDescription) has \(fault)")
    }

    /// What of the record no vault holds, its names and secrets left out.
    static func fault(of record: EnrollmentRecord) -> String? {
        if !isLine(record.server, upTo: serverBytes) { return "a server that is no line of text" }
        if !isLine(record.subject, upTo: subjectBytes) { return "a subject that is no line of text" }
        if !isLine(record.keySpecification, upTo: keySpecificationBytes) { return "no kind of key" }
        if record.alternativeNames.count > alternativeNames { return "more than \(alternativeNames) names" }
        if !record.alternativeNames.allSatisfy({ isLine($0, upTo: alternativeNameBytes) }) {
            return "an alternative name that is no line of text"
        }
        if !isCertificates(record.anchors, atLeast: 0) || !isCertificates(record.chain, atLeast: 0) {
            return "too many or too large certificates"
        }
        if let previous = record.previous, !isCertificates(previous.chain, atLeast: 1) {
            return "no chain for the identity that is kept"
        }
        if record.refusedCredential > generation || record.lastFailure < 0 { return "a number out of range" }
        return nil
    }

    static func fault(of record: PendingEnrollment) -> String? {
        if case .issued(let chain) = record.state, !isCertificates(chain, atLeast: 1) {
            return "too many or too large certificates"
        }
        if record.request.count > certificateBytes { return "too large a certification request" }
        if let plan = record.plan, plan.name != record.name { return "a plan for another name" }
        return record.created < 0 || record.retryAt < 0 ? "a number out of range" : nil
    }

    private static func isLine(_ text: String, upTo limitBytes: Int) -> Bool {
        (1...limitBytes).contains(text.utf8.count) && !text.utf8.contains { $0 < 0x20 || $0 == 0x7F }
    }

    private static func isCertificates(_ certificates: [[UInt8]], atLeast least: Int) -> Bool {
        (least...Self.certificates).contains(certificates.count)
            && certificates.allSatisfy { (1...certificateBytes).contains($0.count) }
    }
}
