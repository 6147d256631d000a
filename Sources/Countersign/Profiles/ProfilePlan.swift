// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates
package import CountersignCryptography
package import CountersignDeviceManagement
package import CountersignEnrollment
package import CountersignHome
import CountersignSitePolicy
package import CountersignVault
import FoundationEssentials

/// The effects of installing a configuration profile: a pure function of the profile and its surroundings.
///
/// Existing items are not replaced, except those of a former version of the same profile. They stay when the profile is
/// removed.
package struct ProfilePlan: Sendable {
    /// The content of the home before the installation.
    package struct Surroundings: Sendable {
        /// The certificates in `Certs/anchors`, and the file of each.
        package var anchors: [AnchorStore.Entry] = []
        /// The identities, with SHA-256 of their leaf, which is empty for one that is incomplete.
        package var identities: [String: [UInt8]] = [:]
        package var profiles: [ProfileRecord] = []
        /// The root of the home's own interception CA.
        package var interceptionRoot: Certificate?
        /// Seconds since 1970.
        package var now: Int64

        package init(now: Int64) { self.now = now }
    }

    package enum Step: Sendable {
        /// Nil for `file` if it is an anchor already, in `place`.
        case anchor(Certificate, file: String?, place: String)
        /// Nil for `key` if it exists already.
        case identity(name: String, chain: [Certificate], key: PrivateKey?)
        case enrollment(ESTEndpoint, name: String, anchors: [Certificate], verifiesServer: Bool)
        /// It would have an effect, but cannot be installed.
        case refused(reason: String)
        /// It has no effect here.
        case skipped
    }

    package struct Item: Sendable {
        package let payload: ConfigurationProfile.Payload
        package let step: Step
    }

    package let read: ReadProfile
    /// In the order of the profile; a payload may have several certificates.
    package let items: [Item]
    /// The installed version that is replaced; nil without one.
    package let former: ProfileRecord?
    private let now: Int64

    /// `password` returns the password of an identity that needs one, and gets the payload's name. It may throw a
    /// ``CountersignError``, whose text then says why the payload is refused.
    package init(
        _ read: ReadProfile, in surroundings: Surroundings, password: (String) throws(CountersignError) -> Secret
    ) {
        self.read = read
        now = surroundings.now
        former = surroundings.profiles.first { $0.identifier == read.profile.identifier }
        var planner = Planner(surroundings: surroundings, former: former)
        for payload in read.profile.payloads {
            switch payload.content {
            case .certificate(let bytes): planner.addCertificates(bytes, payload)
            case .identity(let bytes, let own): planner.addIdentity(bytes, own, payload, password)
            case .est, .refused, .skipped: break
            }
        }
        // The roots that the service may need are known now.
        for payload in read.profile.payloads {
            switch payload.content {
            case .est(let service): planner.addEnrollment(service, payload)
            case .refused(let reason): planner.add(.refused(reason: reason), payload)
            case .skipped: planner.add(.skipped, payload)
            case .certificate, .identity: break
            }
        }
        items = planner.items
    }

    /// The payloads that cannot be installed, with the reasons.
    package var refusals: [(payload: ConfigurationProfile.Payload, reason: String)] {
        items.compactMap { item in
            if case .refused(let reason) = item.step { (item.payload, reason) } else { nil }
        }
    }

    /// Whether there is anything to install.
    package var isEmpty: Bool {
        !items.contains { item in
            switch item.step {
            case .anchor, .identity, .enrollment: true
            case .refused, .skipped: false
            }
        }
    }

    /// The argument of ``InstallProfile``, and its keys. Throws `refused` if a payload is refused, unless
    /// `skipsRefused` is set, and if nothing is left to install.
    package func new(skipsRefused: Bool, owner: ProfileRecord.Owner? = nil) throws -> (NewProfile, Secret?) {
        if let (payload, reason) = refusals.first, !skipsRefused {
            throw CountersignError(
                .refused,
                "nothing was installed, because payload \(PrintableText.quote(payload.name)) cannot be: \(reason)",
                hint: "ask for a profile without it")
        }
        guard !isEmpty else {
            throw CountersignError(.refused, "the profile has nothing that can be installed here")
        }
        let profile = read.profile
        let signer = (read.signers.first { $0.reason == nil } ?? read.signers.first).map { signer in
            ProfileRecord.Signer(
                subject: Self.line(signer.certificate.subject), sha256: signer.certificate.sha256Fingerprint,
                isTrusted: read.isTrusted)
        }
        var new = NewProfile(
            record: ProfileRecord(
                identifier: profile.identifier, name: Self.line(profile.name),
                organization: Self.line(profile.organization ?? ""), signer: signer, installed: max(0, now),
                owner: owner))
        var keys: [Secret] = []
        for item in items {
            switch item.step {
            case .anchor(let certificate, let file, _):
                new.record.anchors.append(.init(sha256: certificate.sha256Fingerprint, file: file))
                new.anchors.append(Data(certificate.der))
            case .identity(let name, let chain, let key):
                guard let leaf = chain.first else { continue }
                new.record.identities.append(
                    .init(name: name, leafSHA256: leaf.sha256Fingerprint, isBrought: key != nil))
                new.chains.append(chain.map { Data($0.der) })
                if let key { keys.append(try key.pkcs8) }
            case .enrollment(let endpoint, let name, let anchors, let verifiesServer):
                new.record.enrollment = .init(name: name, server: endpoint.description)
                new.enrollment = NewProfile.Enrollment(
                    anchors: anchors.map { Data($0.der) }, verifiesServer: verifiesServer, identity: nil)
            case .refused, .skipped: break
            }
        }
        new.enrollment?.identity = new.record.identities.first?.name
        return (new, keys.isEmpty ? nil : ProfileKeys.encoded(keys))
    }

    /// Text of a profile as a record can have it.
    private static func line(_ text: String) -> String {
        var line = ""
        for scalar in text.unicodeScalars where scalar.value >= 0x20 && scalar.value != 0x7F {
            guard line.utf8.count < VaultLimits.profileNameBytes - 4 else { break }
            line.unicodeScalars.append(scalar)
        }
        return line.isEmpty && !text.isEmpty ? "-" : line
    }
}

/// Collects the steps of a plan.
private struct Planner {
    let surroundings: ProfilePlan.Surroundings
    let former: ProfileRecord?
    var items: [ProfilePlan.Item] = []
    private var roots: [Certificate] = []
    private var names: Set<String> = []

    init(surroundings: ProfilePlan.Surroundings, former: ProfileRecord?) {
        self.surroundings = surroundings
        self.former = former
    }

    mutating func add(_ step: ProfilePlan.Step, _ payload: ConfigurationProfile.Payload) {
        items.append(ProfilePlan.Item(payload: payload, step: step))
    }

    // MARK: Anchors

    mutating func addCertificates(_ bytes: [UInt8], _ payload: ConfigurationProfile.Payload) {
        do throws(CertificateError) {
            for certificate in try IdentityFile.readCertificates(bytes) { add(certificate, payload) }
        } catch {
            add(.refused(reason: "its certificate cannot be read: \(error.detail)"), payload)
        }
    }

    private mutating func add(_ certificate: Certificate, _ payload: ConfigurationProfile.Payload) {
        guard !hasAnchor(certificate) else { return }
        if let reason = obstacle(to: certificate) { return add(.refused(reason: reason), payload) }
        if certificate.isSelfSigned { roots.append(certificate) }
        let present = surroundings.anchors.filter { $0.certificate == certificate }.map(\.file)
        let digest = certificate.sha256Fingerprint
        let brought = former?.anchors.first { $0.sha256 == digest }?.file
        if let file = brought, present.contains(file) || present.isEmpty {
            add(.anchor(certificate, file: file, place: file), payload)
        } else if let place = present.first {
            add(.anchor(certificate, file: nil, place: place), payload)
        } else {
            let file = "\(Home.anchorsFolder)/profile-\(Hex.encode(digest.prefix(16))).pem"
            add(.anchor(certificate, file: file, place: file), payload)
        }
    }

    private func hasAnchor(_ certificate: Certificate) -> Bool {
        items.contains { if case .anchor(let other, _, _) = $0.step { other == certificate } else { false } }
    }

    private func obstacle(to certificate: Certificate) -> String? {
        let subject = PrintableText.quote(certificate.subject)
        if certificate == surroundings.interceptionRoot {
            return "\(subject) is the root of this home's interception CA, which no site may use"
        }
        guard certificate.isCertificateAuthority else { return "\(subject) is not a CA certificate" }
        guard certificate.notAfter >= surroundings.now else {
            return "\(subject) expired on \(WallClock.rfc3339(certificate.notAfter).prefix(10))"
        }
        return nil
    }

    // MARK: Identities

    mutating func addIdentity(
        _ bytes: Secret, _ own: Secret?, _ payload: ConfigurationProfile.Payload,
        _ password: (String) throws(CountersignError) -> Secret
    ) {
        do {
            let (chain, key) = try read(bytes, own, payload, password)
            guard let leaf = chain.first, chain.count <= VaultLimits.certificates else {
                return add(.refused(reason: "its chain is too long"), payload)
            }
            guard !hasIdentity(leaf) else { return }
            let digest = leaf.sha256Fingerprint
            let known = surroundings.identities.filter { $0.value == digest }.keys.sorted()
            let brought = former?.identities.first { $0.leafSHA256 == digest && $0.isBrought }?.name
            if let name = brought, known.contains(name) {
                names.insert(name)
                add(.identity(name: name, chain: chain, key: key), payload)
            } else if let name = known.first {
                names.insert(name)
                add(.identity(name: name, chain: chain, key: nil), payload)
            } else {
                let name = freeName(Self.name(of: leaf) ?? "identity")
                add(.identity(name: name, chain: chain, key: key), payload)
            }
        } catch let error as CertificateError {
            add(.refused(reason: "its identity cannot be read: \(error.detail)"), payload)
        } catch let error as CountersignError {
            add(.refused(reason: "\(error.detail)\(error.hint.map { "; \($0)" } ?? "")"), payload)
        } catch {
            add(.refused(reason: "its identity cannot be read: \(error)"), payload)
        }
    }

    private func hasIdentity(_ leaf: Certificate) -> Bool {
        items.contains { if case .identity(_, let chain, _) = $0.step { chain.first == leaf } else { false } }
    }

    private func read(
        _ bytes: Secret, _ own: Secret?, _ payload: ConfigurationProfile.Payload,
        _ password: (String) throws(CountersignError) -> Secret
    ) throws -> (chain: [Certificate], key: PrivateKey) {
        var file = bytes.withBytes { Array($0) }
        defer { for index in file.indices { file[index] = 0 } }
        do throws(CertificateError) {
            return try IdentityFile.read(file, password: own)
        } catch {
            guard error.code == .passwordNeeded else { throw error }
        }
        return try IdentityFile.read(file, password: try password(payload.name))
    }

    /// The common name, with every run of characters other than letters, digits, `.` and `_` as `-`.
    private static func name(of leaf: Certificate) -> String? {
        let commonName = leaf.subject.split(separator: ",").first { $0.hasPrefix("CN=") }?.dropFirst(3) ?? ""
        var name: [UInt8] = []
        for byte in commonName.utf8.prefix(48) {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "."), UInt8(ascii: "_"): name.append(byte)
            default: if name.last != UInt8(ascii: "-") { name.append(UInt8(ascii: "-")) }
            }
        }
        let marks = Array("-._".utf8)
        while let last = name.last, marks.contains(last) { name.removeLast() }
        let text = String(decoding: name.drop { marks.contains($0) }, as: UTF8.self)
        return SiteRule.isStoredName(text) && VaultLimits.isName(text) ? text : nil
    }

    /// `wanted`, or that with a number if an identity has the name that the profile has not brought.
    private mutating func freeName(_ wanted: String) -> String {
        var name = wanted
        var number = 2
        while names.contains(name) || surroundings.identities[name] != nil && !isOwn(name) {
            name = "\(wanted)-\(number)"
            number += 1
        }
        names.insert(name)
        return name
    }

    /// Whether the former version of the profile has installed the identity of that name.
    private func isOwn(_ name: String) -> Bool {
        guard let former else { return false }
        if former.enrollment?.name == name { return true }
        return former.identities.contains { identity in
            identity.isBrought && identity.name == name && surroundings.identities[name] == identity.leafSHA256
        }
    }

    // MARK: Enrolment

    mutating func addEnrollment(
        _ service: ConfigurationProfile.ESTPayload, _ payload: ConfigurationProfile.Payload
    ) {
        guard !items.contains(where: { if case .enrollment = $0.step { true } else { false } }) else {
            return add(.refused(reason: "a profile can have one enrolment over EST, and this is another"), payload)
        }
        do {
            let endpoint = try ESTEndpoint(parsing: service.service.description)
            var anchors: [Certificate] = []
            for bytes in service.anchors { anchors += try IdentityFile.readCertificates(bytes) }
            if let other = anchors.first(where: { !$0.isCertificateAuthority || !$0.isSelfSigned }) {
                let subject = PrintableText.quote(other.subject)
                return add(
                    .refused(reason: "its Anchors contain \(subject), which is not a self-signed CA certificate"),
                    payload)
            }
            let verifiesServer = !anchors.isEmpty
            if anchors.isEmpty { anchors = roots }
            guard !anchors.isEmpty else {
                return add(
                    .refused(reason: "it has no Anchors, and the profile no root, for the certificates it would issue"),
                    payload)
            }
            guard anchors.count <= VaultLimits.certificates else {
                return add(.refused(reason: "it has too many anchors"), payload)
            }
            guard SiteRule.isStoredName(service.name), VaultLimits.isName(service.name) else {
                let name = PrintableText.quote(service.name)
                return add(.refused(reason: "its Name, \(name), cannot be that of an identity"), payload)
            }
            add(
                .enrollment(
                    endpoint, name: freeName(service.name), anchors: anchors, verifiesServer: verifiesServer), payload)
        } catch let error as EnrollmentError {
            add(.refused(reason: error.detail), payload)
        } catch let error as CertificateError {
            add(.refused(reason: "its Anchors cannot be read: \(error.detail)"), payload)
        } catch {
            add(.refused(reason: "it cannot be read: \(error)"), payload)
        }
    }
}
