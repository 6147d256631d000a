// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignCertificates
import CountersignChallenges
import Glibc
import CountersignSitePolicy
import CountersignTLS

extension ChallengeController {
    /// The answer to a challenge that has passed all three checks.
    struct Answer {
        let credential: Credential
        /// The name under which it was enrolled.
        let name: String
        /// The breaker's key; nil for an identity, because failures with certificates do not lock accounts.
        let key: Breaker.Key?
        /// The line of the list that permits the answer.
        let line: String
    }

    /// Runs the three checks in order: is the site on the list, does its line permit this kind of challenge, is there a
    /// credential or an identity to answer with.
    func answer(
        to space: ProtectionSpace, of request: SiteRequest?, under policy: Policy
    ) throws(ChallengeError) -> Answer {
        let origin = try space.origin()
        let rule = try listed(origin, for: request, in: policy)
        let scheme = try permitted(space, by: rule, policy)
        return scheme == .certificate
            ? try identity(for: space, rule, policy)
            : try stored(for: space.authenticationSpace(scheme, at: origin), rule, policy)
    }

    /// Whether a challenge field offers a scheme that is stronger than the space's (RFC 7616 §5.6) and can be answered,
    /// too. True also if a part of the field cannot be read.
    package func canAnswer(
        strongerThan space: ProtectionSpace, offeredIn field: String, to permit: BreakerPermit?
    ) -> Bool {
        let reading = ChallengeParser.read(ChallengeField(field))
        guard reading.fault == nil else { return true }
        return AuthenticatorTable.supported.authenticators.lazy
            .filter { !$0.usesTicket }
            .prefix { AuthenticationMethod(scheme: $0.schemeName) != space.authenticationMethod }
            .contains { authenticator in
                var stronger = space
                stronger.authenticationMethod = AuthenticationMethod(scheme: authenticator.schemeName)
                return reading.challenges.contains { $0.isOf(authenticator.schemeName) && authenticator.canAnswer($0) }
                    && isOurs(stronger)
                    && (try? answer(to: stronger, of: permit?.siteRequest, under: currentPolicy())) != nil
            }
    }

    // MARK: The three checks

    /// `request` is nil if it is not known. Then no line that is for some requests only permits an answer.
    func listed(
        _ origin: Origin, for request: SiteRequest?, in policy: Policy
    ) throws(ChallengeError) -> SiteRule {
        let verdict = policy.sites.verdict(for: origin, request: request)
        if case .answer(let rule) = verdict, rule.approval == nil { return rule }
        let refusal =
            policy.siteCheck(verdict).refusal
            ?? Refusal("the site's line has approve=, and only the proxy of `countersign serve` asks a person")
        let line = policy.sites.line(for: origin, request: request)
        throw ChallengeError(
            .siteNotAllowed, refusal.after("\(origin): "),
            of: UnansweredRequest(origin, line, nil as AuthenticationScheme?), under: policy)
    }

    func permitted(
        _ space: ProtectionSpace, by rule: SiteRule, _ policy: Policy
    ) throws(ChallengeError) -> AuthenticationScheme {
        let method = space.authenticationMethod
        let supported = method.schemes.filter(AuthenticationScheme.supported.contains)
        let origin = try space.origin()
        func no(_ refusal: Refusal, _ hint: String) -> ChallengeError {
            ChallengeError(
                .methodNotAnswered, refusal, of: UnansweredRequest(origin, rule, supported.first), under: policy,
                hint: hint)
        }
        guard let first = supported.first else {
            let known = AuthenticationScheme.supported.map(\.rawValue).joined(separator: ", ")
            throw no(Refusal("\(method) is not supported by this build"), "it supports \(known)")
        }
        guard let scheme = supported.first(where: rule.answer.contains) else {
            let words = (rule.answer.map(\.rawValue) + [first.rawValue]).joined(separator: ",")
            throw no(
                Refusal(.notPermitted([first]), "\(method) is not among the site's answer="),
                "write answer=\(words) to permit it")
        }
        guard rule.pattern.scheme == .http else { return scheme }
        guard scheme != .certificate else {
            throw no(Refusal(.requiresTLS, "without TLS, no certificate can be presented"), "list the site with https")
        }
        guard !AuthenticatorTable.supported.authenticators(of: scheme).contains(where: \.requiresTLS) else {
            throw no(Refusal(.requiresTLS, "\(method) is answered over https only"), "list the site with https")
        }
        guard rule.answersPlaintext else {
            throw no(
                .plaintext, "write plaintext=yes to permit it nevertheless")
        }
        return scheme
    }

    private func identity(
        for space: ProtectionSpace, _ rule: SiteRule, _ policy: Policy
    ) throws(ChallengeError) -> Answer {
        let request = CertificateRequest(
            acceptableIssuers: space.acceptableIssuers, signatureAlgorithms: [], isPostHandshake: false)
        let (identity, check) = policy.identity(for: request, rule: rule, now: Int64(time(nil)))
        guard let identity else {
            throw ChallengeError(
                .nothingToAnswerWith, check.refusal ?? "not answered",
                of: UnansweredRequest(try space.origin(), rule, .certificate), under: policy)
        }
        return Answer(
            credential: .identity(ClientIdentity(identity)), name: identity.name, key: nil, line: rule.location)
    }

    /// The stored password or token for `space`.
    private func stored(
        for space: AuthenticationSpace, _ rule: SiteRule, _ policy: Policy
    ) throws(ChallengeError) -> Answer {
        let origin = space.origin
        func no(_ refusal: Refusal) -> ChallengeError {
            ChallengeError(
                .nothingToAnswerWith, refusal, of: UnansweredRequest(origin, rule, space.scheme), under: policy)
        }
        let enrolled: EnrolledCredential
        let decision = policy.credentialDecision(for: rule, in: space) {
            breaker.isRejected(Breaker.Key(space: space, credential: $0))
        }
        switch decision {
        case .useCredential(let credential): enrolled = credential
        case .performDefaultHandling(let reason), .rejectProtectionSpace(let reason): throw no(reason)
        }
        let context = policy.requestContext(to: origin, .answer(rule))
        if let obstacle = context.authenticators.obstacle(to: enrolled, of: space.scheme, context) {
            throw no(Refusal(.noCredential, obstacle))
        }
        let credential: Credential
        switch enrolled {
        case .password(let password):
            credential = .password(
                user: password.qualifiedUser(domain: rule.domain), Password(password.password, of: password.reference))
        case .token(let token): credential = .token(BearerToken(token))
        case .identity(let name): throw no("identity \"\(name)\" can answer only a TLS certificate request, not a 401")
        case .device: throw no("device certificates are used only by exchanges and the proxy")
        case .aws: throw no("keys of AWS sign requests, and answer no challenge")
        case .ticket, .principal: throw no("Kerberos tickets are used only by exchanges and the proxy")
        }
        guard let reference = credential.reference else { throw no("the credential cannot be sent") }
        let key = Breaker.Key(space: space, credential: reference)
        if breaker.isRejected(key) {
            throw no(BreakerPermit.rejection(of: key))
        }
        return Answer(credential: credential, name: reference.name, key: key, line: rule.location)
    }
}

extension ProtectionSpace {
    /// The space to which an answer of `scheme` gives access. Schemes without realms have one space per site.
    func authenticationSpace(_ scheme: AuthenticationScheme, at origin: Origin) -> AuthenticationSpace {
        let authenticator = AuthenticatorTable.supported.authenticators(of: scheme).first
        let realm = authenticator.flatMap { authenticator in
            authenticator.realm(
                of: Challenge(
                    scheme: authenticator.schemeName, parameters: self.realm.map { [AuthParameter("realm", $0)] } ?? [])
            )
        }
        return AuthenticationSpace(origin: origin, realm: realm, scheme: scheme)
    }
}
