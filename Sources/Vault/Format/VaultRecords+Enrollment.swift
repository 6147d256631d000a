// SPDX-License-Identifier: Apache-2.0

extension RecordWriter {
    mutating func append(_ record: EnrollmentRecord) {
        field(record.name)
        field(record.server)
        field(record.subject)
        append(UInt32(record.alternativeNames.count))
        for name in record.alternativeNames { field(name) }
        field(record.keySpecification)
        append(certificates: record.anchors)
        field(record.credential ?? "")
        field(record.identity ?? "")
        append(certificates: record.chain)
        append(UInt8(record.previous == nil ? 0 : 1))
        if let previous = record.previous {
            field(previous.privateKey)
            append(certificates: previous.chain)
        }
        append(record.refusedCredential)
        append(record.failures)
        append(UInt64(bitPattern: record.lastFailure))
    }

    mutating func append(_ record: PendingEnrollment) {
        field(record.name)
        field(record.privateKey)
        append(UInt64(bitPattern: record.created))
        append(UInt64(bitPattern: record.retryAt))
        append(record.attempts)
        append(UInt8(record.plan == nil ? 0 : 1))
        if let plan = record.plan { append(plan) }
        append(bytes: record.request)
        switch record.state {
        case .requested:
            append(UInt8(0))
        case .issued(let chain):
            append(UInt8(1))
            append(certificates: chain)
        }
    }

    mutating func append(_ anchors: EnrollmentRecord.ServerAnchors, of name: String) {
        field(name)
        switch anchors {
        case .same: break
        case .own(let certificates):
            append(UInt8(1))
            append(certificates: certificates)
        case .implicit:
            append(UInt8(2))
            append(certificates: [])
        }
    }

    mutating func append(_ owner: EnrollmentRecord.Owner, of name: String) {
        field(name)
        field(owner.signIn)
        append(owner.refusedToken)
    }

    private mutating func append(certificates: [[UInt8]]) {
        append(UInt32(certificates.count))
        for certificate in certificates { append(bytes: certificate) }
    }

    private mutating func append(bytes: [UInt8]) {
        append(UInt32(bytes.count))
        for byte in bytes { append(byte) }
    }
}

extension RecordReader {
    /// The fields after the name.
    mutating func enrollment(named name: String) throws(VaultError) -> EnrollmentRecord {
        let (server, subject) = (try text(), try text())
        var alternativeNames: [String] = []
        for _ in 0..<(try count(upTo: VaultLimits.alternativeNames)) { alternativeNames.append(try text()) }
        let keySpecification = try text()
        let anchors = try certificates()
        let (credential, identity) = (try nameIfThere(), try nameIfThere())
        var record = EnrollmentRecord(
            name: name, server: server, subject: subject, alternativeNames: alternativeNames,
            keySpecification: keySpecification, anchors: anchors, credential: credential, identity: identity)
        record.chain = try certificates()
        if try flag() {
            let key = try secret(upTo: VaultLimits.keyBytes)
            record.previous = PreviousIdentity(privateKey: key, chain: try certificates())
        }
        record.refusedCredential = try number(UInt64.self)
        record.failures = try number(UInt32.self)
        record.lastFailure = Int64(bitPattern: try number(UInt64.self))
        if let fault = VaultLimits.fault(of: record) { throw Self.malformed("an enrolment with \(fault)") }
        return record
    }

    /// The fields after the name.
    mutating func pendingEnrollment(named name: String) throws(VaultError) -> PendingEnrollment {
        let key = try secret(upTo: VaultLimits.keyBytes)
        let created = Int64(bitPattern: try number(UInt64.self))
        var record = PendingEnrollment(name: name, privateKey: key, created: created)
        record.retryAt = Int64(bitPattern: try number(UInt64.self))
        record.attempts = try number(UInt32.self)
        if try flag() { record.plan = try enrollment(named: try text()) }
        record.request = Array(try bytes(try count(upTo: VaultLimits.certificateBytes)))
        record.state = try flag() ? .issued(chain: try certificates()) : .requested
        if let fault = VaultLimits.fault(of: record) { throw Self.malformed("a request with \(fault)") }
        return record
    }

    /// The fields after the name.
    mutating func serverAnchors() throws(VaultError) -> EnrollmentRecord.ServerAnchors {
        let kind = try number(UInt8.self)
        let certificates = try certificates()
        let anchors: EnrollmentRecord.ServerAnchors? =
            switch (kind, certificates.isEmpty) {
            case (1, false): .own(certificates)
            case (2, true): .implicit
            default: nil
            }
        guard let anchors, VaultLimits.areValid(anchors) else { throw Self.malformed("the anchors of a server") }
        return anchors
    }

    /// The fields after the name.
    mutating func owner() throws(VaultError) -> EnrollmentRecord.Owner {
        var owner = EnrollmentRecord.Owner(signIn: try text())
        owner.refusedToken = try number(UInt64.self)
        guard VaultLimits.isValid(owner) else { throw Self.malformed("the sign-in of an enrolment") }
        return owner
    }

    private mutating func nameIfThere() throws(VaultError) -> String? {
        let name = try text()
        guard !name.isEmpty else { return nil }
        guard VaultLimits.isName(name) else { throw Self.malformed("a reference to an invalid name") }
        return name
    }

    private mutating func count(upTo limit: Int) throws(VaultError) -> Int {
        let count = Int(try number(UInt32.self))
        guard count <= limit else { throw Self.malformed("a count of \(count), the limit is \(limit)") }
        return count
    }

    private mutating func certificates() throws(VaultError) -> [[UInt8]] {
        var certificates: [[UInt8]] = []
        for _ in 0..<(try count(upTo: VaultLimits.certificates)) {
            certificates.append(Array(try bytes(try count(upTo: VaultLimits.certificateBytes))))
        }
        return certificates
    }
}
