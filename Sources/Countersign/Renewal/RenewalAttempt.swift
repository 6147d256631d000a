// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignEnrollment
import CountersignVault

/// One refresh of one identity, from what is in the vault to what is to be there. The lock of the name is held.
struct RenewalAttempt: Sendable {
    let renewal: IdentityRenewal
    let name: String
    let reusesKey: Bool
    /// The pending plan is followed, whatever the identity's enrolment says.
    let isFirst: Bool

    /// A certificate that the server issues but does not take is asked for anew after so many tries.
    private static let proofs: UInt32 = 3

    private var vault: OpenVault { renewal.vault }
    private var home: Home { renewal.home }
    private var now: Int64 { renewal.now() }

    func run(patienceSeconds: Int64) async throws -> IdentityRenewal.Outcome {
        do {
            if case .issued = vault.contents.pendingEnrollments[name]?.state {
                if let leaf = try await finish() { return .renewed(leaf) }
            }
            if let until = try await ask(patienceSeconds: patienceSeconds) { return .pending(until: until) }
            guard let leaf = try await finish() else {
                throw EnrollmentError(.wrongCertificate, "the certificate that was issued is not valid now")
            }
            return .renewed(leaf)
        } catch {
            if !error.isCancellation { try note(error) }
            throw error
        }
    }

    /// What is asked for, as it is now: the pending plan, or the identity's enrolment.
    private func record() throws(CountersignError) -> EnrollmentRecord { try record(in: vault.contents) }

    private func record(in contents: VaultContents) throws(CountersignError) -> EnrollmentRecord {
        guard let record = plan(in: contents) ?? (isFirst ? nil : contents.enrollments[name]) else {
            throw CountersignError(.unknownName, "the enrolment of \(name.debugDescription) was removed meanwhile")
        }
        return record
    }

    /// The pending plan, where that is what is followed: the identity that is there does not speak for it.
    private func plan(in contents: VaultContents) -> EnrollmentRecord? {
        isFirst ? contents.pendingEnrollments[name]?.plan : contents.pendingPlan(of: name)
    }

    /// Changes what ``record(in:)`` gives, in its place.
    private func change(
        _ contents: inout VaultContents, _ change: (inout EnrollmentRecord) -> Void
    ) throws {
        var record = try record(in: contents)
        change(&record)
        if plan(in: contents) != nil, var pending = contents.pendingEnrollments[name] {
            pending.plan = record
            try contents.setPendingEnrollment(pending)
        } else {
            try contents.setEnrollment(record)
        }
    }

    private var stored: StoredIdentity { StoredIdentity(named: name, in: vault.contents, home: home) }

    /// The identity, if a server could take it now.
    private var working: Identity? {
        stored.identity.flatMap { $0.leaf.isValid(at: now) ? $0 : nil }
    }

    // MARK: Asking

    /// Nil once the certificate is in the vault; else the time at which the server may be asked again.
    private func ask(patienceSeconds: Int64) async throws -> Int64? {
        let deadline = now + patienceSeconds
        while true {
            if let retryAt = vault.contents.pendingEnrollments[name]?.retryTime(at: now), retryAt > now {
                guard retryAt <= deadline else { return retryAt }
                renewal.report(.waiting(server: try record().server, until: retryAt))
                try await Task.sleep(for: .seconds(retryAt - now))
            }
            let dialogue = try dialogue()
            renewal.report(.asking(server: try record().server))
            let answer = try await dialogue.ask { attributes throws in try pendingKey(for: attributes) }
            switch answer.outcome {
            case .issued(let chain):
                try vault.update { contents in
                    try change(&contents) { record in
                        record.anchors = answer.anchors.map(\.der)
                        if answer.way.credential != nil { record.refusedCredential = 0 }
                        // The server has taken the identity, so that what it replaced is not wanted any more.
                        if case .identity = answer.way { record.previous = nil }
                    }
                    guard var pending = contents.pendingEnrollments[name] else { return }
                    pending.state = .issued(chain: chain.map(\.der))
                    pending.retryAt = 0
                    pending.attempts = 0
                    pending.request = []
                    try contents.setPendingEnrollment(pending)
                }
                return nil
            case .pending(let seconds, let request):
                let retryAt = now + min(max(seconds, 1), ESTClient.longestRetryAfter)
                try vault.update { contents in
                    _ = try record(in: contents)
                    guard var pending = contents.pendingEnrollments[name] else { return }
                    pending.retryAt = retryAt
                    pending.attempts = pending.attempts &+ 1
                    pending.request = request
                    try contents.setPendingEnrollment(pending)
                }
                if patienceSeconds == 0 { return retryAt }
            }
        }
    }

    private func dialogue() throws -> EnrollmentDialogue {
        let contents = vault.contents
        let record = try record()
        var refused: [Certificate] = []
        if let root = try InterceptionStore(home: home).root() { refused.append(root) }
        let speaker = record.identity.map { StoredIdentity(named: $0, in: contents, home: home) }
        if let key = speaker?.refusedPIN { try vault.update { $0.refusePIN(of: key) } }
        return try EnrollmentDialogue(
            record: record, refusing: refused, current: plan(in: contents) == nil ? working : nil,
            speaker: speaker?.identity, credential: record.credential.flatMap { contents.credentials[$0] },
            now: renewal.now)
    }

    /// The key to ask for, in the vault before anybody is asked: the one that was asked for before, if it still fits.
    private func pendingKey(for attributes: CSRAttributes?) throws -> (key: PrivateKey, previous: [UInt8]?) {
        let wanted = try specification(attributes)
        return try vault.update { contents in
            _ = try record(in: contents)
            let plan = plan(in: contents)
            let reusesKey = reusesKey && plan == nil
            let present = contents.identityKeys[name]?.privateKey
            if let pending = contents.pendingEnrollments[name], (pending.plan == nil) == (plan == nil),
                let key = try? PrivateKey(pkcs8: pending.privateKey),
                reusesKey ? pending.privateKey == present : pending.privateKey != present && key.kind == wanted.kind
            {
                return (key, pending.request.isEmpty ? nil : pending.request)
            }
            let key: PrivateKey
            if reusesKey, let present { key = try PrivateKey(pkcs8: present) } else { key = try .generate(wanted) }
            var pending = PendingEnrollment(name: name, privateKey: try key.pkcs8, created: max(0, now))
            pending.plan = plan
            try contents.setPendingEnrollment(pending)
            return (key, nil)
        }
    }

    private func specification(_ attributes: CSRAttributes?) throws -> KeySpecification {
        let text = try record().keySpecification
        if text == EnrollmentRecord.anyKey { return attributes?.keySpecification ?? .ecP256 }
        guard let specification = KeySpecification(text) else {
            throw CountersignError(.configuration, "\(text.debugDescription) is not a kind of key")
        }
        return specification
    }

    // MARK: Taking

    /// The leaf, once the issued chain has been proved and is the identity's; nil when it is not worth that, and gone.
    private func finish() async throws -> Certificate? {
        guard let pending = vault.contents.pendingEnrollments[name], case .issued(let issued) = pending.state,
            let chain = try? issued.map({ try Certificate(der: $0) }),
            let identity = try? Identity(name: name, chain: chain, key: PrivateKey(pkcs8: pending.privateKey)),
            identity.leaf.isValid(at: now), pending.attempts < Self.proofs
        else {
            try vault.update { contents in
                if let plan = plan(in: contents) {
                    try contents.setPendingEnrollment(PendingEnrollment(for: plan, created: now))
                } else {
                    contents.removePendingEnrollment(named: name)
                }
            }
            return nil
        }
        try await prove(identity)
        try commit(identity)
        return identity.leaf
    }

    private func prove(_ identity: Identity) async throws {
        let record = try record()
        do {
            guard try await dialogue().prove(identity) else {
                return renewal.report(.notVerified(server: record.server))
            }
        } catch let error as EnrollmentError {
            // Where nothing works, what could not be proved for reasons of its own is better than nothing.
            if working == nil, error.isTransient { return renewal.report(.notVerified(server: record.server)) }
            guard error.code == .identityRefused else { throw error }
            try vault.update { contents in
                guard var pending = contents.pendingEnrollments[name] else { return }
                pending.attempts = pending.attempts &+ 1
                try contents.setPendingEnrollment(pending)
            }
            throw EnrollmentError(
                .wrongCertificate, "\(record.server) does not take the certificate that it has issued: \(error.detail)",
                hint: "the identity stays as it was")
        }
    }

    private func commit(_ identity: Identity) throws {
        let time = now
        try vault.update { contents in
            var record = try record(in: contents)
            let before = StoredIdentity(named: name, in: contents, home: home).identity
            record.previous = contents.enrollments[name]?.previous
            let isKept = record.previous?.leaf?.isValid(at: time) ?? false
            if let before, !isKept, !before.key.isInToken, before.leaf != identity.leaf {
                record.previous = KeptIdentity(privateKey: try before.key.pkcs8, chain: before.chain.map(\.der))
            }
            record.chain = identity.chain.map(\.der)
            record.failures = 0
            record.lastFailure = 0
            try contents.setIdentityKey(
                IdentityKey(
                    name: name, privateKey: try identity.key.pkcs8, leafSHA256: identity.leaf.sha256Fingerprint))
            try contents.setEnrollment(record)
            contents.removePendingEnrollment(named: name)
        }
        do {
            try renewal.repairFile(of: name)
        } catch {
            // The vault has a copy, and the identity is whole.
            renewal.report(.fileNotWritten(reason: Diagnostic.all(in: error).first?.message ?? "it cannot be written"))
        }
    }

    // MARK: Failing

    /// What the next attempt has to know of this one.
    private func note(_ error: any Error) throws {
        let refusal = error as? CredentialRefused
        try vault.update { contents in
            guard let failed = try? record(in: contents) else { return }
            try change(&contents) { record in
                record.failures = record.failures == .max ? .max : record.failures + 1
                record.lastFailure = max(0, now)
                if let refusal { record.refusedCredential = refusal.generation }
            }
            if let refusal, var standing = contents.enrollments[name], standing.server == failed.server,
                standing.credential == failed.credential
            {
                standing.refusedCredential = refusal.generation
                try contents.setEnrollment(standing)
            }
            // A request that the server has turned down is not made again with the same key.
            if contents.pendingEnrollments[name]?.state == .requested, error.isAboutRequest {
                contents.removePendingEnrollment(named: name)
            }
        }
    }
}

extension Error {
    /// The task was cancelled: nobody's fault.
    var isCancellation: Bool { self is CancellationError || (self as? EnrollmentError)?.code == .cancelled }

    /// The server's answer to the request was no, or a certificate that is not for it; not that it could not be asked, or
    /// not by us.
    fileprivate var isAboutRequest: Bool {
        switch self {
        case let error as EnrollmentError: error.turnsDown == .request || error.code == .wrongCertificate
        case let error as CredentialRefused: error.turnsDownRequest
        default: false
        }
    }
}

extension EnrollmentRecord {
    /// The ``keySpecification`` that leaves the kind of key to the server, and to us where that does not say.
    package static let anyKey = "any"
}

extension KeptIdentity {
    var leaf: Certificate? { chain.first.flatMap { try? Certificate(der: $0) } }
}
