// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// An installed configuration profile, with exactly the items that it has installed. Its keys are records of their own.
package struct ProfileRecord: Equatable, Sendable, Codable {
    /// Who has signed the profile.
    package struct Signer: Equatable, Sendable, Codable {
        /// The subject of the signing certificate.
        package var subject: String
        /// SHA-256 of the signing certificate's DER, 32 bytes.
        package var sha256: [UInt8]
        /// Whether the certificate led to an anchor when the profile was installed.
        package var isTrusted: Bool

        package init(subject: String, sha256: [UInt8], isTrusted: Bool) {
            self.subject = subject
            self.sha256 = sha256
            self.isTrusted = isTrusted
        }
    }

    /// The sign-in that has installed the profile.
    package struct Owner: Equatable, Sendable, Codable {
        package var signIn: String
        /// The sign-in is not stored yet: if it never is, the profile is removed.
        package var isPending: Bool

        package init(signIn: String, isPending: Bool) {
            self.signIn = signIn
            self.isPending = isPending
        }
    }

    /// A trust anchor that the profile contains.
    package struct Anchor: Equatable, Sendable, Codable {
        /// SHA-256 of the certificate's DER, 32 bytes.
        package var sha256: [UInt8]
        /// The file that the profile has installed, such as `Certs/anchors/corp.pem`; nil if the anchor existed before.
        package var file: String?

        package init(sha256: [UInt8], file: String?) {
            self.sha256 = sha256
            self.file = file
        }
    }

    /// An identity that the profile contains.
    package struct ContainedIdentity: Equatable, Sendable, Codable {
        package var name: String
        /// SHA-256 of the leaf's DER, 32 bytes.
        package var leafSHA256: [UInt8]
        /// The profile has installed it; otherwise, it existed before.
        package var isBrought: Bool

        package init(name: String, leafSHA256: [UInt8], isBrought: Bool) {
            self.name = name
            self.leafSHA256 = leafSHA256
            self.isBrought = isBrought
        }
    }

    /// The enrolment over EST that the profile has started.
    package struct Enrollment: Equatable, Sendable, Codable {
        /// The identity's name.
        package var name: String
        /// `https://host[:port][/label]`.
        package var server: String

        package init(name: String, server: String) {
            self.name = name
            self.server = server
        }
    }

    /// The changes to files that belong to the present state of the vault. They are made after the vault is written,
    /// and made again if that was interrupted.
    package struct Journal: Equatable, Sendable, Codable {
        package struct File: Equatable, Sendable, Codable {
            /// Relative to the home.
            package var name: String
            package var bytes: [UInt8]

            package init(name: String, bytes: [UInt8]) {
                self.name = name
                self.bytes = bytes
            }
        }

        package var written: [File]
        /// The names of files, relative to the home.
        package var removed: [String]
        /// The record itself is removed afterwards.
        package var endsRecord: Bool

        package init(written: [File] = [], removed: [String] = [], endsRecord: Bool = false) {
            self.written = written
            self.removed = removed
            self.endsRecord = endsRecord
        }
    }

    /// A profile with the same one replaces this one: 1 to 256 visible characters of ASCII.
    package let identifier: String
    /// For people.
    package var name: String
    /// Empty if the profile does not say.
    package var organization: String
    /// Nil for an unsigned profile.
    package var signer: Signer?
    /// In seconds since 1970.
    package var installed: Int64
    package var owner: Owner?
    package var anchors: [Anchor] = []
    package var identities: [ContainedIdentity] = []
    package var enrollment: Enrollment?
    /// Not nil while the files may not be those of this record.
    package var journal: Journal?

    package init(
        identifier: String, name: String, organization: String, signer: Signer?, installed: Int64, owner: Owner? = nil
    ) {
        self.identifier = identifier
        self.name = name
        self.organization = organization
        self.signer = signer
        self.installed = installed
        self.owner = owner
    }
}

extension VaultContents {
    /// Stores a profile, in place of the one with that identifier. Throws `invalidRecord` for a value outside
    /// ``VaultLimits``.
    package mutating func setProfile(_ record: ProfileRecord) throws(VaultError) {
        if let fault = VaultLimits.fault(of: record) {
            throw VaultError(.invalidRecord, "the profile \(record.identifier.debugDescription) has \(fault)")
        }
        guard profiles[record.identifier] != record else { return }
        advance()
        profiles[record.identifier] = record
    }

    /// Removes a profile's record, but not its items. Returns whether there was one.
    @discardableResult
    package mutating func removeProfile(_ identifier: String) -> Bool {
        guard profiles.removeValue(forKey: identifier) != nil else { return false }
        advance()
        return true
    }
}

extension VaultLimits {
    package static let profileIdentifierBytes = 256
    package static let profileNameBytes = 1024
    /// Anchors, and identities, of one profile.
    package static let profileItems = 64
    /// Of files in a journal.
    package static let profileFiles = 256
    static let profileFileNameBytes = 512

    /// Why the record cannot be stored; nil if it can.
    static func fault(of record: ProfileRecord) -> String? {
        guard (1...profileIdentifierBytes).contains(record.identifier.utf8.count),
            record.identifier.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return "an identifier that is empty, too long, or has other than visible ASCII characters" }
        let lines = [record.name, record.organization, record.signer?.subject, record.enrollment?.server]
        guard !record.name.isEmpty, lines.allSatisfy({ $0.map(isProfileLine) ?? true }) else {
            return "a text that is empty, too long, or not one line"
        }
        let names = record.identities.map(\.name) + [record.owner?.signIn, record.enrollment?.name].compactMap(\.self)
        guard names.allSatisfy({ isName($0) }) else { return "a name that cannot be one" }
        guard record.anchors.count <= profileItems, record.identities.count <= profileItems else {
            return "more than \(profileItems) anchors or identities"
        }
        let digests =
            record.anchors.map(\.sha256) + record.identities.map(\.leafSHA256)
            + [record.signer?.sha256].compactMap(\.self)
        guard digests.allSatisfy({ $0.count == digestBytes }) else { return "a SHA-256 that has not 32 bytes" }
        guard record.enrollment?.server.isEmpty != true else { return "an enrolment without a server" }
        let changed = record.journal.map { $0.written.map(\.name) + $0.removed } ?? []
        let files = record.anchors.compactMap(\.file) + changed
        guard files.allSatisfy(isProfileFile) else { return "a file that is no anchor and no chain" }
        guard files.count <= profileFiles + profileItems else { return "too many files" }
        return record.installed < 0 ? "a time before 1970" : nil
    }

    private static func isProfileLine(_ text: String) -> Bool {
        text.utf8.count <= profileNameBytes && !text.utf8.contains { $0 < 0x20 || $0 == 0x7F }
    }

    /// Whether a profile may write or remove that file: it is directly in one of two folders.
    private static func isProfileFile(_ name: String) -> Bool {
        guard name.utf8.count <= profileFileNameBytes, name.hasSuffix(".pem") else { return false }
        return ["Certs/anchors/", "Certs/identities/"].contains { folder in
            name.hasPrefix(folder) && isName(name.dropFirst(folder.count).dropLast(".pem".count))
        }
    }
}

extension RecordWriter {
    mutating func append(_ record: ProfileRecord) {
        for text in [record.identifier, record.name, record.organization] { field(text) }
        append(UInt8(record.signer == nil ? 0 : 1))
        if let signer = record.signer {
            field(signer.subject)
            append(digest: signer.sha256)
            append(UInt8(signer.isTrusted ? 1 : 0))
        }
        append(UInt64(clamping: record.installed))
        append(UInt8(record.owner == nil ? 0 : 1))
        if let owner = record.owner {
            field(owner.signIn)
            append(UInt8(owner.isPending ? 1 : 0))
        }
        append(UInt32(record.anchors.count))
        for anchor in record.anchors {
            append(digest: anchor.sha256)
            field(anchor.file ?? "")
        }
        append(UInt32(record.identities.count))
        for identity in record.identities {
            field(identity.name)
            append(digest: identity.leafSHA256)
            append(UInt8(identity.isBrought ? 1 : 0))
        }
        append(UInt8(record.enrollment == nil ? 0 : 1))
        if let enrollment = record.enrollment {
            field(enrollment.name)
            field(enrollment.server)
        }
        append(UInt8(record.journal == nil ? 0 : 1))
        if let journal = record.journal { append(journal) }
    }

    private mutating func append(_ journal: ProfileRecord.Journal) {
        append(UInt32(journal.written.count))
        for file in journal.written {
            field(file.name)
            append(UInt32(file.bytes.count))
            for byte in file.bytes { append(byte) }
        }
        append(UInt32(journal.removed.count))
        for name in journal.removed { field(name) }
        append(UInt8(journal.endsRecord ? 1 : 0))
    }

    private mutating func append(digest: [UInt8]) { for byte in digest { append(byte) } }
}

extension RecordReader {
    mutating func profile() throws(VaultError) -> ProfileRecord {
        let (identifier, name, organization) = (try text(), try text(), try text())
        var signer: ProfileRecord.Signer?
        if try flag() {
            signer = ProfileRecord.Signer(subject: try text(), sha256: try digest(), isTrusted: try flag())
        }
        var record = ProfileRecord(
            identifier: identifier, name: name, organization: organization, signer: signer, installed: try time())
        if try flag() { record.owner = ProfileRecord.Owner(signIn: try text(), isPending: try flag()) }
        for _ in 0..<(try profileCount()) {
            let sha256 = try digest()
            let file = try text()
            record.anchors.append(ProfileRecord.Anchor(sha256: sha256, file: file.isEmpty ? nil : file))
        }
        for _ in 0..<(try profileCount()) {
            record.identities.append(
                ProfileRecord.ContainedIdentity(name: try text(), leafSHA256: try digest(), isBrought: try flag()))
        }
        if try flag() { record.enrollment = ProfileRecord.Enrollment(name: try text(), server: try text()) }
        if try flag() { record.journal = try journal() }
        if let fault = VaultLimits.fault(of: record) { throw Self.malformed("a profile with \(fault)") }
        return record
    }

    private mutating func journal() throws(VaultError) -> ProfileRecord.Journal {
        var journal = ProfileRecord.Journal()
        for _ in 0..<(try profileCount()) {
            let name = try text()
            let bytes = Array(try bytes(Int(try number(UInt32.self))))
            journal.written.append(ProfileRecord.Journal.File(name: name, bytes: bytes))
        }
        for _ in 0..<(try profileCount()) { journal.removed.append(try text()) }
        journal.endsRecord = try flag()
        return journal
    }

    private mutating func digest() throws(VaultError) -> [UInt8] { Array(try bytes(VaultLimits.digestBytes)) }

    private mutating func profileCount() throws(VaultError) -> Int {
        let count = Int(try number(UInt32.self))
        guard count <= VaultLimits.profileFiles else { throw Self.malformed("a profile with \(count) items") }
        return count
    }
}
