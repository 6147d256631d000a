// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates
import CountersignEnrollment
package import CountersignVault
import FoundationEssentials

extension VaultOperations {
    func renewal(_ dialogue: OperationDialogue) throws -> IdentityRenewal {
        IdentityRenewal(home: home, vault: try opened(), now: now, report: dialogue.report)
    }

    /// For a key in a token, which is not enrolled as a ``VaultOperation``.
    package func renewal(report: @escaping @Sendable (RenewalProgress) -> Void) throws -> IdentityRenewal {
        try renewal(OperationDialogue(report: report))
    }

    // MARK: Listing

    func identities() throws -> IdentityListing {
        let contents = vault?.contents
        let enrolled = try EnrolledIdentities(contents, home: home, readsTokens: false)
        return IdentityListing(
            identities: enrolled.chains.map { ListedIdentity($0.name, $0.chain, in: contents) },
            pending: contents.map(ListedRequest.all) ?? [],
            faults: enrolled.faults.map { IdentityListing.Fault(name: $0.name, reason: $0.reason) },
            fileFaults: enrolled.fileFaults.map { IdentityListing.Fault(name: $0.name, reason: $0.reason) })
    }

    /// The identity of that name, with the chain from the vault if it is enrolled, else from its file.
    func identity(_ name: String) throws -> IdentityListing {
        try Self.check(name)
        let contents = vault?.contents
        var chain = contents?.enrollments[name].flatMap { _ in
            StoredIdentity(named: name, in: contents, home: home, readsTokens: false).chain
        }
        if chain == nil { chain = try home.chain(named: name) }
        guard let chain, !chain.isEmpty else { return IdentityListing() }
        return IdentityListing(identities: [ListedIdentity(name, chain, in: contents)])
    }

    func renewalStates(_ name: String?) throws -> [RenewalState] {
        let contents = vault?.contents
        let names: Set<String>
        if let name {
            try Self.check(name)
            names = [name]
        } else {
            names = (contents?.identityNames ?? []).union(try home.identityNames())
        }
        return names.sorted().compactMap { RenewalState(named: $0, in: contents, home: home, now: now()) }
    }

    // MARK: Changing

    /// Stores the key in the vault and the chain in its file; on failure, neither.
    func importIdentity(_ name: String, _ chain: [Certificate], _ key: PrivateKey, replaces: Bool) throws {
        guard let leaf = chain.first, chain.count <= VaultLimits.certificates, key.matches(leaf) else {
            throw CountersignError(.configuration, "the private key does not belong to the certificate")
        }
        let record = IdentityKey(name: name, privateKey: try key.pkcs8, leafSHA256: leaf.sha256Fingerprint)
        try importIdentity(name, chain, replaces: replaces) { try $0.setIdentityKey(record) }
    }

    /// Stores a reference to the key in a token. Not available as a ``VaultOperation``.
    package func importIdentity(
        _ name: String, _ chain: [Certificate], replaces: Bool, store: (inout VaultContents) throws -> Void
    ) throws {
        try Self.check(name)
        let chainFile = home.identityChain(named: name)
        let before = try chainFile.readIfThere(upTo: Home.fileLimitBytes)
        var isWritten = false
        do {
            try opened().update { contents in
                let isKnown = contents.hasKey(of: name) || contents.plan(of: name) != nil
                guard replaces || (!isKnown && before == nil) else {
                    throw CountersignError(
                        .nameInUse, "an identity \(name.debugDescription) already exists",
                        hint: "pass --replace to replace it, or choose another name with --name")
                }
                // Keeps the key until it is replaced, so that the identity keeps its place in the order.
                contents.removeEnrollment(named: name)
                contents.removePendingEnrollment(named: name)
                try store(&contents)
                isWritten = true
                try chainFile.replace(with: Array(chain.map(\.pem).joined().utf8))
            }
        } catch {
            guard isWritten else { throw error }
            if let before { try chainFile.replace(with: before) } else { try chainFile.remove() }
            throw error
        }
    }

    func removeIdentity(_ name: String) throws -> VaultResult {
        try Self.check(name)
        let hadRecord = try vault?.update { $0.removeIdentity(named: name) } ?? false
        let hadChain = try home.identityChain(named: name).remove()
        return .removed(count: hadRecord || hadChain ? 1 : 0, known: Set(try home.identityNames()))
    }

    // MARK: Enrolling

    /// Without `confirm`, the anchors are those that the user has chosen; if the server's certificates are not those
    /// among which they were chosen, they have to be chosen again. That ends the attempt before it has requested
    /// anything, because a person may take any time.
    func enroll(
        _ request: EnrollmentRequest, _ dialogue: OperationDialogue, _ confirm: AnchorConfirmation?
    ) throws -> VaultResult {
        try Self.check(request.name)
        guard request.keySpecification != EnrollmentRecord.tokenKey else {
            throw CountersignError(.refused, "keys in tokens are enrolled by the command itself")
        }
        let renewal = try renewal(dialogue)
        let plan = EnrollmentRecord(request)
        let chosen = request.chosen
        do {
            return try .outcome(
                Blocking.run(isAbandoned: dialogue.isAbandoned) {
                    try await renewal.enroll(plan, replaces: request.replaces, request.options) { published in
                        if let confirm { return try confirm(published) }
                        let certificates = published.certificates.map { Data($0.der) }
                        guard let chosen, chosen.published == certificates else {
                            throw AnchorsNeeded(published: published)
                        }
                        return try chosen.anchors.map { try Certificate(der: Array($0)) }
                    }
                })
        } catch let needed as AnchorsNeeded {
            return .needsAnchors(
                published: needed.published.certificates.map { Data($0.der) },
                serverChain: needed.published.serverChain.map { Data($0.der) })
        }
    }
}

/// The server has published CA certificates that the user has not chosen among.
private struct AnchorsNeeded: Error {
    let published: ESTPublishedAuthorities
}

extension EnrollmentRecord {
    package init(_ request: EnrollmentRequest) {
        self.init(
            name: request.name, server: request.server, subject: request.subject,
            alternativeNames: request.alternativeNames, keySpecification: request.keySpecification, anchors: [],
            credential: request.credential, identity: request.identity)
        serverAnchors = request.serverAnchors.map { .own($0.map { Array($0) }) } ?? .implicit
    }
}

extension VaultResult {
    static func outcome(_ outcome: RenewalOutcome) -> VaultResult {
        switch outcome {
        case .renewed(let leaf): .renewed(leaf: Data(leaf.der))
        case .pending(let until): .pending(until: until)
        }
    }
}

extension VaultContents {
    /// Removes an identity's key or token reference and its enrolment. Returns whether there was anything to remove.
    mutating func removeIdentity(named name: String) -> Bool {
        let removed = [
            removeIdentityKey(named: name), removeTokenKey(named: name), removeEnrollment(named: name),
            removePendingEnrollment(named: name),
        ]
        return removed.contains(true)
    }
}
