// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignEnrollment
import CountersignVault

/// What is said to an EST server for one certificate: first by the identity itself (`/simplereenroll`, RFC 7030 §4.2.2), then, when
/// that cannot or may not speak for itself any more, by a credential or another identity (`/simpleenroll`, §4.2.1).
///
/// A credential is shown to the server once in a dialogue, and one that it has refused never again until it changes.
struct EnrollmentDialogue: Sendable {
    private let record: EnrollmentRecord
    private let endpoint: ESTEndpoint
    private let anchors: [Certificate]
    private let refused: [Certificate]
    private let current: Identity?
    private let speaker: Identity?
    private let credential: PasswordCredential?
    private let now: @Sendable () -> Int64

    /// Who speaks for the request.
    enum Way: Sendable {
        case identity(Identity)
        case others(PasswordCredential?, Identity?)

        var credential: PasswordCredential? {
            if case .others(let credential, _) = self { credential } else { nil }
        }
    }

    struct Answer: Sendable {
        let outcome: ESTOutcome
        /// The anchors from now on.
        let anchors: [Certificate]
        let way: Way
    }

    /// `current` is the identity as long as a server could take it, `speaker` another one for a first enrolment.
    init(
        record: EnrollmentRecord, refusing refused: [Certificate], current: Identity?, speaker: Identity?,
        credential: PasswordCredential?, now: @escaping @Sendable () -> Int64
    ) throws {
        self.record = record
        endpoint = try ESTEndpoint(parsing: record.server)
        anchors = try record.anchors.map { try Certificate(der: $0) }
        self.refused = refused
        self.current = current
        self.speaker = speaker
        self.credential = credential
        self.now = now
    }

    /// Asks once by each way that there is, until one is not turned down. `prepare` gives the key to ask for, and the request
    /// of before, when it is known what the server wants.
    func ask(
        _ prepare: (CSRAttributes?) throws -> (key: PrivateKey, previous: [UInt8]?)
    ) async throws -> Answer {
        if let current {
            do {
                return try await ask(by: .identity(current), prepare)
            } catch let error as EnrollmentError where error.isAboutIdentity {
                guard credential != nil || speaker != nil else {
                    throw EnrollmentError(
                        error.code, error.detail,
                        hint: "name a credential that may enrol it again: `countersign certificate enroll "
                            + "\(record.name) --replace --credential NAME --est \(record.server)`",
                        statusCode: error.statusCode)
                }
            }
        }
        return try await ask(by: try others(), prepare)
    }

    private func others() throws -> Way {
        if let name = record.credential {
            guard let credential else {
                throw CountersignError(
                    .unknownName,
                    "there is no credential \(name.debugDescription), which enrols identity \"\(record.name)\"",
                    hint: "`countersign credential set \(name) --user …` adds it")
            }
            guard credential.generation != record.refusedCredential else {
                throw CountersignError(
                    .refused,
                    "\(record.server) has refused the credential \"\(name)\": it is not tried again until it changes",
                    hint: "`countersign credential set \(name) --user \(credential.user)` sets a new password")
            }
        }
        return .others(credential, speaker)
    }

    private func ask(
        by way: Way, _ prepare: (CSRAttributes?) throws -> (key: PrivateKey, previous: [UInt8]?)
    ) async throws -> Answer {
        do {
            let client = try client(way)
            let authorities = try await client.authorities()
            let attributes = try await client.requestAttributes()
            let (key, previous) = try prepare(attributes)
            let request = try request(way, attributes, key, previous)
            let outcome = try await client.enroll(way.kind, request, authorities: authorities)
            return Answer(outcome: outcome, anchors: authorities.anchors, way: way)
        } catch let error as EnrollmentError where error.turnsDown == .credential {
            guard let credential = way.credential else { throw error }
            throw CredentialRefused(
                generation: credential.generation, name: credential.name, server: record.server, reason: error.detail,
                turnsDownRequest: error.code == .refused)
        }
    }

    private func client(_ way: Way) throws -> ESTClient {
        var access = ESTAccess(anchors: anchors, refusing: refused)
        switch way {
        case .identity(let identity): access.identity = identity
        case .others(let credential, let identity):
            access.credential = credential
            access.identity = identity
        }
        return try ESTClient(endpoint: endpoint, access: access, now: now)
    }

    private func request(
        _ way: Way, _ attributes: CSRAttributes?, _ key: PrivateKey, _ previous: [UInt8]?
    ) throws -> ESTRequest {
        if case .identity(let identity) = way {
            return ESTRequest(renewing: identity.leaf, attributes: attributes, key: key, previous: previous)
        }
        let names = try record.alternativeNames.map { try SubjectAlternativeName($0) }
        return ESTRequest(
            subject: try SubjectName(record.subject), alternativeNames: names, attributes: attributes, key: key,
            previous: previous)
    }

    /// Whether the server has seen `identity` and taken it; false when it did not want to see it.
    func prove(_ identity: Identity) async throws -> Bool {
        var access = ESTAccess(anchors: anchors, refusing: refused)
        access.identity = identity
        return try await ESTClient(endpoint: endpoint, access: access, now: now).proveIdentity()
    }
}

extension EnrollmentDialogue.Way {
    fileprivate var kind: ESTClient.Enrollment {
        switch self {
        case .identity: .reenroll
        case .others: .enroll
        }
    }
}

extension EnrollmentError {
    /// The server turned down who was asking, as it does with a revoked certificate; another way may be taken.
    fileprivate var isAboutIdentity: Bool {
        switch code {
        case .identityRefused, .unauthorized: true
        case .refused: statusCode.map { (400..<500).contains($0) && $0 != 408 && $0 != 429 } ?? false
        default: false
        }
    }
}

/// A credential was sent and came back with 401 or 403, and is not to be tried again.
struct CredentialRefused: Error, Sendable {
    let generation: UInt64
    let name: String
    let server: String
    let reason: String
    /// The server has read the request as well.
    let turnsDownRequest: Bool
}
