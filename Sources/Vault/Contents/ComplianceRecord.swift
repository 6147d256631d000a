// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The last known state of a device's compliance with the policy of a sign-in's organisation.
package struct ComplianceRecord: Equatable, Sendable {
    /// The name of the sign-in.
    package let name: String
    /// `homeAccountId`, `ObjectId.TenantId`; empty if the provider has not said.
    package var homeAccount: String
    /// 0: the device complies. From 1 to 5: why no challenge of the sign-in is answered, with the numbers of
    /// `ComplianceStatus`.
    package var status: UInt8
    /// For a person, in one line; empty for a device that complies.
    package var title: String
    /// For a person, in one line; empty for a device that complies.
    package var message: String
    /// The https URL of the page on which a person can make the device comply; empty if unknown.
    package var page: String
    /// When that became known, in seconds since 1970.
    package var checked: Int64
    /// When the device was last known to comply, in seconds since 1970; 0 if an earlier version has not stored it.
    package var confirmed: Int64

    /// Without `confirmed`, a device that complies was confirmed when that became known.
    package init(
        name: String, homeAccount: String, status: UInt8 = 0, title: String = "", message: String = "",
        page: String = "", checked: Int64, confirmed: Int64? = nil
    ) {
        self.name = name
        self.homeAccount = homeAccount
        self.status = status
        self.title = title
        self.message = message
        self.page = page
        self.checked = checked
        self.confirmed = confirmed ?? (status == 0 ? checked : 0)
    }

    package var isCompliant: Bool { status == 0 }
}

/// A wipe that has begun. As long as this record exists, the wipe has to be completed, even if much has been removed
/// already.
package struct WipeRecord: Equatable, Sendable {
    /// The name of the sign-in, which may be gone already.
    package let name: String
    /// Of the sign-in, so that another one of that name is not wiped.
    package let identifier: String
    /// When the wipe began, in seconds since 1970.
    package let begun: Int64
    /// The lines that the sign-in has added to the list of sites.
    package let sites: [String]
    /// The group and host of the session that the sign-in shares; both empty if it shares none.
    package let sessionGroup: String
    package let sessionHost: String

    package init(
        name: String, identifier: String, begun: Int64, sites: [String], sessionGroup: String, sessionHost: String
    ) {
        self.name = name
        self.identifier = identifier
        self.begun = begun
        self.sites = sites
        self.sessionGroup = sessionGroup
        self.sessionHost = sessionHost
    }
}

extension VaultContents {
    /// Stores the compliance record of a sign-in. Throws `invalidRecord` for a value outside ``VaultLimits``, and if
    /// there is no sign-in of that name.
    package mutating func setCompliance(_ record: ComplianceRecord) throws(VaultError) {
        if let fault = VaultLimits.fault(of: record) {
            throw VaultError(.invalidRecord, "the compliance of \(record.name.debugDescription) has \(fault)")
        }
        guard signIns[record.name] != nil else {
            throw VaultError(.invalidRecord, "there is no sign-in \(record.name.debugDescription)")
        }
        guard compliance[record.name] != record else { return }
        advance()
        compliance[record.name] = record
    }

    /// Removes the compliance record of a sign-in.
    package mutating func removeCompliance(of name: String) {
        guard compliance.removeValue(forKey: name) != nil else { return }
        advance()
    }

    /// Records that a wipe has begun. Throws `invalidRecord` for a value outside ``VaultLimits``.
    package mutating func setWipe(_ record: WipeRecord) throws(VaultError) {
        if let fault = VaultLimits.fault(of: record) {
            throw VaultError(.invalidRecord, "the wipe of \(record.name.debugDescription) has \(fault)")
        }
        guard wipes[record.name] != record else { return }
        advance()
        wipes[record.name] = record
    }

    /// The wipe is complete.
    package mutating func removeWipe(named name: String) {
        guard wipes.removeValue(forKey: name) != nil else { return }
        advance()
    }
}

extension VaultLimits {
    static let complianceStatuses: ClosedRange<UInt8> = 0...5

    /// Why the record cannot be stored; nil if it can.
    static func fault(of record: ComplianceRecord) -> String? {
        if !isName(record.name) { return "a name that is not one" }
        if !complianceStatuses.contains(record.status) { return "an unknown status" }
        if ![record.homeAccount, record.title, record.message, record.page].allSatisfy(isSignInLine) {
            return "a value that is not one line of text"
        }
        return record.checked < 0 || record.confirmed < 0 ? "a time before 1970" : nil
    }

    /// Why the record cannot be stored; nil if it can.
    static func fault(of record: WipeRecord) -> String? {
        if !isName(record.name) { return "a name that is not one" }
        if !([record.identifier, record.sessionGroup, record.sessionHost] + record.sites).allSatisfy(isSignInLine) {
            return "a value that is not one line of text"
        }
        if record.sites.count > wipedSites { return "more than \(wipedSites) sites" }
        return record.begun < 0 ? "a time before 1970" : nil
    }
}

extension RecordWriter {
    mutating func append(_ record: ComplianceRecord) {
        field(record.name)
        field(record.homeAccount)
        append(record.status)
        for text in [record.title, record.message, record.page] { field(text) }
        append(UInt64(clamping: record.checked))
        append(UInt64(clamping: record.confirmed))
    }

    mutating func append(_ record: WipeRecord) {
        field(record.name)
        field(record.identifier)
        append(UInt64(clamping: record.begun))
        append(lines: record.sites)
        field(record.sessionGroup)
        field(record.sessionHost)
    }
}

extension RecordReader {
    /// The fields after the name.
    mutating func compliance(named name: String) throws(VaultError) -> ComplianceRecord {
        let record = ComplianceRecord(
            name: name, homeAccount: try text(), status: try number(UInt8.self), title: try text(),
            message: try text(), page: try text(), checked: try time(), confirmed: isAtEnd ? nil : try time())
        if let fault = VaultLimits.fault(of: record) { throw Self.malformed("compliance with \(fault)") }
        return record
    }

    /// The fields after the name.
    mutating func wipe(named name: String) throws(VaultError) -> WipeRecord {
        let record = WipeRecord(
            name: name, identifier: try text(), begun: try time(),
            sites: try lines(upTo: VaultLimits.wipedSites), sessionGroup: try text(),
            sessionHost: try text())
        if let fault = VaultLimits.fault(of: record) { throw Self.malformed("a wipe with \(fault)") }
        return record
    }
}
