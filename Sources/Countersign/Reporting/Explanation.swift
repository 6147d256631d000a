// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
package import CountersignChallenges
import CountersignCryptography
package import CountersignProxy
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
    /// All schemes that this build supports, strongest first; empty if the site check fails.
    package let schemes: [Scheme]

    /// The trust exceptions for the site that are in effect.
    package let trustExceptions: [TrustException]
    /// The credential of the site's line, if the breaker blocks it.
    package let blocked: [BlockedCredential]

    /// `now` is in seconds since 1970. `records` are those of the breaker.
    package init(of origin: Origin, policy: Policy, records: BreakerStorage.Records = [:], now: Int64) {
        let verdict = policy.sites.verdict(for: origin)
        self.origin = origin
        site = policy.siteCheck(verdict)
        trustExceptions = policy.trustExceptions(for: origin, now: now)
        let breaker = Breaker(accounts: records)
        blocked = Self.blocked(at: origin, policy, verdict, records, now)
        switch verdict {
        case .answer(let rule):
            handling = origin.scheme == .https ? .intercept : .forward
            self.rule = rule
            schemes = AuthenticationScheme.supported.map { scheme in
                Scheme(
                    scheme: scheme,
                    checks: Self.checks(
                        scheme, at: origin, rule, policy, breaker, site: policy.siteCheck(verdict), now))
            }
        case .tunnel:
            handling = origin.scheme == .https ? .tunnel : .forward
            rule = policy.sites.rule(for: origin)
            schemes = []
        case .refuse:
            handling = .refuse
            rule = policy.sites.rule(for: origin)
            schemes = []
        }
    }

    private static func checks(
        _ scheme: AuthenticationScheme, at origin: Origin, _ rule: SiteRule, _ policy: Policy, _ breaker: Breaker,
        site: ThreeChecks.Check, _ now: Int64
    ) -> ThreeChecks {
        var checks = ThreeChecks(site: site)
        guard rule.answer.contains(scheme) else {
            checks.challenge = .no("not among the site's answer=")
            return checks
        }
        if origin.scheme == .http {
            guard scheme != .certificate else {
                checks.challenge = .no("http has no certificate request")
                return checks
            }
            guard rule.answersPlaintext else {
                checks.challenge = .no("site is http and its line does not say plaintext=yes")
                return checks
            }
        }
        checks.challenge = .yes("may be answered here")
        if scheme == .certificate {
            checks.credential = policy.identity(for: nil, rule: rule, now: now).check
        } else {
            checks.credential =
                switch policy.passwordDecision(for: rule, at: origin) {
                case .useCredential(.password(let credential)):
                    check(credential, AuthenticationSpace(origin: origin, realm: nil, scheme: scheme), breaker, now)
                case .useCredential(.identity(let name)): .yes("identity \"\(name)\"")
                case .performDefaultHandling(let reason), .rejectProtectionSpace(let reason): .no(reason)
                }
        }
        return checks
    }
}

extension Explanation {
    private static func check(
        _ credential: PasswordCredential, _ space: AuthenticationSpace, _ breaker: Breaker, _ now: Int64
    ) -> ThreeChecks.Check {
        let key = Breaker.Key(space: space, credential: credential.reference)
        return breaker.refusal(of: key, at: now).map { .no($0) } ?? .yes("credential \"\(credential.name)\"")
    }

    private static func blocked(
        at origin: Origin, _ policy: Policy, _ verdict: SiteVerdict, _ records: BreakerStorage.Records, _ now: Int64
    ) -> [BlockedCredential] {
        guard case .answer(let rule) = verdict,
            case .useCredential(.password(let credential)) = policy.passwordDecision(for: rule, at: origin),
            let tag = credential.tag
        else { return [] }
        return BlockedCredential.all(in: records, only: [tag], at: now).filter { blocked in
            blocked.isBlockedEverywhere || blocked.places.contains { $0.site == origin.description }
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
        for exception in trustExceptions { text += "trust        \(Self.cell(exception))\n" }
        for credential in blocked { text += "blocked      \(credential.name): \(credential.sentence)\n" }
        guard !schemes.isEmpty else { return text }
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

    private static func cell(_ exception: TrustException) -> String {
        "trust exception for \(CertificateFingerprint.text(exception.leaf))"
            + (exception.answers ? ", challenges may be answered" : ", challenges are not answered")
            + (exception.until.map { ", until \(WallClock.rfc3339($0))" } ?? "")
    }

    private static func cell(_ check: ThreeChecks.Check) -> String { (check.passed ? "yes: " : "no: ") + check.reason }
}

// MARK: As JSON

extension Explanation: Encodable {
    private enum Key: String, CodingKey {
        case site, handling, listed, reason, rule, schemes
        case scheme, answered, challenge, credential, passed
        case location, text
        case trust, fingerprint, answers, until
        case blocked
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(origin.description, forKey: .site)
        try container.encode(handling, forKey: .handling)
        try container.encode(site.passed, forKey: .listed)
        try container.encode(site.reason, forKey: .reason)
        if let rule {
            var nested = container.nestedContainer(keyedBy: Key.self, forKey: .rule)
            try nested.encode(rule.location, forKey: .location)
            try nested.encode(rule.text, forKey: .text)
        }
        if !trustExceptions.isEmpty {
            var list = container.nestedUnkeyedContainer(forKey: .trust)
            for exception in trustExceptions {
                var nested = list.nestedContainer(keyedBy: Key.self)
                try nested.encode(CertificateFingerprint.text(exception.leaf), forKey: .fingerprint)
                try nested.encode(exception.answers, forKey: .answers)
                try nested.encodeIfPresent(exception.until.map(WallClock.rfc3339), forKey: .until)
            }
        }
        if !blocked.isEmpty { try container.encode(blocked, forKey: .blocked) }
        var list = container.nestedUnkeyedContainer(forKey: .schemes)
        for scheme in schemes {
            var nested = list.nestedContainer(keyedBy: Key.self)
            try nested.encode(scheme.scheme.rawValue, forKey: .scheme)
            try nested.encode(scheme.checks.answers, forKey: .answered)
            for (key, check) in [(Key.challenge, scheme.checks.challenge), (.credential, scheme.checks.credential)] {
                guard let check else { continue }
                var one = nested.nestedContainer(keyedBy: Key.self, forKey: key)
                try one.encode(check.passed, forKey: .passed)
                try one.encode(check.reason, forKey: .reason)
            }
        }
    }
}
