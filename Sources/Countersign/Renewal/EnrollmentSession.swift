// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates
import CountersignChallenges
import CountersignCryptography
package import CountersignEnrollment
package import CountersignHome
package import CountersignVault

/// The requests to an EST server for one certificate: first authenticated by the identity's current certificate
/// (`/simplereenroll`, RFC 7030 §4.2.2); if the server no longer accepts that, by a credential or another identity
/// (`/simpleenroll`, §4.2.1).
///
/// A credential is sent once per session, and not at all if the server has refused it and it has not changed since.
struct EnrollmentSession: Sendable {
    private let record: EnrollmentRecord
    private let endpoint: ESTEndpoint
    private let anchors: [Certificate]
    private let serverAnchors: ESTServerAnchors
    private let refused: [Certificate]
    private let current: Identity?
    private let enroller: Enroller
    private let now: @Sendable () -> Int64
    private let report: @Sendable (RenewalProgress) -> Void
    private let confirm: Confirmation?

    /// Returns the anchors of issued certificates that the user has chosen among the server's CA certificates. They are
    /// in the enrolment's record when it returns.
    typealias Confirmation = @Sendable (ESTPublishedAuthorities) throws -> [Certificate]

    /// The authentication of a request.
    enum Authentication: Sendable {
        /// The certificate that is being renewed.
        case current(Identity)
        case enroller(Enroller)

        fileprivate var enroller: Enroller? { if case .enroller(let enroller) = self { enroller } else { nil } }

        /// Whether a password may have been sent.
        var hasPassword: Bool { enroller?.credential != nil }
        /// Whether a token may have been sent.
        var hasToken: Bool { enroller?.token != nil }

        fileprivate var kind: ESTClient.Enrollment {
            switch self {
            case .current: .reenroll
            case .enroller: .enroll
            }
        }
    }

    /// The authentication of a first request: any of the enrolment's credential, the access token of a sign-in, and
    /// another identity.
    struct Enroller: Sendable {
        var credential: PasswordCredential?
        var token: TokenCredential?
        var identity: Identity?
        /// Why there is no token although the certificate is that of a sign-in.
        var tokenFault: TokenFault?

        /// Without those that the server has refused before.
        fileprivate func usable(for record: EnrollmentRecord) -> Enroller {
            var usable = self
            if credential?.generation == record.refusedCredential { usable.credential = nil }
            if let token, token.generation == record.owner?.refusedToken { usable.token = nil }
            return usable
        }
    }

    /// Why the access token of a sign-in cannot be sent.
    struct TokenFault: Sendable {
        let detail: String
        let hint: String
    }

    struct Answer: Sendable {
        let outcome: ESTOutcome
        /// The trust anchors of issued certificates from now on.
        let anchors: [Certificate]
        /// The server's CA certificates.
        let published: [Certificate]
        let authentication: Authentication
    }

    /// `current` is the identity to renew, if a server could accept it; `enroller` enrols it otherwise. `homeAnchors`
    /// are those in `Certs/anchors`. Without `confirm`, the server's CA certificates have to contain an anchor of the
    /// record or to be vouched for by one.
    init(
        record: EnrollmentRecord, homeAnchors: AnchorFiles, refusing refused: [Certificate], current: Identity?,
        enroller: Enroller, now: @escaping @Sendable () -> Int64,
        report: @escaping @Sendable (RenewalProgress) -> Void, confirm: Confirmation?
    ) throws {
        self.record = record
        endpoint = try ESTEndpoint(parsing: record.server)
        anchors = try record.anchors.map { try Certificate(der: $0) }
        serverAnchors = try record.serverAnchors.certificates(orSame: anchors, homeAnchors)
        self.confirm = confirm
        self.refused = refused
        self.current = current
        self.enroller = enroller
        self.now = now
        self.report = report
    }

    /// Requests a certificate with each available authentication until the server accepts one. `prepare` receives the
    /// server's CSR attributes and returns the key, and the previous request for a repetition.
    func request(
        _ prepare: (CSRAttributes?) throws -> (key: PrivateKey, previous: [UInt8]?)
    ) async throws -> Answer {
        if let current {
            do {
                return try await request(by: .current(current), prepare)
            } catch let error as EnrollmentError where error.isAboutIdentity {
                if error.mayConcernIdentity, !hasUsableEnroller { throw error }
                guard
                    enroller.credential != nil || enroller.token != nil || enroller.identity != nil
                        || enroller.tokenFault != nil
                else {
                    throw EnrollmentError(
                        error.code, error.detail,
                        hint: "enrol it again with a credential: `countersign certificate enroll "
                            + "\(record.name) --replace --credential NAME --est \(record.server)`",
                        statusCode: error.statusCode)
                }
            }
        }
        return try await request(by: try enrollerAuthentication(), prepare)
    }

    /// Whether another authentication than the current certificate can be tried.
    private var hasUsableEnroller: Bool {
        guard record.credential != nil else { return enroller.identity != nil }
        let usable = enroller.usable(for: record)
        return usable.credential != nil || usable.token != nil
    }

    private func enrollerAuthentication() throws -> Authentication {
        guard let name = record.credential else { return .enroller(enroller) }
        guard enroller.credential != nil || enroller.token != nil else {
            if let fault = enroller.tokenFault { throw CountersignError(.refused, fault.detail, hint: fault.hint) }
            throw CountersignError(
                .unknownName,
                "there is no credential \(name.debugDescription), which enrols identity \"\(record.name)\"",
                hint: "add it with `countersign credential set \(name) --user …`")
        }
        let usable = enroller.usable(for: record)
        guard usable.credential != nil || usable.token != nil else {
            if enroller.token != nil {
                throw CountersignError(
                    .refused,
                    "\(record.server) has refused the access token \"\(name)\": it is not tried again until it changes",
                    hint: "sign in again with `countersign enroll \(name)`")
            }
            throw CountersignError(
                .refused,
                "\(record.server) has refused the credential \"\(name)\": it is not tried again until it changes",
                hint: "set a new password with "
                    + "`countersign credential set \(name) --user \(enroller.credential?.user ?? "…")`")
        }
        return .enroller(usable)
    }

    private func request(
        by authentication: Authentication,
        _ prepare: (CSRAttributes?) throws -> (key: PrivateKey, previous: [UInt8]?)
    ) async throws -> Answer {
        do {
            let client = try client(authentication)
            let authorities = try await authorities(of: client)
            let attributes = try await attributes(of: client)
            let (key, previous) = try prepare(attributes)
            let request = try certificateRequest(authentication, attributes, key, previous)
            let outcome = try await client.enroll(authentication.kind, request, authorities: authorities)
            return Answer(
                outcome: outcome, anchors: authorities.anchors, published: authorities.certificates,
                authentication: authentication)
        } catch let error as EnrollmentError where error.rejects == .credential || error.rejects == .token {
            guard let enroller = authentication.enroller else { throw error }
            if error.rejects == .token, let token = enroller.token {
                throw CredentialRefused(
                    generation: token.generation ?? 0, name: token.name, isToken: true, server: record.server,
                    reason: error.code == .unauthorized ? "" : error.detail, turnsDownRequest: error.code == .refused)
            }
            guard let credential = enroller.credential else { throw error }
            throw CredentialRefused(
                generation: credential.generation ?? 0, name: credential.name, isToken: false, server: record.server,
                reason: error.detail, turnsDownRequest: error.code == .refused)
        }
    }

    private func authorities(of client: ESTClient) async throws -> ESTCertificationAuthorities {
        guard let confirm else { return try await client.certificationAuthorities() }
        let published = try await client.publishedAuthorities()
        return try ESTCertificationAuthorities(published.certificates, anchors: try confirm(published), at: now())
    }

    /// The attributes that the server wants in the request. Unreadable ones are reported and not an error.
    private func attributes(of client: ESTClient) async throws(EnrollmentError) -> CSRAttributes? {
        do {
            let attributes = try await client.requestAttributes()
            if let names = attributes?.ignoredNames, !names.isEmpty {
                report(.attributesNotSupplied(server: record.server, names: names))
            }
            return attributes
        } catch {
            guard error.code == .malformedResponse else { throw error }
            report(.attributesNotRead(server: record.server, reason: error.detail))
            return nil
        }
    }

    private func client(_ authentication: Authentication) throws -> ESTClient {
        var access = ESTAuthentication(anchors: anchors, server: serverAnchors, refusing: refused)
        switch authentication {
        case .current(let identity): access.identity = identity
        case .enroller(let enroller):
            access.credential = enroller.credential
            access.token = enroller.token
            access.identity = enroller.identity
        }
        return try ESTClient(endpoint: endpoint, access: access, now: now)
    }

    private func certificateRequest(
        _ authentication: Authentication, _ attributes: CSRAttributes?, _ key: PrivateKey, _ previous: [UInt8]?
    ) throws -> ESTRequest {
        if case .current(let identity) = authentication {
            return ESTRequest(renewing: identity.leaf, attributes: attributes, key: key, previous: previous)
        }
        let names = try record.alternativeNames.map { try SubjectAlternativeName($0) }
        return ESTRequest(
            subject: try SubjectName(record.subject), alternativeNames: names, attributes: attributes, key: key,
            previous: previous)
    }

    /// Presents `identity` to the server. Returns whether the server accepted it, or false if it did not request a
    /// certificate.
    func verify(_ identity: Identity) async throws -> Bool {
        var access = ESTAuthentication(anchors: anchors, server: serverAnchors, refusing: refused)
        access.identity = identity
        return try await ESTClient(endpoint: endpoint, access: access, now: now).proveIdentity()
    }
}

extension EnrollmentRecord.ServerAnchors {
    /// The certificates, with `same` for ``same``.
    package func certificates(orSame same: [Certificate], _ homeAnchors: AnchorFiles) throws -> ESTServerAnchors {
        switch self {
        case .same: .explicit(same)
        case .own(let anchors): .explicit(try anchors.map { try Certificate(der: $0) })
        case .implicit:
            .implicit(additional: homeAnchors.certificates, revocationLists: homeAnchors.revocationLists)
        }
    }

    /// Adds the CA certificates that these anchors vouch for (RFC 4210 §4.4).
    func rolledOver(by certificates: [Certificate], at time: Int64) -> Self {
        guard case .own(let encoded) = self, let anchors = try? encoded.map({ try Certificate(der: $0) }),
            let found = try? ESTCertificationAuthorities(certificates, anchors: anchors, at: time)
        else { return self }
        return .own(found.anchors.map(\.der))
    }
}

extension EnrollmentError {
    /// Whether the server refused the authentication, for example because the certificate is revoked or TLS does not
    /// permit its key. Another authentication may succeed.
    fileprivate var isAboutIdentity: Bool {
        switch code {
        case .identityRefused, .identityUnusable, .unauthorized: true
        case .cut, .handshakeFailed: mayConcernIdentity
        case .refused: statusCode.map { (400..<500).contains($0) && $0 != 408 && $0 != 429 } ?? false
        default: false
        }
    }
}

/// An EST server answered a credential with 401 or 403. The credential is not sent to it again until it changes.
struct CredentialRefused: DiagnosableError {
    /// 0 for a token that the vault does not have yet.
    let generation: UInt64
    let name: String
    /// It is the access token of a sign-in.
    let isToken: Bool
    let server: String
    /// Empty if the server gives none.
    let reason: String
    /// Whether the server refused the certificate request as well.
    let turnsDownRequest: Bool

    var detail: String { detail(naming: server) }

    func detail(naming server: String) -> String {
        let kind = isToken ? "access token" : "credential"
        return "\(server) refused the \(kind) \"\(name)\"\(reason.isEmpty ? "" : ": \(reason)")"
    }

    var hint: String? {
        isToken
            ? "the service has to accept the access tokens of the profile's provider"
            : "it is not tried again until it changes: `countersign credential set \(name) --user …`"
    }
}
