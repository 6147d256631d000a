// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
package import CountersignChallenges
import CountersignCryptography
import CountersignEnrollment
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
    /// When the server is asked again for a certificate about which it has not decided; nil if there is none.
    package let pendingUntil: Int64?
    /// Failed renewals since the last success.
    package let failures: UInt32

    /// Nil if the vault has no certificate of the sign-in.
    init?(of record: SignInRecord, in contents: VaultContents) {
        guard contents.hasOwnIdentity(record) else { return nil }
        let enrollment = contents.enrollments[record.name]
        let pending = contents.pendingEnrollments[record.name]
        guard let plan = enrollment ?? pending?.plan else { return nil }
        let leaf = enrollment?.chain.first.flatMap { try? Certificate(der: $0) }
        server = plan.server
        subject = leaf?.subject
        notAfter = leaf?.notAfter
        pendingUntil = pending?.isUnderway == true ? pending?.retryAt : nil
        failures = plan.failures
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
        reason = diagnostic?.message ?? "\(cause)"
        hint = diagnostic?.hint
    }

    var detail: String { "\(server) has issued no certificate, so the sign-in is not stored: \(reason)" }
}

extension SignInRecord {
    /// The service of the profile; nil if it names none.
    var certificates: CertificateService? { (try? SignInProfile(Array(profile.utf8)))?.certificates }
}

extension VaultContents {
    /// The access token of a sign-in; nil for the name of anything else.
    func accessToken(named name: String) -> TokenCredential? { signIns[name] == nil ? nil : tokens[name] }

    /// Whether the identity with the sign-in's name was enrolled, or is being enrolled, for the sign-in: at the service
    /// of its profile, with its access token. A person may have put another one in its place.
    func hasOwnIdentity(_ signIn: SignInRecord) -> Bool {
        let name = signIn.name
        guard let server = signIn.certificates?.endpoint.description else { return false }
        return [enrollments[name], pendingEnrollments[name]?.plan].contains { plan in
            plan?.credential == name && plan?.server == server
        }
    }
}

extension VaultContents {
    /// Whether all that there is of the identity is a request with the access token of a sign-in that is not stored,
    /// yet or ever.
    func hasAbandonedRequest(named name: String) -> Bool {
        pendingEnrollments[name]?.plan?.credential == name && enrollments[name] == nil && !hasKey(of: name)
            && !credentialNames.contains(name)
    }
}

extension EnrollmentRecord {
    /// The certificate of a sign-in, which its access token of the same name enrols.
    init(_ new: NewSignIn, at service: CertificateService) {
        let anchors = service.anchors.map(\.der)
        self.init(
            name: new.name, server: service.endpoint.description, subject: Self.subject(of: new),
            keySpecification: service.key?.rawValue ?? Self.anyKey, anchors: anchors, credential: new.name)
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
    /// What the line for an EST server permits to answer it with, beside the access token of a sign-in: the name of a
    /// password for Basic and Digest, and that of an identity.
    package func authentication(at server: Origin) -> (credential: String?, identity: String?)? {
        guard case .answer(let rule) = verdict(for: server) else { return nil }
        let takesPassword = rule.answer.contains(.basic) || rule.answer.contains(.digest)
        return (
            takesPassword ? rule.credential : nil, rule.answer.contains(.certificate) ? rule.identity : nil
        )
    }
}
