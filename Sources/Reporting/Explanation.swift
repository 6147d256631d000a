// SPDX-License-Identifier: Apache-2.0

package import CountersignAddresses
package import CountersignAnswering
import CountersignCertificates
package import CountersignChallenges
import CountersignCryptography
import CountersignHTTP1
import CountersignNegotiate
package import CountersignSitePolicy

/// The results of the three checks for one URL and each kind of challenge, without sending a request.
package struct Explanation: Equatable, Sendable {
    /// How the proxy would handle a request.
    package enum Handling: String, Equatable, Sendable, Encodable {
        /// As an opaque tunnel.
        case tunnel
        /// Terminates TLS, and checks challenges.
        case intercept
        /// Forwards plain http, and checks challenges.
        case forward
        case refuse
    }

    /// The checks for one kind of challenge.
    package struct Scheme: Equatable, Sendable {
        package let scheme: AuthenticationScheme
        package let checks: ThreeChecks
    }

    package let origin: Origin
    package let handling: Handling
    package let site: ThreeChecks.Check
    /// The line that lists the site, if there is one.
    package let rule: SiteRule?
    /// Whether the request's method is.
    private let isSafe: Bool
    /// All schemes that this build supports, in the order in which they are tried: strongest first. Omits schemes that
    /// must be named, unless the line names them. Empty if the site check fails.
    package let schemes: [Scheme]

    /// The trust exceptions for the site that are in effect.
    package let trustExceptions: [TrustException]
    /// Whether the identity broker signs a person in at the site, if the site's line asks for that.
    package let broker: ThreeChecks.Check?
    /// Whether each request gets a token, and where, if the site's line asks for that.
    package let injection: ThreeChecks.Check?
    /// The credential of the site's line, if the breaker blocks it.
    package let blocked: [BlockedCredential]
    /// The remedies if no challenge is answered, best first.
    package let remedies: [Remedy]
    /// The next hops of a request, if a setting names parents; otherwise empty.
    package var route: [RouteHop] = []
    /// The subjects of the certificates in `Certs/anchors`. With one of them, a parent may intercept the site's TLS.
    package var anchors: [String] = []

    /// `request` and `client` decide among the lines of a site. `now` is in seconds since 1970. `records` are those of
    /// the breaker. `ticket` checks the user's own ticket, which is done only if the site's line permits its use.
    /// `broker` is that of ``BrokerReach``; without it, the broker is not asked.
    package init(
        of origin: Origin, _ request: SiteRequest, for client: SiteList.Client = .unknown, policy: Policy,
        records: BreakerStorage.Records = [:], now: Int64,
        ticket: (_ now: Int64) -> ThreeChecks.Check = Self.userTicket,
        broker: ((BrokerCookies.Account) -> ThreeChecks.Check)? = nil
    ) {
        let verdict = policy.sites.verdict(for: origin, request: request, client: client)
        self.origin = origin
        isSafe = Method(rawValue: request.method)?.isSafe ?? false
        site = policy.siteCheck(verdict)
        trustExceptions = policy.trustExceptions(for: origin, now: now)
        let breaker = Breaker(accounts: records)
        blocked = Self.blocked(at: origin, policy, verdict, records, now)
        if case .answer(let rule) = verdict, rule.usesBroker {
            self.broker = broker?(policy.brokerAccount(for: rule))
        } else {
            self.broker = nil
        }
        injection = Self.injection(at: origin, verdict, policy, breaker, now)
        switch verdict {
        case .answer(let rule):
            handling = origin.scheme == .https ? .intercept : .forward
            self.rule = rule
            let shown = AuthenticationScheme.supported.filter {
                AuthenticationScheme.usual.contains($0) || rule.answer.contains($0)
            }
            schemes = shown.map { scheme in
                Scheme(
                    scheme: scheme,
                    checks: Self.checks(
                        scheme, at: origin, rule, policy, breaker, site: policy.siteCheck(verdict), now, ticket))
            }
            remedies = Self.remedies(schemes, at: origin, rule, policy)
        case .tunnel(let reason), .refuse(let reason):
            // A site whose lines are for other requests is intercepted nevertheless.
            let isTunnelled =
                if case .tunnel = policy.sites.verdict(for: origin, client: client) { true } else { false }
            let isRefused = if case .refuse = verdict { true } else { false }
            handling = isRefused ? .refuse : isTunnelled && origin.scheme == .https ? .tunnel : .forward
            rule = policy.sites.rule(for: origin)
            schemes = []
            remedies = policy.remedies(
                for: reason, of: UnansweredRequest(origin, rule, nil as AuthenticationScheme?))
        }
    }

    /// The remedies for the last of the permitted schemes count: most sites offer that one.
    private static func remedies(
        _ schemes: [Scheme], at origin: Origin, _ rule: SiteRule, _ policy: Policy
    ) -> [Remedy] {
        guard !schemes.contains(where: \.checks.answers) else { return [] }
        let permitted = schemes.reversed().filter { rule.answer.contains($0.scheme) }
        let found = permitted.lazy.compactMap { scheme -> [Remedy]? in
            guard let refusal = scheme.checks.refusal else { return nil }
            let remedies = policy.remedies(for: refusal, of: UnansweredRequest(origin, rule, scheme.scheme))
            return remedies.isEmpty ? nil : remedies
        }
        return found.first ?? []
    }

    private static func checks(
        _ scheme: AuthenticationScheme, at origin: Origin, _ rule: SiteRule, _ policy: Policy, _ breaker: Breaker,
        site: ThreeChecks.Check, _ now: Int64, _ ticket: (Int64) -> ThreeChecks.Check
    ) -> ThreeChecks {
        var checks = ThreeChecks(site: site)
        guard rule.answer.contains(scheme) else {
            checks.challenge = .no(Refusal(.notPermitted([scheme]), "not among the site's answer="))
            return checks
        }
        if origin.scheme == .http {
            guard scheme != .certificate else {
                checks.challenge = .no(Refusal(.requiresTLS, "http has no certificate request"))
                return checks
            }
            guard rule.answersPlaintext else {
                checks.challenge = .no(.plaintext)
                return checks
            }
        }
        checks.challenge = .yes("may be answered here")
        if scheme == .certificate {
            checks.credential = policy.identity(for: nil, rule: rule, now: now).check
        } else if scheme == .pkeyauth {
            guard origin.scheme == .https else {
                checks.challenge = .no(Refusal(.requiresTLS, "PKeyAuth is answered over https only"))
                return checks
            }
            checks.credential = policy.identity(for: nil, rule: rule, now: now).check
        } else if AuthenticatorTable.supported.authenticators(of: scheme).contains(where: \.usesTicket) {
            checks.credential =
                switch policy.ticketDecision(for: rule) {
                case .useCredential(.principal(let credential)): check(credential, breaker, now)
                case .useCredential: ticket(now)
                case .performDefaultHandling(let reason), .rejectProtectionSpace(let reason): .no(reason)
                }
        } else {
            let context = policy.requestContext(to: origin, .answer(rule))
            let forms = AuthenticatorTable.supported.authenticators(of: scheme)
            let authenticator = forms.first { $0.schemeName.lowercased() == scheme.rawValue } ?? forms.first
            if let refusal = authenticator.flatMap(context.transportRefusal) {
                checks.challenge = refusal
                return checks
            }
            checks.credential =
                switch policy.credentialDecision(for: rule, at: origin, scheme: scheme) {
                case .useCredential(let credential):
                    if let obstacle = context.authenticators.obstacle(
                        to: credential, of: scheme, context)
                    {
                        .no(Refusal(.noCredential, obstacle))
                    } else {
                        check(credential, scheme, at: origin, breaker, now)
                    }
                case .performDefaultHandling(let reason), .rejectProtectionSpace(let reason): .no(reason)
                }
        }
        return checks
    }
}

extension Explanation {
    /// Whether the user has a valid Kerberos ticket. Reads the user's ticket cache. With a client keytab, it may wait
    /// for a KDC, for a few seconds at most.
    package static func userTicket(now: Int64) -> ThreeChecks.Check {
        do throws(KerberosError) {
            let ticket = try UserTicket.look()
            let end = WallClock.rfc3339(now + ticket.remainingSeconds)
            return .yes("Kerberos ticket of \(ticket.principal), valid until \(end)")
        } catch {
            return .no(Refusal(.noTicket, error.sentence))
        }
    }

    private static func injection(
        at origin: Origin, _ verdict: SiteVerdict, _ policy: Policy, _ breaker: Breaker, _ now: Int64
    ) -> ThreeChecks.Check? {
        guard case .answer(let rule) = verdict, let injection = rule.injection else { return nil }
        switch policy.injectionDecision(for: rule, at: origin) {
        case .useCredential(.aws(let credential)) where credential.keys.haveExpired(at: now):
            return .no(Refusal(.noCredential, "the keys \"\(credential.name)\" have expired"))
        case .useCredential(let credential):
            let permission = check(credential, .bearer, at: origin, breaker, now)
            return permission.passed ? .yes("\(permission.reason), in \(injection.description)") : permission
        case .performDefaultHandling(let reason), .rejectProtectionSpace(let reason): return .no(reason)
        }
    }

    /// Whether the breaker permits the use of the credential for a new request to the site.
    private static func check(
        _ credential: EnrolledCredential, _ scheme: AuthenticationScheme, at origin: Origin, _ breaker: Breaker,
        _ now: Int64
    ) -> ThreeChecks.Check {
        guard let reference = credential.reference else { return .no("the credential cannot answer \(scheme)") }
        let key = Breaker.Key(
            space: AuthenticationSpace(origin: origin, realm: nil, scheme: scheme), credential: reference)
        if let refusal = breaker.refusal(of: key, at: now) ?? breaker.pause(of: key, at: now) { return .no(refusal) }
        return .yes("credential \"\(reference.name)\"")
    }

    /// Whether a ticket of `credential` may be requested from the KDC. A running server may have one already.
    private static func check(
        _ credential: PrincipalCredential, _ breaker: Breaker, _ now: Int64
    ) -> ThreeChecks.Check {
        let key = Breaker.Key(space: .kdc(of: credential.realm), credential: credential.reference)
        if let reason = breaker.refusal(of: key, at: now) { return .no(reason.after("the KDC: ")) }
        return .yes("credential \"\(credential.name)\", a ticket of \(credential.principal) when it is needed")
    }

    private static func blocked(
        at origin: Origin, _ policy: Policy, _ verdict: SiteVerdict, _ records: BreakerStorage.Records, _ now: Int64
    ) -> [BlockedCredential] {
        guard case .answer(let rule) = verdict else { return [] }
        let tags = rule.answer.compactMap { scheme -> CredentialTag? in
            guard
                case .useCredential(let credential) = policy.credentialDecision(for: rule, at: origin, scheme: scheme)
            else { return nil }
            return credential.reference?.tag
        }
        let principal = rule.answer.contains(.negotiate) ? policy.principals[rule.credential] : nil
        let all = Set(tags + [principal?.tag].compactMap(\.self))
        guard !all.isEmpty else { return [] }
        let places = [origin.description, principal.map { AuthenticationSpace.kdc(of: $0.realm).place }]
        return BlockedCredential.all(in: records, only: all, at: now).filter { blocked in
            blocked.isBlockedEverywhere || blocked.places.contains { places.contains($0.site) }
        }
    }
}

// MARK: As text

extension Explanation: CustomStringConvertible {
    /// A table for display. Each line ends in a line break.
    package var description: String {
        var text = "site         \(origin)\n"
        text += "handling     \(handlingText)\n"
        text += "on the list  \(Self.cell(site))\n"
        if let session = rule?.session, handling == .intercept {
            let cookies = session.cookies.joined(separator: ", ")
            text +=
                "session      group \(session.group): \(cookies) are added for its clients, and taken from the site\n"
        }
        if let pagesText { text += "cross-site   \(pagesText)\n" }
        if let approvalText { text += "approval     \(approvalText)\n" }
        if handling == .intercept, rule?.speaksHTTP2 == false { text += "version      HTTP/1.1 only (http2=no)\n" }
        if !route.isEmpty { text += "route        \(route.sentence)\n" }
        if let interceptionText { text += "anchors      \(interceptionText)\n" }
        if let broker { text += "broker       \(Self.cell(broker))\n" }
        if let injection {
            text += "injected     \(Self.cell(injection))\n"
        }
        if let revocationText { text += "revocation   \(revocationText)\n" }
        for exception in trustExceptions { text += "trust        \(Self.cell(exception))\n" }
        for credential in blocked { text += "blocked      \(credential.name): \(credential.sentence)\n" }
        if let next = Remedy.sentence(remedies) { text += "next         \(next)\n" }
        guard !schemes.isEmpty else { return text }
        if let order = rule?.answer.map(\.rawValue), !order.isEmpty {
            text += "order        \(order.joined(separator: ", "))\n"
        }
        var rows = [["challenge", "answered", "permitted", "credential"]]
        for scheme in schemes {
            rows.append([
                scheme.scheme.rawValue, scheme.checks.answers ? "yes" : "no",
                scheme.checks.challenge.map(Self.cell) ?? "-",
                scheme.checks.credential.map(Self.cell) ?? "-",
            ])
        }
        return text + "\n" + TextTable(rows: rows).text
    }

    /// The pages of other origins that the site's line permits; nil for none.
    package var pagesText: String? {
        guard let pages = rule?.crossSite, !pages.isEmpty, handling == .intercept || handling == .forward else {
            return nil
        }
        return pages.map(\.description).joined(separator: ", ") + ": pages of these may use the site"
    }

    /// Whether the request waits for the person; nil if it does not.
    var approvalText: String? {
        guard let approval = rule?.approval, handling == .intercept || handling == .forward,
            approval.applies(isSafe: isSafe)
        else { return nil }
        return "the request waits until you agree (approve=\(approval.rawValue))"
    }

    /// The handling as a sentence.
    package var handlingText: String {
        switch handling {
        case .tunnel: "tunnel: passed through without inspection"
        case .intercept: "intercepted: challenges go through the three checks"
        case .forward:
            site.passed ? "forwarded: challenges go through the three checks" : "forwarded: nothing is added"
        case .refuse: "refused"
        }
    }

    /// Whether a parent that intercepts TLS itself is trusted.
    var interceptionText: String? {
        guard handling == .intercept, route.contains(where: \.isParent) else { return nil }
        guard !anchors.isEmpty else { return "none of your own: a parent that intercepts TLS is not trusted" }
        return "a parent may intercept TLS with \(anchors.joined(separator: " or "))"
    }

    /// The consequence of an unknown revocation status of the site's certificate; nil for the default.
    private var revocationText: String? {
        guard handling == .intercept else { return nil }
        return switch rule?.revocation {
        case .require: "required: the certificate must not be revoked, and its issuer must say so"
        case .off: "not asked for"
        case .soft, nil: nil
        }
    }

    private static func cell(_ exception: TrustException) -> String {
        "trust exception for \(CertificateFingerprint.text(exception.leaf))"
            + (exception.answers ? ", challenges may be answered" : ", challenges are not answered")
            + (exception.until.map { ", until \(WallClock.rfc3339($0))" } ?? "")
    }

    private static func cell(_ check: ThreeChecks.Check) -> String { (check.passed ? "yes: " : "no: ") + check.reason }
}
