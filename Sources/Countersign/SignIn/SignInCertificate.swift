// SPDX-License-Identifier: Apache-2.0

package import CountersignAddresses
import CountersignCertificates
import CountersignCryptography
import CountersignEnrollment
import CountersignHome
import CountersignSignIn
package import CountersignSitePolicy
import CountersignVault

/// The client certificate of a sign-in, for display. The identity has the name of the sign-in. Times are in seconds
/// since 1970.
package struct ListedCertificate: Equatable, Sendable, Codable {
    /// The EST server.
    package let server: String
    /// Nil before the first certificate is issued.
    package let subject: String?
    package let notAfter: Int64?
    /// When the server is due for another request about a certificate that it has not decided on; nil without one.
    package let pendingUntil: Int64?
    /// Failed renewals since the last success.
    package let failures: UInt32
    /// There is neither a certificate nor a request for one: the server has refused it.
    package let isMissing: Bool?

    /// Nil if the profile names no EST service, or a person has put another identity in the place of the certificate.
    init?(of record: SignInRecord, in contents: VaultContents) {
        let name = record.name
        let enrollment = contents.ownsCertificate(record) ? contents.enrollments[name] : nil
        let isOwnRequest =
            contents.ownsRequest(record) || enrollment != nil && contents.pendingEnrollments[name]?.plan == nil
        let pending = isOwnRequest ? contents.pendingEnrollments[name] : nil
        guard let plan = enrollment ?? pending?.plan else {
            guard let service = record.certificates, !contents.hasKey(of: name), contents.plan(of: name) == nil else {
                return nil
            }
            server = service.endpoint.description
            (subject, notAfter, pendingUntil, failures, isMissing) = (nil, nil, nil, 0, true)
            return
        }
        let leaf = enrollment?.chain.first.flatMap { try? Certificate(der: $0) }
        server = plan.server
        subject = leaf?.subject
        notAfter = leaf?.notAfter
        pendingUntil = pending?.isUnderway == true ? pending?.retryAt : nil
        failures = plan.failures
        isMissing = nil
    }
}

/// The EST service of a profile has not issued the certificate, so that nothing of the sign-in is stored.
struct CertificateNotIssued: DiagnosableError {
    let server: String
    /// Whether a later attempt may succeed without a change on this side.
    let isTransient: Bool
    private let reason: String
    let hint: String?

    init(by server: String, because cause: any Error) {
        self.server = server
        isTransient = (cause as? EnrollmentError)?.isTransient ?? false
        let diagnostic = Diagnostic.all(in: cause).first
        reason = (cause as? CredentialRefused)?.detail(naming: "it") ?? diagnostic?.message ?? "\(cause)"
        hint = diagnostic?.hint
    }

    var detail: String { "\(server) has issued no certificate, so the sign-in is not stored: \(reason)" }
}

extension SignInRecord {
    /// The service of the profile; nil if it names none.
    var certificates: CertificateService? { (try? SignInProfile(Array(profile.utf8)))?.certificates }
}

extension VaultContents {
    /// The sign-in that an enrolment belongs to; nil if it belongs to none, or to one that is not or no longer stored.
    func signIn(of plan: EnrollmentRecord) -> SignInRecord? {
        signIns[plan.name].flatMap { plan.belongs(to: $0) ? $0 : nil }
    }

    /// Whether the identity with the sign-in's name was enrolled for the sign-in. A person may have put another one in
    /// its place.
    func ownsCertificate(_ signIn: SignInRecord) -> Bool { enrollments[signIn.name]?.belongs(to: signIn) ?? false }

    /// Whether the certificate that is requested for the identity with the sign-in's name is the sign-in's.
    func ownsRequest(_ signIn: SignInRecord) -> Bool {
        pendingEnrollments[signIn.name]?.plan?.belongs(to: signIn) ?? false
    }

    /// Whether a certificate is requested for a sign-in that is not stored: the command that signs in is not done, or
    /// was killed. It is killed if the caller holds the identity's ``RenewalLock``.
    func hasAbandonedRequest(named name: String) -> Bool {
        guard let plan = pendingEnrollments[name]?.plan, plan.owner != nil else { return false }
        return signIn(of: plan) == nil
    }

    /// Removes the certificate of a sign-in, and the request for one. Another identity of that name stays, and so does
    /// a request for one. Returns whether the identity's key was removed, so that its file has no use.
    mutating func removeCertificate(of signIn: SignInRecord) -> Bool {
        let name = signIn.name
        if ownsRequest(signIn) || hasAbandonedRequest(named: name) { removePendingEnrollment(named: name) }
        guard ownsCertificate(signIn) else { return false }
        if pendingEnrollments[name]?.plan == nil { removePendingEnrollment(named: name) }
        removeIdentityKey(named: name)
        removeTokenKey(named: name)
        removeEnrollment(named: name)
        return true
    }

    /// Gives the certificate of a sign-in, and the request for one, to the sign-in that has taken its place.
    mutating func giveCertificate(of former: SignInRecord, to new: NewSignIn) throws(VaultError) {
        if ownsCertificate(former), var record = enrollments[former.name] {
            record.owner?.signIn = new.identifier
            try setEnrollment(record)
        }
        if ownsRequest(former), var pending = pendingEnrollments[former.name] {
            pending.plan?.owner?.signIn = new.identifier
            try setPendingEnrollment(pending)
        }
    }
}

extension NewSignIn {
    /// Whether the same person has signed in again at the same provider.
    func isSamePerson(as former: SignInRecord) -> Bool {
        guard issuer == former.issuer, subject == former.subject else { return false }
        return !subject.isEmpty || !account.isEmpty && account == former.account
    }
}

extension EnrollmentRecord {
    /// The certificate of a sign-in, which its access token of the same name enrols.
    init(_ new: NewSignIn, at service: CertificateService) {
        let anchors = service.anchors.map(\.der)
        self.init(
            name: new.name, server: service.endpoint.description, subject: Self.subject(of: new),
            keySpecification: service.key?.rawValue ?? Self.anyKey, anchors: anchors, credential: new.name)
        owner = Owner(signIn: new.identifier)
    }

    func belongs(to signIn: SignInRecord) -> Bool {
        name == signIn.name && owner.map { $0.signIn == signIn.identifier } ?? false
    }

    /// The first that a certificate can have of the account's name, the subject's, and the sign-in's.
    private static func subject(of new: NewSignIn) -> String {
        let candidates = [new.account, new.subject].filter { (1...64).contains($0.utf8.count) }.map(subject(ofUser:))
        return candidates.first { (try? SubjectName($0)) != nil } ?? subject(ofUser: new.name)
    }

    /// `CN=` and the user's name without a Windows domain, escaped as RFC 4514 §2.4 requires.
    package static func subject(ofUser user: String) -> String {
        let name = user.split(separator: "\\", maxSplits: 1).last ?? ""
        let escaped = name.map { "\"#+,;<=>\\/".contains($0) ? "\\\($0)" : String($0) }.joined()
        return "CN=" + (escaped.isEmpty ? "countersign" : escaped)
    }
}

extension SiteList {
    /// The credentials besides a sign-in's access token that the line for an EST server permits: the name of a password
    /// for Basic and Digest, and that of an identity.
    package func authentication(at server: Origin) -> (credential: String?, identity: String?)? {
        guard case .answer(let rule) = verdict(for: server, request: nil) else { return nil }
        let takesPassword = rule.answer.contains(.basic) || rule.answer.contains(.digest)
        return (
            takesPassword ? rule.credential : nil, rule.answer.contains(.certificate) ? rule.identity : nil
        )
    }
}
