// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignEnrollment
import CountersignHome
import CountersignVault
import FoundationEssentials

extension HomeManager {
    /// Enrols a key in a token, in this process, which needs the vault open.
    func enrollInToken(
        _ enrollment: IdentityEnrollment, _ fingerprint: [UInt8]?,
        _ progress: @escaping @Sendable (IdentityProgress) -> Void
    ) async throws -> IdentityOutcome {
        let (renewal, request, key) = try await vault.withOpenVault(creates: true) { [home] opened in
            do {
                let operations = VaultOperations(home: home, vault: opened, now: ChallengeController.now)
                let user = try operations.perform(ListCredentials()).first { $0.name == enrollment.credential }?.user
                let request = try EnrollmentRequest(enrollment, user: user)
                // Only an enrolment whose key is in a token gets here.
                guard let token = try enrollment.token?.located() else { preconditionFailure("there is no token") }
                try token.checkKey()
                let renewal = try operations.renewal { progress(IdentityProgress($0)) }
                return (renewal, request, token.key(named: enrollment.name))
            } catch {
                throw ChallengeError(managing: error, missing: .credentialMissing)
            }
        }
        var plan = EnrollmentRecord(request)
        plan.keySpecification = EnrollmentRecord.tokenKey
        let own = request.serverAnchors ?? []
        plan.serverAnchors = own.isEmpty ? .implicit : .own(own.map { Array($0) })
        let result: Result<IdentityOutcome, any Error>
        do {
            let outcome = try await renewal.enroll(
                plan, replaces: request.replaces, token: key, request.options
            ) { published in
                try Self.chosen(published.certificates, fingerprint: fingerprint, verifying: own)
            }
            result = .success(IdentityOutcome(outcome))
        } catch {
            result = .failure(error)
        }
        if let controller { await controller.reading { $0.refresh() } }
        do {
            return try result.get()
        } catch {
            try Task.checkCancellation()
            throw ChallengeError(managing: error, missing: .credentialMissing)
        }
    }

    /// The self-signed CA certificates among `published`, or the one with the fingerprint.
    static func chosen(
        _ published: [Certificate], fingerprint: [UInt8]?, verifying: [Data]
    ) throws -> [Certificate] {
        let roots = published.filter { root in
            root.isCertificateAuthority && root.subject == root.issuer
                && fingerprint.map { $0 == root.sha256Fingerprint } != false
        }
        guard !roots.isEmpty else {
            throw ChallengeError(
                .refreshFailed,
                fingerprint == nil
                    ? "the server publishes no root certificate"
                    : "no root certificate of the server has the fingerprint",
                fault: .peer)
        }
        return roots
    }
}

extension EnrollmentRequest {
    /// `user` is the user name of the credential that authenticates it; nil without a credential.
    init(_ enrollment: IdentityEnrollment, user: String?) throws {
        let kinds = KeySpecification.allCases.map(\.rawValue).joined(separator: ", ")
        if let key = enrollment.key, KeySpecification(key) == nil {
            throw ChallengeError(
                .valueFaulty, "\(key.debugDescription) is not a kind of key", hint: "use one of \(kinds)")
        }
        let endpoint: ESTEndpoint
        do {
            endpoint = try ESTEndpoint(parsing: enrollment.server.absoluteString)
            if let subject = enrollment.subject { _ = try SubjectName(subject) }
            for name in enrollment.alternativeNames { _ = try SubjectAlternativeName(name) }
        } catch {
            let diagnostic = Diagnostic.all(in: error).first
            throw ChallengeError(.valueFaulty, diagnostic?.message ?? "\(error)", hint: diagnostic?.hint)
        }
        var options = IdentityRenewal.Options()
        options.patienceSeconds = enrollment.patience.components.seconds
        self.init(
            name: enrollment.name, server: endpoint.description,
            subject: enrollment.subject ?? EnrollmentRecord.subject(ofUser: user ?? enrollment.name),
            alternativeNames: enrollment.alternativeNames,
            keySpecification: enrollment.key.flatMap { KeySpecification($0) }?.rawValue ?? EnrollmentRecord.anyKey,
            credential: user == nil ? nil : enrollment.credential, identity: enrollment.identity,
            replaces: enrollment.replaces, options: options,
            serverAnchors: enrollment.serverAnchors.map { $0.map { Data($0.der) } })
    }
}
