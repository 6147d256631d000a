// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignEnrollment
import CountersignHome
import CountersignVault
import FoundationEssentials

/// The changes that install a profile.
struct ProfileInstallation: Sendable {
    let new: NewProfile
    let home: Home
    let anchors: [Certificate]
    /// Those that the vault does not have yet.
    private let identities: [Identity]
    /// All new files.
    let files: [ProfileRecord.Journal.File]

    /// Marks the enrolment of a profile that is not stored yet, in place of the identifier of a sign-in, so that no
    /// process continues it.
    static let ownerPrefix = "profile "

    /// Throws if the parts do not belong together.
    init(_ new: NewProfile, _ secret: Secret?, home: Home) throws {
        let record = new.record
        let keys = try secret.map { secret in
            guard let keys = ProfileKeys.decoded(secret) else { throw Self.malformed }
            return keys
        }
        var rest = (keys ?? [])[...]
        guard new.anchors.count == record.anchors.count, new.chains.count == record.identities.count,
            record.journal == nil, (new.enrollment == nil) == (record.enrollment == nil)
        else { throw Self.malformed }
        self.new = new
        self.home = home
        anchors = try new.anchors.map { try Certificate(der: Array($0)) }
        var files: [ProfileRecord.Journal.File] = []
        for (anchor, certificate) in zip(record.anchors, anchors) {
            guard anchor.sha256 == certificate.sha256Fingerprint else { throw Self.malformed }
            guard let file = anchor.file else { continue }
            files.append(.init(name: file, bytes: Array(certificate.pem.utf8)))
        }
        var identities: [Identity] = []
        for (identity, encoded) in zip(record.identities, new.chains) where identity.isBrought {
            try VaultOperations.check(identity.name)
            guard let key = rest.popFirst() else { throw Self.malformed }
            let chain = try encoded.map { try Certificate(der: Array($0)) }
            let brought = try Identity(name: identity.name, chain: chain, key: try PrivateKey(pkcs8: key))
            guard brought.leaf.sha256Fingerprint == identity.leafSHA256 else { throw Self.malformed }
            identities.append(brought)
            files.append(
                .init(
                    name: home.identityChain(named: identity.name).name,
                    bytes: Array(chain.map(\.pem).joined().utf8)))
        }
        guard rest.isEmpty else { throw Self.malformed }
        if let name = record.enrollment?.name { try VaultOperations.check(name) }
        self.identities = identities
        self.files = files
    }

    private static let malformed = CountersignError(.refused, "the profile's parts do not belong together")

    /// The enrolment, marked as that of a profile which is not stored.
    func plan(_ enrollment: NewProfile.Enrollment) throws -> EnrollmentRecord? {
        guard let planned = new.record.enrollment else { return nil }
        let subject = enrollment.identity.flatMap { identity($0)?.leaf.subject }
        var plan = EnrollmentRecord(
            name: planned.name, server: planned.server,
            subject: subject.flatMap { (try? SubjectName($0)) == nil ? nil : $0 }
                ?? EnrollmentRecord.subject(ofUser: planned.name),
            keySpecification: EnrollmentRecord.anyKey, anchors: enrollment.anchors.map { Array($0) },
            identity: enrollment.identity)
        plan.serverAnchors = enrollment.verifiesServer ? .same : .implicit
        plan.owner = mark
        return plan
    }

    private var mark: EnrollmentRecord.Owner {
        EnrollmentRecord.Owner(signIn: Self.ownerPrefix + new.record.identifier)
    }

    /// An identity of the profile.
    func identity(_ name: String) -> Identity? { identities.first { $0.name == name } }

    // MARK: The vault

    /// Throws `nameInUse` if an identity or anchor that is not the profile's has been added since the person agreed,
    /// and is in the way.
    func check(_ contents: VaultContents) throws {
        let record = new.record
        let former = contents.profiles[record.identifier]
        for identity in record.identities where !identity.isBrought {
            guard contents.leafSHA256(of: identity.name) == identity.leafSHA256 else {
                throw Self.changed("the identity \(identity.name.debugDescription) is not there any more")
            }
        }
        let names = record.identities.filter(\.isBrought).map(\.name) + [record.enrollment?.name].compactMap(\.self)
        guard Set(names).count == names.count else { throw Self.malformed }
        for name in names where !Self.brought(name, by: former, in: contents) {
            let isTaken =
                try contents.hasKey(of: name) || contents.plan(of: name) != nil
                || home.identityChain(named: name).readIfThere(upTo: Home.fileLimitBytes) != nil
            if isTaken { throw Self.changed("there is an identity \(name.debugDescription) now") }
        }
        let own = Set((former?.anchors ?? []).compactMap(\.file))
        for name in record.anchors.compactMap(\.file) where !own.contains(name) {
            guard try home.file(name).readIfThere(upTo: Home.fileLimitBytes) == nil else {
                throw Self.changed("there is a file \(name) now")
            }
        }
    }

    private static func changed(_ detail: String) -> CountersignError {
        CountersignError(.nameInUse, detail, hint: "install the profile again")
    }

    private static func brought(_ name: String, by former: ProfileRecord?, in contents: VaultContents) -> Bool {
        guard let former else { return false }
        return former.hasBrought(name, in: contents) || former.hasEnrolled(name, in: contents)
    }

    /// Stores everything, with the files as a journal.
    func store(in contents: inout VaultContents) throws {
        var record = new.record
        var removed: [String] = []
        if let former = contents.profiles[record.identifier] {
            let removal = ProfileRemoval(of: former, replacedBy: record, in: contents, home: home)
            try removal.apply(to: &contents)
            removed = removal.files
        }
        for identity in identities {
            // Keeps the key until it is replaced, so that the identity keeps its place in the order.
            contents.removeEnrollment(named: identity.name)
            contents.removePendingEnrollment(named: identity.name)
            try contents.setIdentityKey(
                IdentityKey(
                    name: identity.name, privateKey: try identity.key.pkcs8,
                    leafSHA256: identity.leaf.sha256Fingerprint))
        }
        if let name = record.enrollment?.name {
            if var enrollment = contents.enrollments[name], enrollment.owner?.signIn == mark.signIn {
                enrollment.owner = nil
                try contents.setEnrollment(enrollment)
            }
            if var pending = contents.pendingEnrollments[name], pending.plan?.owner?.signIn == mark.signIn {
                pending.plan?.owner = nil
                try contents.setPendingEnrollment(pending)
            }
        }
        record.journal = ProfileRecord.Journal(written: files, removed: removed)
        try contents.setProfile(record)
    }
}

extension ProfileRecord {
    /// Whether the identity of that name was installed by the profile.
    func hasBrought(_ name: String, in contents: VaultContents) -> Bool {
        identities.contains { identity in
            identity.isBrought && identity.name == name && contents.leafSHA256(of: name) == identity.leafSHA256
                && contents.enrollments[name] == nil
        }
    }

    /// Whether the identity of that name is, or will be, the profile's enrolled one.
    func hasEnrolled(_ name: String, in contents: VaultContents) -> Bool {
        guard let enrollment, enrollment.name == name else { return false }
        if let present = contents.enrollments[name] {
            return present.server == enrollment.server && present.owner == nil
        }
        return !contents.hasKey(of: name) && contents.pendingEnrollments[name]?.plan?.server == enrollment.server
    }
}

/// The items that are removed with a profile, or with its former version: exactly those that it has installed, except
/// those that something else needs.
struct ProfileRemoval: Sendable {
    private let record: ProfileRecord
    private let names: [String]
    private let anchorFiles: [String]
    private let kept: [String]
    /// Other profiles that contain the same, and have it from now on.
    private let heirs: [ProfileRecord]

    init(of record: ProfileRecord, replacedBy new: ProfileRecord?, in contents: VaultContents, home: Home) {
        self.record = record
        var others = contents.profiles.values.filter { $0.identifier != record.identifier && !$0.isEnding }
        others.sort { $0.identifier < $1.identifier }
        var heirs: [String: ProfileRecord] = [:]
        var kept: [String] = []

        let staying = Set((new?.anchors ?? []).compactMap(\.file))
        var anchorFiles: [String] = []
        for anchor in record.anchors {
            guard let file = anchor.file, !staying.contains(file) else { continue }
            if let other = others.first(where: { $0.anchors.contains { $0.sha256 == anchor.sha256 } }) {
                var heir = heirs[other.identifier] ?? other
                for index in heir.anchors.indices where heir.anchors[index].sha256 == anchor.sha256 {
                    heir.anchors[index].file = file
                }
                heirs[other.identifier] = heir
                kept.append("\(file) stays, because the profile \"\(other.name)\" contains it, too")
            } else if Self.contains(only: anchor, home.file(file)) {
                anchorFiles.append(file)
            }
        }

        var names: [String] = []
        let renewed = Set((new?.identities ?? []).filter(\.isBrought).map(\.name) + [new?.enrollment?.name ?? ""])
        for identity in record.identities where record.hasBrought(identity.name, in: contents) {
            guard !renewed.contains(identity.name) else { continue }
            let needing = contents.plannedNames.first { name in
                name != record.enrollment?.name && contents.plan(of: name)?.identity == identity.name
            }
            if let other = others.first(where: { $0.containsIdentity(identity) }) {
                var heir = heirs[other.identifier] ?? other
                for index in heir.identities.indices where heir.identities[index].leafSHA256 == identity.leafSHA256 {
                    heir.identities[index].isBrought = true
                }
                heirs[other.identifier] = heir
                let name = "identity \"\(identity.name)\""
                kept.append("\(name) stays, because the profile \"\(other.name)\" contains it, too")
            } else if let needing {
                kept.append("identity \"\(identity.name)\" stays, because the enrolment of \"\(needing)\" uses it")
            } else {
                names.append(identity.name)
            }
        }
        if let name = record.enrollment?.name, record.hasEnrolled(name, in: contents), !renewed.contains(name) {
            names.append(name)
        }
        self.names = names
        self.anchorFiles = anchorFiles
        self.kept = kept
        self.heirs = heirs.values.sorted { $0.identifier < $1.identifier }
    }

    /// Whether the file has this certificate and nothing else: a person may have changed it.
    private static func contains(only anchor: ProfileRecord.Anchor, _ file: HomeFile) -> Bool {
        guard let bytes = try? file.readIfThere(upTo: Home.fileLimitBytes),
            let certificates = try? Certificate.readPEM(bytes)
        else { return false }
        return certificates.map(\.sha256Fingerprint) == [anchor.sha256]
    }

    /// The files that are removed.
    var files: [String] { anchorFiles + names.map { "\(Home.identitiesFolder)/\($0).pem" } }

    var summary: RemovedProfile {
        RemovedProfile(
            identifier: record.identifier, name: record.name, anchors: anchorFiles, identities: names, kept: kept)
    }

    func apply(to contents: inout VaultContents) throws {
        for name in names { _ = contents.removeIdentity(named: name) }
        for heir in heirs { try contents.setProfile(heir) }
    }
}

extension ProfileRecord {
    /// It is being removed.
    fileprivate var isEnding: Bool { journal?.endsRecord ?? false }

    fileprivate func containsIdentity(_ other: ContainedIdentity) -> Bool {
        identities.contains { $0.name == other.name && $0.leafSHA256 == other.leafSHA256 }
    }
}
